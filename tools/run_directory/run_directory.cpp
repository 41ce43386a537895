#include "tools/run_directory/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "core/files/output_file.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {
namespace {

std::string default_path(const std::string& command, const std::string& net) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  // A network may be a file's path.
  return "runs/" + command + "-" + std::filesystem::path(net).stem().string() + "-" + text;
}

void make_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error && !std::filesystem::is_directory(path, error))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw Error("run directory " + path + " cannot be made: " + error.message());
}

/// Creates an empty file and locks it, or locks the empty one that is there. Returns its
/// descriptor, or -1 if it is not empty or belongs to another program. A program that meets it
/// between its creation and its lock may lock it first, and then owns it.
int claimed(const std::string& file) {
  for (;;) {
    int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    const bool made = descriptor >= 0;
    if (!made && errno != EEXIST)
      throw Error(file + " cannot be made: " + std::generic_category().message(errno));
    if (!made) {
      descriptor = ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
      if (descriptor < 0 && errno == ENOENT) continue;
      if (descriptor < 0) return -1;
    }
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
      if (made && errno != EWOULDBLOCK) return descriptor;  // This file system has no locks.
      ::close(descriptor);
      return -1;
    }
    struct stat locked {};
    struct stat there {};
    const bool same = ::fstat(descriptor, &locked) == 0 && ::lstat(file.c_str(), &there) == 0 &&
                      locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
    if (same && S_ISREG(locked.st_mode) && locked.st_size == 0) return descriptor;
    ::close(descriptor);
    if (same) return -1;
    // Its owner gave it up, or wrote the whole file in its place, before the lock.
  }
}

}  // namespace

std::string unused_run_path(const std::string& command, const std::string& net, bool create) {
  const std::string name = default_path(command, net);
  std::string path = name;
  if (create) make_directory("runs");
  for (int number = 2;; ++number) {
    std::error_code error;
    if (create ? std::filesystem::create_directory(path, error) : !std::filesystem::exists(path))
      return path;
    if (error) throw Error("run directory " + path + " cannot be made: " + error.message());
    path = name + "-" + std::to_string(number);
  }
}

RunDirectory::RunDirectory(std::string path, const std::string& command, const std::string& net,
                           const std::vector<std::string>& claims,
                           const std::vector<std::string>& later, bool resumes, bool returns)
    : path_(std::move(path)), resumes_(resumes) {
  if (!path_.empty()) {
    in_the_way_ = claim(command, claims, later, resumes);
    if (in_the_way_.empty()) return;
    give_up();
    if (!returns || !claim(command, claims, later, true).empty()) require_unused();
    return;
  }
  const std::string name = default_path(command, net);
  path_ = name;
  for (int number = 2; !claim(command, claims, later, resumes).empty(); ++number) {
    give_up();
    path_ = name + "-" + std::to_string(number);
  }
}

void RunDirectory::require_unused() const {
  if (in_the_way_.empty()) return;
  throw Error(
      "run directory " + path_ + " holds a run already (" + in_the_way_ + "): " +
          (resumes_ ? "wait for its end, or end it" : "give another --logdir, or remove it"),
      Exit::usage);
}

std::string RunDirectory::claim(const std::string& command, const std::vector<std::string>& claims,
                                const std::vector<std::string>& later, bool used) {
  make_directory(path_);
  // The ranks of one machine share it, and so do the two sides of transport.
  const bool alone = command == "local" || command == "simulate";
  if (!lock(alone ? LOCK_EX : LOCK_SH)) return "of a program that has not ended";
  for (const std::string& name : claims) {
    const int descriptor = claimed(file(name));
    if (descriptor < 0 && used) continue;
    if (descriptor < 0) return name;
    claims_.push_back({name, descriptor});
  }
  if (used) return "";
  // A rank of dist and a side of transport find files of their own run here; they look for those
  // that they will write themselves, and for those of other kinds of runs.
  std::vector<std::string> others = later;
  if (command == "transport") others.emplace_back(config_file);
  if (command == "dist")
    others.insert(others.end(), {transport_file("ps"), transport_file("worker")});
  if (alone)
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (is_run_file(entry.path().filename())) others.push_back(entry.path().filename());
  for (const std::string& other : others) {
    const bool mine = std::find(claims.begin(), claims.end(), other) != claims.end();
    if (!mine && std::filesystem::exists(file(other))) return other;
  }
  return "";
}

/// Locks the directory itself: for this program alone, or for all ranks of a run. Returns false if
/// a program that has not ended is in the way.
bool RunDirectory::lock(int how) {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // Some file systems have no locks; there the claims alone protect the directory.
  return lock_ < 0 || ::flock(lock_, how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

void RunDirectory::give_up() {
  for (const Claim& claim : claims_) {
    std::error_code error;
    const std::string path = file(claim.file);
    if (std::filesystem::file_size(path, error) == 0 && !error)
      std::filesystem::remove(path, error);
    ::close(claim.descriptor);
  }
  claims_.clear();
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

RunDirectory::~RunDirectory() {
  give_up();
}

void RunDirectory::remove(const std::string& name) const {
  std::error_code error;
  std::filesystem::remove(file(name), error);
}

void RunDirectory::set_aside(const std::string& name) const {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path from = file(name);
  if (fs::file_size(from, error) == 0 || error) return;
  for (int number = 1;; ++number) {
    fs::path to = from;
    to.replace_extension("." + std::to_string(number) + from.extension().string());
    if (fs::exists(to, error)) continue;
    fs::rename(from, to, error);
    if (error) throw Error(from.string() + " cannot be renamed: " + error.message());
    return;
  }
}

void RunDirectory::write(const std::string& name, const std::string& content) const {
  write_file(file(name), content);
}

}  // namespace duplex::tools
