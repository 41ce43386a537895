// A command's output is a file of its own: none that the command reads, and none that another flag
// names for output.
#pragma once
#include <string>
#include <vector>

namespace duplex {

/// A path, and the flag that gives it; an empty path is left out.
struct NamedFile {
  std::string flag, path;
};

/// Returns whether two paths are of one file, by other spellings or by links. Neither has to be
/// there. A device or a pipe is no such file, since nothing in it is replaced.
bool is_one_file(const std::string& a, const std::string& b);

/// Returns whether a file is, or would be, in a folder or in one below it.
bool lies_in(const std::string& file, const std::string& folder);

/// Throws Error(Exit::usage) where a file of `written` is one of `read`, or another of `written`.
/// `command` begins the message, unless it is empty.
void require_own_files(const std::string& command, const std::vector<NamedFile>& read,
                       const std::vector<NamedFile>& written);

}  // namespace duplex
