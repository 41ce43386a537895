#include "tests/campaigns/kills/team.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "tests/tools/program.h"

namespace duplex::campaigns {
namespace {

constexpr useconds_t look_every_us = 3000;
constexpr int first_port = 20000, last_port = 32000;

double seconds_between(std::int64_t from, std::int64_t to) {
  return static_cast<double>(to - from) * 1e-9;
}

bool is_free(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  const bool free = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(socket);
  return free;
}

}  // namespace

std::int64_t clock_now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

Ports::Ports(int part, int parts) {
  const int each = (last_port - first_port) / parts;
  begin_ = first_port + part * each;
  end_ = begin_ + each;
  last_ = begin_ + ::getpid() % each;  // Those of a campaign that has just ended may not be free.
}

std::vector<int> Ports::next(int count) {
  std::vector<int> ports;
  while (ports.size() < static_cast<std::size_t>(count)) {
    if (++last_ >= end_) last_ = begin_;
    if (is_free(last_)) ports.push_back(last_);
  }
  return ports;
}

std::optional<Mark> read_mark(const std::string& folder) {
  std::ifstream file(folder + "/mark");
  Mark mark;
  if (!(file >> mark.time >> mark.pid)) return std::nullopt;
  return mark;
}

Team::~Team() {
  kill_all();
  for (const std::int64_t from = clock_now(); seconds_between(from, clock_now()) < 5.0;) {
    reap();
    if (!left_) break;
    ::usleep(look_every_us);
  }
}

void Team::start(int rank, const Words& words, const Words& settings, const std::string& log) {
  const char* program = std::getenv("DUPLEX");
  if (program == nullptr) throw std::runtime_error("DUPLEX does not name the program");
  std::vector<char*> arguments{const_cast<char*>(program)};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  Member member;
  member.rank = rank;
  member.log = log;
  member.pid = ::fork();
  if (member.pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (member.pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // It does not outlive a campaign that is interrupted.
    const int output = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
    for (const std::string& setting : settings) ::putenv(const_cast<char*>(setting.c_str()));
    ::execvp(program, arguments.data());
    ::_exit(127);
  }
  members_.push_back(member);
  left_ = true;
}

/// Takes the exit codes of all that have ended. The launcher's ranks are this program's children
/// once the launcher is gone.
void Team::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    auto member = std::find_if(members_.begin(), members_.end(),
                               [&](const Member& each) { return each.pid == pid; });
    if (member == members_.end()) {
      members_.emplace_back();
      member = members_.end() - 1;
      member->pid = pid;
      member->orphan = true;
    }
    member->exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    member->ended = clock_now();
  }
  left_ = pid == 0;  // Otherwise there are no children.
}

void Team::kill_all() const {
  for (const Member& member : members_)
    if (member.exit < 0) ::kill(member.pid, SIGKILL);
  if (!left_) return;
  for (const int pid : tools::testing::processes_with({folder_})) {
    if (pid != ::getpid()) ::kill(pid, SIGKILL);
  }
}

bool Team::wait(const Limits& limits) {
  std::int64_t last = clock_now(), since = last;
  std::optional<Mark> mark;
  bool resumed = false;
  for (;;) {
    reap();
    if (!left_) return true;
    const std::int64_t now = clock_now();
    gap_ = std::max(gap_, seconds_between(last, now));
    last = now;
    if (!mark && (mark = read_mark(folder_))) since = mark->time;
    const double passed = seconds_between(since, now);
    if (mark && !resumed && limits.resume_s > 0.0 && passed > limits.resume_s) {
      ::kill(mark->pid, SIGCONT);
      resumed = true;
    }
    if (passed > limits.hung_s) {
      kill_all();
      return false;
    }
    ::usleep(look_every_us);
  }
}

const Member* Team::of_rank(int rank) const {
  const auto member = std::find_if(members_.begin(), members_.end(),
                                   [&](const Member& each) { return each.rank == rank; });
  return member == members_.end() ? nullptr : &*member;
}

}  // namespace duplex::campaigns
