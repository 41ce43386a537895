#include "tools/run_directory/run_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/output_file.h"

namespace duplex::tools {
namespace {

std::string default_path(const std::string& command, const std::string& net) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return "runs/" + command + "-" + net + "-" + text;
}

/// Creates the directory and the file; false: there is such a file already.
bool claimed(const std::string& path, const std::string& claim) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_directory(path, error)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) throw Error("run directory " + path + " cannot be made: " + error.message());
  const std::string file = path + "/" + claim;
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0 && errno == EEXIST) return false;
  if (descriptor < 0)
    throw Error(file + " cannot be made: " + std::generic_category().message(errno));
  ::close(descriptor);
  return true;
}

}  // namespace

std::string unused_run_path(const std::string& command, const std::string& net) {
  const std::string name = default_path(command, net);
  std::string path = name;
  for (int number = 2; std::filesystem::exists(path); ++number)
    path = name + "-" + std::to_string(number);
  return path;
}

RunDirectory::RunDirectory(std::string path, const std::string& command, const std::string& net,
                           const std::string& claim)
    : path_(std::move(path)), claim_(claim) {
  if (!path_.empty()) {
    if (!claimed(path_, claim))
      throw Error("run directory " + path_ + " holds a run already (" + claim +
                      "): give another --logdir, or remove it",
                  Exit::usage);
    return;
  }
  const std::string name = default_path(command, net);
  path_ = name;
  for (int number = 2; !claimed(path_, claim); ++number)
    path_ = name + "-" + std::to_string(number);
}

RunDirectory::~RunDirectory() {
  std::error_code error;
  const std::string path = file(claim_);
  if (std::filesystem::file_size(path, error) == 0 && !error) std::filesystem::remove(path, error);
}

void RunDirectory::write(const std::string& name, const std::string& content) const {
  write_file(file(name), content);
}

}  // namespace duplex::tools
