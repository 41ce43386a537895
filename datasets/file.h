// Reads files whole, or maps them into memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::datasets {

/// Returns what a value of errno means, such as "No such file or directory".
std::string error_text(int number);

/// Owns a file descriptor and closes it in the destructor.
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

/// Returns the content of a regular file; it throws at a pipe or a device and never waits for one.
/// The Error holds the reason alone, since the caller knows the name that the user knows.
std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes);

/// Maps a regular file into memory, read-only. The system reads a page when it is first touched.
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
