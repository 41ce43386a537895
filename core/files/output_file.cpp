#include "core/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/error.h"
#include "core/files/write_all.h"

namespace duplex {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 16;

/// Returns the folder of a file.
std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  struct stat status {};
  const bool special = ::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
  if (!special) temporary_ = path_ + ".tmp-" + std::to_string(::getpid());
  const std::string& name = special ? path_ : temporary_;
  const auto open_it = [&] {
    return special
               ? ::open(name.c_str(), O_WRONLY | O_CLOEXEC)
               : ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  };
  descriptor_ = open_it();
  // A program of this number that was killed has left it; a link that another has put there goes.
  if (descriptor_ < 0 && errno == EEXIST && ::unlink(name.c_str()) == 0) descriptor_ = open_it();
  if (descriptor_ < 0) fail("cannot be created");
  buffer_.reserve(buffer_bytes);
}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::fail(const char* what) const {
  throw Error(path_ + " " + what + ": " + std::generic_category().message(errno));
}

void OutputFile::write(const void* data, std::size_t bytes) {
  const char* from = static_cast<const char*>(data);
  bytes_ += bytes;
  if (buffer_.size() + bytes > buffer_bytes) flush();
  if (bytes >= buffer_bytes) {
    write_through(from, bytes);
  } else {
    buffer_.insert(buffer_.end(), from, from + bytes);
  }
}

void OutputFile::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void OutputFile::write_through(const char* from, std::size_t bytes) {
  if (write_all(descriptor_, from, bytes) < bytes) fail("cannot be written");
}

void OutputFile::write_at(std::size_t offset, const void* data, std::size_t bytes) {
  flush();
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t wrote = ::pwrite(descriptor_, from, bytes, static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail("cannot be written");
    from += wrote;
    offset += static_cast<std::size_t>(wrote);
    bytes -= static_cast<std::size_t>(wrote);
  }
}

void OutputFile::commit() {
  flush();
  if (temporary_.empty()) {
    ::close(descriptor_);
    descriptor_ = -1;
    return;
  }
  if (::fsync(descriptor_) != 0) fail("cannot be synced");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be put in place");
  ::close(descriptor_);
  descriptor_ = -1;
  sync_folder(folder_of(path_));
}

void write_file(const std::string& path, const std::string& content) {
  OutputFile file(path);
  file.write(content);
  file.commit();
}

void sync_file(const std::string& path) {
  const auto fail = [&](const char* what) {
    throw Error(path + " " + what + ": " + std::generic_category().message(errno));
  };
  // A pipe that nobody reads does not hold this up.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT) return;
  if (descriptor < 0) fail("cannot be opened");
  const int error = ::fsync(descriptor) == 0 ? 0 : errno;
  ::close(descriptor);
  errno = error;
  if (error == EINVAL || error == EROFS) return;
  if (error != 0) fail("cannot be synced");
  sync_folder(folder_of(path));
}

void sync_folder(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

}  // namespace duplex
