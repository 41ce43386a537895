// Files in memory, for readers that take a path.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "tests/fuzz/target.h"
#include "tests/temporary_folder.h"

namespace duplex::fuzz {

/// A regular file that has a path while it lives, and no name in any folder. Its owner alone may
/// read it.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Replaces the content. Returns the path.
  const std::string& write(const void* data, std::size_t bytes);
  const std::string& write(const Bytes& content) { return write(content.data(), content.size()); }
  const std::string& path() const { return path_; }

 private:
  int descriptor_;
  std::string path_;
};

/// A folder with links to files in memory.
class MemoryFolder {
 public:
  const std::string& path() const { return folder_.path(); }
  /// Adds an empty file; makes the folders that it lies in.
  MemoryFile& add(const std::string& name);
  MemoryFile& operator[](const std::string& name) { return *files_.at(name); }
  bool has(const std::string& name) const { return files_.count(name) != 0; }

 private:
  TemporaryFolder folder_;
  std::map<std::string, std::unique_ptr<MemoryFile>> files_;
};

/// Some of the recorded files of a run directory, of which an input replaces one: its first line is
/// the file's name, the rest the new content.
class RecordedFolder {
 public:
  /// Adds the files of `source`; they are read from the root of the repository.
  explicit RecordedFolder(const std::string& source);

  const std::string& path() const { return folder_.path(); }
  /// Returns false where the input names none of the files. Call restore() before the next.
  bool take(const Bytes& input);
  const std::string& changed() const { return changed_; }  ///< The file that an input replaced.
  void restore();

 private:
  MemoryFolder folder_;
  std::map<std::string, std::string> contents_;
  std::string changed_;
};

}  // namespace duplex::fuzz
