#include "tests/campaigns/preload/watch.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace duplex::campaigns {
namespace {

constexpr std::array<const char*, frames> names{"none",    "connect", "accept", "open",
                                                "write",   "pwrite",  "fsync",  "rename",
                                                "forward", "backward"};
constexpr std::array<const char*, ways> prefixes{"send:", "body:", "receive:"};

/// The kinds of net/PROTOCOL.md.
const char* kind_name(int kind) {
  static const std::array<const char*, kinds> known = [] {
    std::array<const char*, kinds> all{};
    const std::pair<int, const char*> named[] = {
        {1, "hello"},     {2, "challenge"},   {3, "response"}, {4, "accept"},   {5, "reject"},
        {6, "ping"},      {7, "pong"},        {8, "offer"},    {9, "resume"},   {16, "weights"},
        {17, "gradient"}, {18, "heartbeat"},  {19, "report"},  {20, "goodbye"}, {21, "abort"},
        {22, "done"},     {23, "ask"},        {24, "grant"},   {25, "release"}, {26, "window"},
        {27, "pace"},     {28, "checkpoint"}, {29, "snapshot"}};
    for (const auto& [number, name] : named) all[static_cast<std::size_t>(number)] = name;
    return all;
  }();
  return known[static_cast<std::size_t>(kind)];
}

std::string name_of(int event) {
  if (event < frames) return names[static_cast<std::size_t>(event)];
  const int way = (event - frames) / kinds, kind = (event - frames) % kinds;
  const char* name = kind_name(kind);
  return prefixes[static_cast<std::size_t>(way)] +
         (name ? std::string(name) : std::to_string(kind));
}

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// Writes a file of the campaign, by system calls that this library does not count. Returns whether
/// that worked.
bool put(const std::string& path, const std::string& text, int flags) {
  const long file =
      ::syscall(SYS_openat, AT_FDCWD, path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);
  if (file < 0) return false;
  const long wrote = ::syscall(SYS_write, file, text.data(), text.size());
  ::syscall(SYS_close, file);
  return wrote == static_cast<long>(text.size());
}

std::string setting(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value ? value : otherwise;
}

/// This process's rank: that of `dist` in its command line, 0 for `local`, -1 for anything else.
int own_rank() {
  std::FILE* file = std::fopen("/proc/self/cmdline", "r");
  if (!file) return -1;
  std::vector<std::string> words(1);
  for (int letter; (letter = std::fgetc(file)) != EOF;) {
    if (letter == 0)
      words.emplace_back();
    else
      words.back() += static_cast<char>(letter);
  }
  std::fclose(file);
  if (words.size() < 2 || (words[1] != "dist" && words[1] != "local")) return -1;
  for (std::size_t i = 2; i + 1 < words.size(); ++i)
    if (words[i] == "--index") return std::atoi(words[i + 1].c_str());
  return words[1] == "local" ? 0 : -1;
}

/// It is made when the library is loaded, not at the first call: a rank's beginning counts.
const Watch& loaded = Watch::here();

}  // namespace

Watch& Watch::here() {
  static Watch one;
  return one;
}

Watch::Watch() : folder_(setting("AT_CALL_FOLDER", "")) {
  if (folder_.empty()) return;
  rank_ = own_rank();
  if (rank_ < 0) return;
  signal_ = std::atoi(setting("AT_CALL_SIGNAL", "0").c_str());
  late_ = ::access((folder_ + "/mark").c_str(), F_OK) == 0;
  if (signal_ != 0 && !late_ && rank_ == std::atoi(setting("AT_CALL_RANK", "-1").c_str())) {
    const std::string wanted = setting("AT_CALL_EVENT", "");
    for (int event = 1; event < events; ++event)
      if (name_of(event) == wanted) event_ = event;
  }
  number_ = std::strtoull(setting("AT_CALL_NUMBER", "1").c_str(), nullptr, 10);
  after_ = setting("AT_CALL_MOMENT", "before") == "after";
  delay_us_ = std::atoi(setting("AT_CALL_DELAY", "0").c_str());
  parent_ = setting("AT_CALL_TARGET", "self") == "parent";
}

Watch::~Watch() {
  if (rank_ >= 0 && signal_ == 0) write_counts();
}

std::uint64_t Watch::before(int event) {
  const std::uint64_t number = ++counts_[static_cast<std::size_t>(event)];
  hit(event, number, false);
  return number;
}

void Watch::after(int event, std::uint64_t number) {
  hit(event, number, true);
}

/// A test between two steps runs forward passes alone. So of the forward primitives before a
/// backward one, those of the last pass are of the training and the others are of a test.
std::uint64_t Watch::computes(int event) {
  const std::uint64_t number = before(event);
  if (event == forward) {
    if (late_ && !told_.exchange(true))
      put(folder_ + "/again", std::to_string(now()) + " " + std::to_string(rank_) + "\n", O_APPEND);
    ++in_a_row_;
  } else if (in_a_row_ > 0) {
    if (pass_ == 0) pass_ = in_a_row_;
    note_test(in_a_row_ - pass_, pass_);
    in_a_row_ = 0;
  }
  return number;
}

/// So many forward primitives belong to a test: the last ones but `behind`.
void Watch::note_test(std::uint64_t count, std::uint64_t behind) {
  const std::uint64_t last = counts_[forward] - behind;
  if (count > 0) tests_.emplace_back(last - count + 1, last);
}

void Watch::hit(int event, std::uint64_t number, bool after) {
  if (event != event_ || number != number_ || after != after_) return;
  if (delay_us_ == 0) return raise();
  std::thread([this] {
    ::usleep(static_cast<useconds_t>(delay_us_));
    raise();
  }).detach();
}

void Watch::raise() const {
  const pid_t target = parent_ ? ::getppid() : ::getpid();
  const std::string line = std::to_string(now()) + " " + std::to_string(target) + "\n";
  if (put(folder_ + "/mark", line, O_EXCL)) ::kill(target, signal_);
}

void Watch::write_counts() {
  note_test(pass_ == 0 ? 0 : in_a_row_, 0);
  std::string text;
  for (int event = 1; event < events; ++event) {
    const std::uint64_t count = counts_[static_cast<std::size_t>(event)];
    if (count > 0) text += name_of(event) + " " + std::to_string(count) + "\n";
  }
  for (const auto& [first, last] : tests_)
    text += "test " + std::to_string(first) + " " + std::to_string(last) + "\n";
  put(folder_ + "/counts-" + std::to_string(rank_), text, O_TRUNC);
}

}  // namespace duplex::campaigns
