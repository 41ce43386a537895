#include "tools/launch/stop.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "tools/launch/hosts.h"
#include "tools/launch/rank_record.h"

namespace duplex::tools {
namespace {

/// A rank that was signalled. Its process is known by its number and by when it was started, since
/// another process may soon have the number.
struct Signalled {
  RunningRank rank;
  std::string started;  ///< Clock ticks after the machine's start.
};

struct ProcessStat {
  std::string state;    ///< One letter, as ps shows it. Empty: there is no such process.
  std::string started;  ///< Clock ticks after the machine's start.
};

ProcessStat stat_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t name_end = text.rfind(')');  // "PID (NAME) STATE ...", the start is the 22nd.
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  fields >> stat.state;
  for (int number = 4; number <= 22 && fields >> stat.started;) ++number;
  return stat;
}

/// Returns when a process was started. Empty if it is gone, or has ended and its parent has not yet
/// asked for its exit code.
std::string start_of(pid_t process) {
  const ProcessStat stat = stat_of(process);
  return stat.state == "Z" || stat.state == "X" ? "" : stat.started;
}

bool has_ended(const Signalled& one) {
  return start_of(one.rank.process) != one.started;
}

/// Waits for the end of all, and returns whether they ended in time. One that is stopped is killed
/// at once: the others wait for it, and then end by themselves. A rank gives its lock back a little
/// before its end, and only at its end its port and its GPU.
bool await_end(const std::vector<Signalled>& all) {
  const std::int64_t deadline = clock_ns() + static_cast<std::int64_t>(obey_seconds * 1e9);
  for (;;) {
    const bool ended = std::all_of(all.begin(), all.end(), has_ended);
    if (ended || clock_ns() > deadline) return ended;
    for (const Signalled& one : all)
      if (!has_ended(one) && is_stopped(one.rank.process)) ::kill(one.rank.process, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Starts a command that reads nothing and writes where this process does. Returns -1 if it cannot
/// be run.
pid_t start(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pid_t process = -1;
  const int reason =
      ::posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (reason == 0) return process;
  std::fprintf(stderr, "launch: %s cannot be run: %s\n", arguments[0],
               std::generic_category().message(reason).c_str());
  return -1;
}

/// Waits for a process, and returns its exit code, or 128 + the signal that ended it.
int code_of(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool is_stopped(int process) {
  const std::string state = stat_of(process).state;
  return state == "T" || state == "t";
}

int stop_here(const std::string& nodefile, const std::string& host) {
  std::vector<Signalled> signalled;
  std::vector<RunningRank> left;
  for (const RunningRank& rank : running_ranks(nodefile)) {
    const std::string started = start_of(rank.process);
    if (rank.process == 0) {
      left.push_back(rank);
    } else if (!started.empty()) {  // Otherwise it has just ended by itself.
      signalled.push_back({rank, started});
    }
  }
  for (const int signal : {SIGTERM, SIGKILL}) {
    for (const Signalled& one : signalled) {
      if (!has_ended(one)) ::kill(one.rank.process, signal);
    }
    if (await_end(signalled)) break;
  }
  std::size_t stopped = 0;
  for (const Signalled& one : signalled) {
    if (has_ended(one)) {
      ++stopped;
    } else {
      left.push_back(one.rank);
    }
  }
  if (stopped > 0) {
    std::printf("launch: stopped %zu %s on %s\n", stopped, stopped == 1 ? "rank" : "ranks",
                host.c_str());
  } else if (left.empty()) {
    std::printf("launch: nothing runs with %s on %s\n", nodefile.c_str(), host.c_str());
  }
  std::fflush(stdout);
  for (const RunningRank& rank : left) {
    std::fprintf(stderr, "launch: rank %d on %s still runs: %s\n", rank.rank, host.c_str(),
                 rank.process == 0 ? "it belongs to another pid namespace, as in a container; stop "
                                     "it from in there"
                                   : "SIGKILL does not end it");
  }
  return static_cast<int>(left.empty() ? Exit::ok : Exit::failed);
}

int stop_everywhere(const StopSpec& spec, const std::vector<net::Address>& nodes) {
  struct Host {
    std::string name;
    std::vector<std::string> command;
    pid_t process;
  };
  std::vector<Host> hosts;
  bool here = false;
  for (const net::Address& node : nodes) {
    const auto same = [&node](const Host& host) { return host.name == node.host; };
    if (std::any_of(hosts.begin(), hosts.end(), same)) continue;
    const bool elsewhere = !is_here(node.host);
    const std::vector<std::string> stop{spec.place.program,
                                        "launch",
                                        "stop",
                                        "--here",
                                        node.host,
                                        "--nodefile",
                                        elsewhere ? spec.there : spec.nodefile};
    if (elsewhere) {
      hosts.push_back({node.host,
                       ssh_command(spec.ssh, node.host, "exec " + joined(stop), spec.place.folder),
                       -1});
    } else if (!here) {  // This machine may have several names.
      hosts.push_back({node.host, stop, -1});
      here = true;
    }
  }
  if (spec.only_print) {
    for (const Host& host : hosts) std::printf("%s\n", joined(host.command).c_str());
    return 0;
  }
  for (Host& host : hosts) host.process = start(host.command);
  int code = 0;
  for (const Host& host : hosts) {
    const int ended = host.process < 0 ? 127 : code_of(host.process);
    if (ended == 0) continue;
    code = static_cast<int>(Exit::failed);
    // ssh gives the exit code of the shell there, or 255 if there is none.
    constexpr int no_way = 255;
    std::fprintf(stderr, "launch: %s %s: %s ended with exit code %d\n", host.name.c_str(),
                 ended == no_way ? "could not be reached" : "is not done", host.command[0].c_str(),
                 ended);
  }
  return code;
}

}  // namespace duplex::tools
