#include "core/files/own_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/error.h"

namespace duplex {
namespace {

namespace fs = std::filesystem;

/// Returns the path without links, "." and "..", as far as it is there.
fs::path resolved(const std::string& path) {
  std::error_code unknown;
  const fs::path absolute = fs::absolute(path, unknown);
  const fs::path found = fs::weakly_canonical(absolute, unknown);
  return unknown ? absolute.lexically_normal() : found;
}

}  // namespace

bool is_one_file(const std::string& a, const std::string& b) {
  std::error_code absent;
  const bool there = fs::exists(a, absent), other_there = fs::exists(b, absent);
  if (there != other_there) return false;
  if (!there) return resolved(a) == resolved(b);
  return fs::is_regular_file(a, absent) && fs::equivalent(a, b, absent);
}

bool lies_in(const std::string& file, const std::string& folder) {
  const fs::path within = resolved(file), around = resolved(folder + "/.");
  const auto [end, other] =
      std::mismatch(around.begin(), around.end(), within.begin(), within.end());
  return (end == around.end() || end->empty()) && other != within.end();
}

void require_own_files(const std::string& command, const std::vector<NamedFile>& read,
                       const std::vector<NamedFile>& written) {
  const std::string begin = command.empty() ? "" : command + ": ";
  for (auto output = written.begin(); output != written.end(); ++output) {
    if (output->path.empty()) continue;
    const auto is_it = [&](const NamedFile& other) {
      return !other.path.empty() && is_one_file(other.path, output->path);
    };
    const auto input = std::find_if(read.begin(), read.end(), is_it);
    if (input != read.end())
      throw Error(begin + output->flag + " " + output->path + " is the file that " + input->flag +
                      " names, and would replace it; write to another one",
                  Exit::usage);
    const auto other = std::find_if(written.begin(), output, is_it);
    if (other != output)
      throw Error(begin + other->flag + " and " + output->flag + " name one file, " + output->path +
                      ", and need a file each",
                  Exit::usage);
  }
}

}  // namespace duplex
