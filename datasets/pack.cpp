// Writes packed files (packed.h).
#include <sys/statvfs.h>

#include <algorithm>

#include "core/error.h"
#include "core/files/crc32c.h"
#include "core/files/output_file.h"
#include "datasets/packed.h"
#include "datasets/packed_format.h"
#include "datasets/parallel.h"

namespace duplex::datasets {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

/// Collects bytes in the order of the file, numbers as little-endian.
class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      content_.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
  }
  void text(const std::string& value) {
    number(static_cast<std::uint32_t>(value.size()));
    content_.insert(content_.end(), value.begin(), value.end());
  }
  const std::vector<std::uint8_t>& content() const { return content_; }

 private:
  std::vector<std::uint8_t> content_;
};

/// `checksums`: of the pixels, by sample.
std::vector<std::uint8_t> table_of(const Catalogue& catalogue,
                                   const std::vector<std::uint32_t>& checksums) {
  Writer writer;
  for (const std::string& name : catalogue.classes) writer.text(name);
  for (std::size_t i = 0; i < catalogue.samples.size(); ++i) {
    const Sample& sample = catalogue.samples[i];
    writer.number(static_cast<std::uint32_t>(sample.label));
    writer.number(static_cast<std::uint8_t>(sample.use));
    writer.number(sample.source_bytes);
    writer.number(sample.checksum);
    writer.number(checksums[i]);
    writer.text(sample.name);
  }
  return writer.content();
}

std::vector<std::uint8_t> bytes_of(const PackHeader& header) {
  Writer writer;
  writer.number(PackHeader::magic);
  writer.number(PackHeader::version);
  for (std::uint32_t value :
       {header.channels, header.height, header.width, header.classes, header.samples}) {
    writer.number(value);
  }
  writer.number(header.file_bytes);
  writer.number(header.digest);
  writer.number(header.table_checksum);
  return writer.content();
}

/// Throws if skipping has left a class without samples.
void check_classes(const Dataset& data, const Catalogue& written) {
  std::vector<bool> before(data.classes().size()), after(data.classes().size());
  for (const Sample& s : data.catalogue().samples) before[static_cast<std::size_t>(s.label)] = true;
  for (const Sample& s : written.samples) after[static_cast<std::size_t>(s.label)] = true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] && !after[i]) {
      throw Error("class '" + data.classes()[i] + "' of " + data.source() +
                  " holds no image that can be read");
    }
  }
}

/// Throws at once if the disk has too little space, which would else show only when it is full.
void check_space(const std::string& path, std::uint64_t needed) {
  struct statvfs status {};
  if (::statvfs(folder_of(path).c_str(), &status) != 0) return;  // Opening the file will say why.
  const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize;
  if (free < needed) {
    throw Error("packed file '" + path + "' cannot be written: it needs " + with_commas(needed) +
                " bytes, and the disk has " + with_commas(free) + " left");
  }
}

}  // namespace

PackResult pack_dataset(const Dataset& data, const std::string& path, int threads, bool strict,
                        const std::function<void(std::uint64_t done)>& progress) {
  const std::size_t bytes = data.sample_bytes();
  const std::size_t block =
      std::min(data.size(), std::max<std::size_t>(1, (std::size_t{1} << 25) / bytes));
  check_space(path, PackHeader::pixels_begin + std::uint64_t{data.size()} * bytes);
  OutputFile file(path);
  file.write(std::string(PackHeader::pixels_begin, '\0'));  // Keeps the header's place.
  PackResult result;
  Catalogue written;
  std::vector<std::uint32_t> checksums;
  written.shape = data.shape();
  written.classes = data.classes();
  std::vector<std::uint8_t> pixels(block * bytes);
  std::vector<std::string> faults(block);
  for (std::size_t begin = 0; begin < data.size(); begin += block) {
    const std::size_t count = std::min(block, data.size() - begin);
    parallel_for(count, thread_count(threads), [&](std::size_t i) {
      std::uint8_t* own = pixels.data() + i * bytes;
      faults[i].clear();
      try {
        const std::uint8_t* read = data.read(begin + i, own);
        if (read != own) std::copy(read, read + bytes, own);
      } catch (const Error& error) {
        faults[i] = error.what();
      }
    });
    std::size_t kept = 0;  // Sound samples move up to where skipped ones were.
    for (std::size_t i = 0; i < count; ++i) {
      const Sample& sample = data.sample(begin + i);
      if (!faults[i].empty()) {
        if (strict) throw unreadable(data, begin + i, faults[i]);
        result.skipped.push_back({sample.name, faults[i]});
        continue;
      }
      if (kept != i) std::copy_n(pixels.data() + i * bytes, bytes, pixels.data() + kept * bytes);
      written.samples.push_back(sample);
      checksums.push_back(crc32c(0, pixels.data() + kept * bytes, bytes));
      ++kept;
    }
    file.write(pixels.data(), kept * bytes);
    progress(begin + count);
  }
  check_classes(data, written);
  const std::vector<std::uint8_t> table = table_of(written, checksums);
  file.write(table.data(), table.size());

  PackHeader header;
  header.channels = static_cast<std::uint32_t>(data.shape().c());
  header.height = static_cast<std::uint32_t>(data.shape().h());
  header.width = static_cast<std::uint32_t>(data.shape().w());
  header.classes = static_cast<std::uint32_t>(written.classes.size());
  header.samples = static_cast<std::uint32_t>(written.samples.size());
  header.file_bytes = file.bytes();
  result.packed = written.samples.size();
  result.bytes = header.file_bytes;
  header.digest = digest(written);
  header.table_checksum = crc32c(0, table.data(), table.size());
  const std::vector<std::uint8_t> head = bytes_of(header);
  file.write_at(0, head.data(), head.size());
  file.commit();
  return result;
}

}  // namespace duplex::datasets
