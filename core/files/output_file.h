// Files that appear whole or not at all: they are written under a temporary name in the same
// folder, synced, then renamed. A path that exists and is no regular file (a device, a pipe) is
// written to directly.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace duplex {

class OutputFile {
 public:
  /// Opens `path` + ".tmp-PID", or `path` itself if it is no regular file. Throws Error naming
  /// `path` where it cannot be written.
  explicit OutputFile(std::string path);
  /// Removes the temporary file unless committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends. Throws Error, naming the file and the reason ("No space left on device").
  void write(const void* data, std::size_t bytes);
  void write(const std::string& text) { write(text.data(), text.size()); }
  /// Overwrites what was written at `offset`.
  void write_at(std::size_t offset, const void* data, std::size_t bytes);
  /// Returns whether the path is a regular file, so that write_at() works.
  bool regular() const { return !temporary_.empty(); }
  std::size_t bytes() const { return bytes_; }  ///< Bytes written so far.

  /// Syncs file and folder and gives the file its name, replacing one that was there.
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;
  void flush();
  void write_through(const char* from, std::size_t bytes);

  std::string path_;
  std::string temporary_;  ///< Empty where the path is written to directly.
  int descriptor_ = -1;
  std::size_t bytes_ = 0;
  std::vector<char> buffer_;
};

/// Writes an OutputFile with one write and commits it.
void write_file(const std::string& path, const std::string& content);

/// Returns when all that was written to a file so far is on the disk, and so is its name. Does
/// nothing where there is no such file, or where the path is none that can be synced. Throws Error,
/// naming the file and the reason.
void sync_file(const std::string& path);

/// Returns when the names in a folder are on the disk, as far as its file system can say.
void sync_folder(const std::string& path);

}  // namespace duplex
