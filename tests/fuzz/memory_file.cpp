#include "tests/fuzz/memory_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace duplex::fuzz {
namespace fs = std::filesystem;

MemoryFile::MemoryFile()
    : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)),
      path_("/proc/self/fd/" + std::to_string(descriptor_)) {
  if (descriptor_ < 0 || ::fchmod(descriptor_, S_IRUSR | S_IWUSR) != 0)
    throw std::runtime_error("no file in memory can be made");
}

MemoryFile::~MemoryFile() {
  ::close(descriptor_);
}

const std::string& MemoryFile::write(const void* data, std::size_t bytes) {
  if (::ftruncate(descriptor_, 0) != 0 ||
      ::pwrite(descriptor_, data, bytes, 0) != static_cast<ssize_t>(bytes))
    throw std::runtime_error("a file in memory cannot be written");
  return path_;
}

MemoryFile& MemoryFolder::add(const std::string& name) {
  auto& file = files_[name];
  file = std::make_unique<MemoryFile>();
  const fs::path link = folder_ / name;
  fs::create_directories(link.parent_path());
  fs::create_symlink(file->path(), link);
  return *file;
}

RecordedFolder::RecordedFolder(const std::string& source) {
  for (const auto& entry : fs::directory_iterator(source)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string name = entry.path().filename().string();
    contents_[name].assign(std::istreambuf_iterator<char>(file), {});
    folder_.add(name);
    changed_ = name;
    restore();
  }
}

bool RecordedFolder::take(const Bytes& input) {
  const std::string text = text_of(input);
  const std::size_t end = text.find('\n');
  if (end == std::string::npos || !folder_.has(text.substr(0, end))) return false;
  changed_ = text.substr(0, end);
  folder_[changed_].write(text.data() + end + 1, text.size() - end - 1);
  return true;
}

void RecordedFolder::restore() {
  const std::string& content = contents_.at(changed_);
  folder_[changed_].write(content.data(), content.size());
}

}  // namespace duplex::fuzz
