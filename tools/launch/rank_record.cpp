#include "tools/launch/rank_record.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>

#include "core/error.h"

namespace duplex::tools {
namespace {

using datasets::Descriptor;
using datasets::error_text;

/// Opens the folder if it is this user's alone. Nobody else can then change what lies in it.
Descriptor open_folder(const std::string& path) {
  Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (folder.number() < 0 && (errno == ENOTDIR || errno == ELOOP)) {
    throw Error(path + " is a link or no folder: remove it");
  }
  if (folder.number() < 0 || ::fstat(folder.number(), &status) != 0) {
    throw Error(path + " cannot be opened: " + error_text(errno));
  }
  if (status.st_uid != ::geteuid()) {
    throw Error(path + " belongs to another user (of number " + std::to_string(status.st_uid) +
                "): it has to be removed");
  }
  if ((status.st_mode & 077U) != 0) {
    throw Error(path + " is accessible to others: chmod 700 it");
  }
  return folder;
}

// A rank locks its whole record. A process that looks whether a record is left over locks byte 1
// alone, so that nobody takes it for the rank while it does: whoever holds byte 0 is the rank.

struct flock write_lock(off_t start, off_t length) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;  // 0: to the end, however long the file gets.
  return lock;
}

/// Opens the folder's records one by one; `visit` gets the file and its name.
void for_each_record(const Descriptor& folder,
                     const std::function<void(const Descriptor&, const char*)>& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(
      ::fdopendir(::openat(folder.number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), ::closedir);
  if (!listing) return;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_name[0] == '.') continue;
    const Descriptor file(
        ::openat(folder.number(), entry->d_name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.number() >= 0) visit(file, entry->d_name);
  }
}

/// The process of the rank that holds a record; -1: none does, and the record has been removed, or
/// somebody else is about to remove it.
pid_t holder_of(const Descriptor& file, const Descriptor& folder, const char* name) {
  struct flock lock = write_lock(1, 1);
  // Remove it with the lock held, so that no rank locks it meanwhile and takes it for its own.
  if (::fcntl(file.number(), F_SETLK, &lock) == 0) {
    ::unlinkat(folder.number(), name, 0);
    return -1;
  }
  lock = write_lock(0, 1);
  if (::fcntl(file.number(), F_GETLK, &lock) != 0) return -1;  // This file system has no locks.
  if (lock.l_type == F_UNLCK) return -1;
  return std::max(lock.l_pid, 0);  // It is negative where the rank runs on another machine.
}

/// Reads a record, which is "RANK " and nodefiles with a zero byte behind each, to the file's end.
std::string text_of(const Descriptor& file) {
  std::string text;
  char bytes[4096];
  for (ssize_t got = 0; (got = ::read(file.number(), bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<std::size_t>(got));
  }
  return text;
}

/// Returns whether the nodefile is among those of a record's text.
bool names(const std::string& text, const std::string& nodefile) {
  for (std::size_t begin = text.find(' '), end = 0; begin != std::string::npos; begin = end) {
    end = text.find('\0', ++begin);
    if (text.substr(begin, end - begin) == nodefile) return true;
  }
  return false;
}

/// Returns the number that this user has outside of the user namespace that it may be in. Root of a
/// namespace (a container without root, tools/netlab.sh) may share /tmp with root itself.
std::uint64_t user_outside() {
  const std::uint64_t user = ::geteuid();
  std::ifstream map("/proc/self/uid_map");
  for (std::uint64_t inside = 0, outside = 0, count = 0; map >> inside >> outside >> count;)
    if (user >= inside && user - inside < count) return outside + (user - inside);
  return user;
}

}  // namespace

std::string record_folder() {
  return "/tmp/duplex-" + std::to_string(user_outside());
}

std::string record_name(const std::string& nodefile) {
  return std::filesystem::absolute(nodefile).lexically_normal().string();
}

RankRecord::RankRecord(const std::vector<std::string>& nodefiles, int rank,
                       const std::string& folder) {
  try {
    std::string text = std::to_string(rank) + " ";
    for (const std::string& nodefile : nodefiles) text += record_name(nodefile) + '\0';
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      throw Error(folder + " cannot be made: " + error_text(errno));
    }
    Descriptor opened = open_folder(folder);
    ::flock(opened.number(), LOCK_SH | LOCK_NB);
    for_each_record(opened, [&](const Descriptor& file, const char* name) {
      holder_of(file, opened, name);  // Removes records of ranks that were killed.
    });
    path_ = folder + "/";
    write(opened, text);
    folder_ = opened.release();
  } catch (const std::exception& error) {
    trouble_ = std::string(error.what()) + "; duplex launch stop will not find this rank";
  }
}

void RankRecord::write(const Descriptor& folder, const std::string& text) {
  const std::string process = std::to_string(::getpid());
  for (int number = 0; number < 1000; ++number) {
    // A process of another pid namespace may have the same number, and a record.
    const std::string name = process + "." + std::to_string(number);
    Descriptor file(::openat(folder.number(), name.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.number() < 0 && errno == EEXIST) continue;
    const std::string place = path_ + name;
    if (file.number() < 0) throw Error(place + " cannot be made: " + error_text(errno));
    if (::write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      const int reason = errno;
      ::unlinkat(folder.number(), name.c_str(), 0);
      throw Error(place + " cannot be written: " + error_text(reason));
    }
    struct flock lock = write_lock(0, 0);
    while (::fcntl(file.number(), F_SETLKW, &lock) != 0) {
      if (errno == EINTR) continue;
      const int reason = errno;
      ::unlinkat(folder.number(), name.c_str(), 0);
      throw Error(place + " cannot be locked: " + error_text(reason));
    }
    // Another rank may have found it before it was locked, and removed it.
    struct stat status {};
    if (::fstat(file.number(), &status) != 0 || status.st_nlink == 0) continue;
    path_ = place;
    file_ = file.release();
    return;
  }
  throw Error(path_ + " takes no record");
}

RankRecord::~RankRecord() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
  ::close(folder_);
}

std::vector<RunningRank> running_ranks(const std::string& nodefile, const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0 && errno == ENOENT) return {};
  const Descriptor opened = open_folder(folder);
  const std::string name = record_name(nodefile);
  std::vector<RunningRank> ranks;
  for_each_record(opened, [&](const Descriptor& file, const char* record) {
    const pid_t process = holder_of(file, opened, record);
    if (process < 0) return;
    const std::string text = text_of(file);
    if (names(text, name)) ranks.push_back({std::atoi(text.c_str()), process});
  });
  std::sort(ranks.begin(), ranks.end(),
            [](const RunningRank& one, const RunningRank& other) { return one.rank < other.rank; });
  return ranks;
}

}  // namespace duplex::tools
