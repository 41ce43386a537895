#include "core/gpu/libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "core/error.h"

namespace duplex {
namespace {

/// Libraries that are opened need others in turn; nothing of CUDA's is deeper.
constexpr int deepest = 8;

/// Returns the paths that match a pattern, the last version first.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (::glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  std::sort(paths.begin(), paths.end(), [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) > 0;
  });
  return paths;
}

/// Returns the library that the loader misses, by its message: "libcudnn.so.9: cannot open shared
/// object file: No such file or directory"; empty if it says something else.
std::string missing_in(const std::string& message) {
  const std::size_t colon = message.find(": cannot open shared object file");
  return colon == std::string::npos ? "" : message.substr(0, colon);
}

void* opened(const std::string& path, const std::vector<std::string>& folders, int flags,
             int depth) {
  std::set<std::string> tried;
  for (;;) {
    if (void* library = ::dlopen(path.c_str(), flags)) return library;
    const char* said = ::dlerror();
    const std::string message = said == nullptr ? "it cannot be opened" : said;
    const std::string needed = missing_in(message);
    bool found = false;
    if (depth < deepest && !needed.empty() && needed != path && tried.insert(needed).second)
      for (const std::string& folder : folders) {
        const std::string candidate = folder + "/" + needed;
        if (::access(candidate.c_str(), R_OK) != 0) continue;
        opened(candidate, folders, RTLD_NOW | RTLD_GLOBAL, depth + 1);
        found = true;
        break;
      }
    if (found) continue;
    throw Error("cuda: " + message +
                (needed.empty() ? ""
                                : "; install it, or name the folder that has it in "
                                  "LD_LIBRARY_PATH or CUDA_HOME"));
  }
}

}  // namespace

std::vector<std::string> cuda_folders() {
  std::vector<std::string> folders;
  const auto add = [&](const std::string& root) {
    for (const char* library : {"/lib64", "/lib"}) folders.push_back(root + library);
  };
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name)) add(value);
  add("/usr/local/cuda");
  std::vector<std::string> roots;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const char* value = std::getenv(name)) roots.emplace_back(value);
  if (const char* home = std::getenv("HOME")) roots.push_back(std::string(home) + "/.local");
  for (const char* system : {"/usr/local", "/usr"}) roots.emplace_back(system);
  for (const std::string& root : roots)
    for (const char* packages : {"site-packages", "dist-packages"})
      for (std::string& folder : matches(root + "/lib/python3*/" + packages + "/nvidia/*/lib"))
        folders.push_back(std::move(folder));
  return folders;
}

void* open_with_needed(const std::string& path, const std::vector<std::string>& folders) {
  return opened(path, folders, RTLD_NOW | RTLD_LOCAL, 0);
}

}  // namespace duplex
