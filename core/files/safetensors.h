// Safetensors files: named float32 arrays, as PyTorch's safetensors library writes and reads them:
// 8 bytes of header length (little-endian), a JSON header, and the arrays' bytes, row-major.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/shape.h"

namespace duplex {

struct SafetensorsEntry {
  std::string name;
  Shape shape;
  std::uint64_t offset = 0;  ///< The first byte's, from the beginning of the file.
};

/// Writes a file that appears whole or not at all (core/files/output_file.h). Only the names and
/// shapes of `entries` are used. `fill` is called for one entry after the other and writes
/// shape.elements() values, so that only one array needs to be in memory. `metadata` becomes the
/// header's "__metadata__", with a checksum of all arrays added under "crc32c", except in a pipe.
void save_safetensors(const std::string& path, const std::vector<SafetensorsEntry>& entries,
                      const std::map<std::string, std::string>& metadata,
                      const std::function<void(std::size_t index, float* values)>& fill);

/// A file opened for reading. Header, shapes and offsets are checked against the file's length
/// before any of them is used.
class SafetensorsFile {
 public:
  /// Throws Error, naming the file and, where there is one, the array at fault, for a file that is
  /// no safetensors file or was cut short, for an element type other than F32, and for more than
  /// four extents.
  explicit SafetensorsFile(const std::string& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  ///< Sorted by offset.
  /// Without the checksum.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Reads all arrays and compares them with the file's checksum, if it has one. Throws Error if
  /// they differ.
  void verify() const;
  /// Reads entry.shape.elements() values.
  void read(const SafetensorsEntry& entry, float* values) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  void read_bytes(void* to, std::uint64_t bytes, std::uint64_t offset) const;
  void parse(const std::string& header);

  std::string path_;
  int descriptor_ = -1;
  std::string checksum_;  ///< Empty: the file has none.
  std::uint64_t data_begin_ = 0, file_bytes_ = 0;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace duplex
