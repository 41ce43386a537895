// A folder for files of one command, such as a key.
#pragma once
#include <string>

namespace duplex::tools {

/// Makes a folder that its user alone can enter, among temporary files, and removes it with all
/// that is in it at the end. `what` is in the message of the Error that is thrown if it cannot be
/// made.
class PrivateFolder {
 public:
  explicit PrivateFolder(const std::string& what);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace duplex::tools
