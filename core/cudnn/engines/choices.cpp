#include "core/cudnn/engines/choices.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "core/cudnn/cache.h"

namespace duplex::cudnn {
namespace {

constexpr int most_proposals = 10000;

}  // namespace

Choices::Choices(const std::string& folder, const std::string& name)
    : path_(cache_file(folder, "engines " + name + ".txt")) {
  if (path_.empty()) return;
  std::ifstream file(path_);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) continue;
    std::istringstream numbers(line.substr(tab + 1));
    Choice choice;
    if (!(numbers >> choice.mode >> choice.position >> choice.engine >> choice.milliseconds))
      continue;
    const bool possible = choice.mode >= 0 && choice.mode <= 1 && choice.position >= 0 &&
                          choice.position < most_proposals && std::isfinite(choice.milliseconds);
    if (possible) known_[line.substr(0, tab)] = choice;
  }
}

std::optional<Choice> Choices::find(const std::string& key) const {
  const auto found = known_.find(key);
  return found == known_.end() ? std::nullopt : std::optional(found->second);
}

void Choices::keep(const std::string& key, const Choice& choice) {
  known_[key] = choice;
  if (path_.empty()) return;
  std::ostringstream line;
  line << key << '\t' << choice.mode << ' ' << choice.position << ' ' << choice.engine << ' '
       << choice.milliseconds << '\n';
  const std::string text = line.str();
  // One write of a whole line, which others' lines are not mixed with.
  const int file =
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  if (::write(file, text.data(), text.size()) < 0) path_.clear();
  ::close(file);
}

TimingLock::TimingLock(const std::string& folder, const std::string& gpu) {
  const std::string path = cache_file(folder, gpu + ".lock");
  if (path.empty()) return;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file_ >= 0) ::flock(file_, LOCK_EX);
}

TimingLock::~TimingLock() {
  if (file_ >= 0) ::close(file_);
}

}  // namespace duplex::cudnn
