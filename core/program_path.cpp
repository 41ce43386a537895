#include "core/program_path.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace duplex {

bool run_by_loader() {
  return ::getauxval(AT_BASE) == 0;  // The kernel was asked for no loader but ran one.
}

std::string program_file() {
  std::error_code unreadable;
  if (run_by_loader()) {
    // The loader writes the path there that it was told, which the starter makes an absolute one.
    const auto* told = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    if (told == nullptr) return "";
    const auto file = std::filesystem::canonical(told, unreadable);
    return unreadable ? told : file.string();
  }
  return std::filesystem::read_symlink("/proc/self/exe", unreadable).string();
}

std::string program_path() {
  const std::string file = program_file();
  if (!run_by_loader()) return file;
  const auto starter = std::filesystem::path(file).parent_path().parent_path() / "duplex";
  return ::access(starter.c_str(), X_OK) == 0 ? starter.string() : file;
}

}  // namespace duplex
