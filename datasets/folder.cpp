#include "datasets/folder.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/files/crc32c.h"
#include "datasets/decoding/image.h"
#include "datasets/file.h"
#include "datasets/image_files.h"
#include "datasets/parallel.h"

namespace duplex::datasets {
namespace fs = std::filesystem;
namespace {

/// Returns the names in a folder, sorted.
std::vector<std::string> list(const std::string& folder) {
  std::error_code failure;
  fs::directory_iterator entry(folder, failure);
  std::vector<std::string> names;
  for (; !failure && entry != fs::directory_iterator(); entry.increment(failure)) {
    names.push_back(entry->path().filename().string());
  }
  if (failure) throw Error("folder '" + folder + "' cannot be read: " + failure.message());
  std::sort(names.begin(), names.end());
  return names;
}

struct Candidate {
  std::string name;  ///< Class and file: "001.ak47/001_0001.jpg".
  std::int32_t label;
  std::uint64_t bytes = 0;
  std::uint32_t checksum = 0;
  std::string fault;  ///< Reason why it cannot be used; empty for a sound image.
};

/// Holds the folder's layout, as the names alone tell it before any file is opened.
struct Layout {
  std::vector<std::string> classes;
  std::vector<Candidate> candidates;
  std::vector<LeftOut> skipped, ignored;
};

bool hidden(const std::string& name) {
  return name[0] == '.';
}

/// Adds what lies in a class's folder. Returns the name of a folder in it, or "" if there is none.
std::string list_class(Layout& layout, const std::string& root, const std::string& name) {
  const auto label = static_cast<std::int32_t>(layout.classes.size());
  std::string inner;
  layout.classes.push_back(name);
  for (const std::string& file : list(root + "/" + name)) {
    const std::string shown = name + "/" + file;
    std::error_code failure;
    if (fs::is_directory(root + "/" + shown, failure)) {
      inner = shown;
      layout.ignored.push_back({shown, "a folder inside a class's folder"});
    } else if (hidden(file)) {
      layout.ignored.push_back({shown, "a hidden file"});
    } else if (!has_image_name(file)) {
      layout.ignored.push_back({shown, "its name is not an image's"});
    } else {
      layout.candidates.push_back({shown, label, 0, 0, ""});
    }
  }
  return inner;
}

Layout list_classes(const std::string& root) {
  Layout layout;
  for (const std::string& name : list(root)) {
    std::error_code failure;
    const fs::file_status status = fs::status(root + "/" + name, failure);
    if (hidden(name)) {
      layout.ignored.push_back({name, "hidden"});
    } else if (failure || !fs::exists(status)) {
      layout.skipped.push_back({name, failure ? failure.message() : error_text(ENOENT)});
    } else if (fs::is_directory(status)) {
      const std::size_t before = layout.candidates.size();
      const std::string inner = list_class(layout, root, name);
      if (layout.candidates.size() == before) {
        throw Error("class folder '" + root + "/" + name + "' holds no images" +
                    (inner.empty() ? "; put some in or remove it"
                                   : ", but folders: is '" + root + "/" + name +
                                         "' the folder of classes that you mean?"));
      }
    } else {
      layout.ignored.push_back({name, "not in a class's folder"});
    }
  }
  return layout;
}

}  // namespace

std::shared_ptr<const Dataset> FolderDataset::open(const std::string& folder,
                                                   const DatasetOptions& options) {
  Layout layout = list_classes(folder);
  if (layout.classes.empty()) {
    throw Error("folder '" + folder +
                "' holds no class folders; expected is a folder of images for each class, such "
                "as '" +
                folder + "/001.ak47/001_0001.jpg'");
  }
  parallel_for(layout.candidates.size(), thread_count(options.threads), [&](std::size_t i) {
    Candidate& candidate = layout.candidates[i];
    try {
      const std::vector<std::uint8_t> file =
          read_file(folder + "/" + candidate.name, max_image_bytes);
      candidate.bytes = file.size();
      candidate.checksum = crc32c(0, file.data(), file.size());
      check_image(file.data(), file.size());
    } catch (const Error& error) {
      candidate.fault = error.what();
    }
  });

  Catalogue catalogue;
  catalogue.shape = {1, options.channels > 0 ? options.channels : 3,
                     options.height > 0 ? options.height : 224,
                     options.width > 0 ? options.width : 224};
  catalogue.skipped = std::move(layout.skipped);
  catalogue.ignored = std::move(layout.ignored);
  std::vector<std::size_t> members(layout.classes.size());
  for (Candidate& candidate : layout.candidates) {
    if (candidate.fault.empty()) {
      ++members[static_cast<std::size_t>(candidate.label)];
      catalogue.samples.push_back({std::move(candidate.name), candidate.label, Use::any,
                                   candidate.bytes, candidate.checksum});
    } else {
      catalogue.skipped.push_back({std::move(candidate.name), std::move(candidate.fault)});
    }
  }
  if (options.strict && !catalogue.skipped.empty()) {
    const LeftOut& first = catalogue.skipped.front();
    throw Error("image '" + folder + "/" + first.name + "' cannot be read: " + first.reason);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] > 0) continue;
    throw Error("class folder '" + folder + "/" + layout.classes[i] +
                "' holds no image that can be read");
  }
  catalogue.classes = std::move(layout.classes);
  return std::shared_ptr<const Dataset>(new FolderDataset(std::move(catalogue), folder));
}

const std::uint8_t* FolderDataset::read(std::size_t index, std::uint8_t* scratch) const {
  read_image(folder_ + "/" + sample(index).name, shape(), scratch);
  return scratch;
}

void FolderDataset::read_framed(std::size_t index, const Framer& framer,
                                std::uint8_t* scratch) const {
  read_image(folder_ + "/" + sample(index).name, shape(), framer, scratch);
}

}  // namespace duplex::datasets
