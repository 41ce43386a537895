// Files: read whole, or mapped into memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::datasets {

/// "No such file or directory": what a value of errno means.
std::string error_text(int number);

/// A file descriptor, closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  int number() const { return number_; }
  int release();

 private:
  int number_;
};

/// The content of a regular file (never waits for a pipe or a device). The Error thrown holds the
/// reason alone; the caller knows the name that the user knows.
std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes);

/// A regular file, read-only in memory. Pages are read when they are touched.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);  ///< Throws like read_file.
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::uint8_t* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace duplex::datasets
