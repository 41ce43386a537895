// Reads files whole, or parts of them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
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
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  int number() const { return number_; }
  int release();

 private:
  int number_;
};

/// Returns the content of a regular file; it throws at a pipe or a device and never waits for one.
/// The Error holds the reason alone, since the caller knows the name that the user knows.
std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes);

/// A regular file that stays open, for reading parts of it. It may become shorter meanwhile, which
/// is an error, and nothing worse, as it would be in a mapping.
class ReadFile {
 public:
  explicit ReadFile(const std::string& path);  ///< Throws like read_file.

  std::uint64_t bytes() const { return bytes_; }  ///< When it was opened.
  /// Fills `size` bytes from `offset` on. Throws Error where the file has no such bytes. Any thread
  /// may call it.
  void read(std::uint64_t offset, void* to, std::size_t size) const;

 private:
  Descriptor descriptor_;
  std::uint64_t bytes_ = 0;
};

}  // namespace duplex::datasets
