#include "tools/launch/children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"
#include "net/rendezvous/waiting.h"
#include "tools/display/status_line.h"
#include "tools/launch/stop.h"

namespace duplex::tools {
namespace {

/// Seconds that the other ranks have to end by themselves.
constexpr double grace_seconds = 4.0;
/// The longest pause before a process is started again, in seconds.
constexpr double longest_pause = 60.0;
/// Nanoseconds that a rank's streams stay open after it has ended and nothing more comes.
constexpr std::int64_t held_open_ns = 1000000000;

volatile sig_atomic_t interrupted = 0;      ///< So many have come.
volatile sig_atomic_t first_interrupt = 0;  ///< The first SIGINT, SIGTERM or SIGHUP.

void on_broken_pipe(int) {}

void on_interrupt(int signal) {
  // The terminal is gone then, and what ends the ranks must not end at a line for it.
  if (signal == SIGHUP) ::signal(SIGPIPE, on_broken_pipe);
  if (interrupted == 0) first_interrupt = signal;
  interrupted = interrupted + 1;
}

/// The process of a rank, and its output.
class Child {
 public:
  Child(std::size_t rank, const std::vector<std::string>& command) : rank_(rank) {
    int input[2] = {-1, -1}, output[2] = {-1, -1}, error[2] = {-1, -1};
    for (int* pipe : {input, output, error}) {
      if (::pipe2(pipe, O_CLOEXEC) != 0) fail("pipe");
    }
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t launcher = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) fail("fork");
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      // The launcher's handlers would swallow a signal that comes before execvp.
      ::signal(SIGINT, SIG_DFL);
      ::signal(SIGTERM, SIG_DFL);
      // A launcher that was killed before that has sent nothing.
      if (::getppid() != launcher) ::_exit(128 + SIGTERM);
      ::setpgid(0, 0);  // Ctrl-C reaches the launcher alone, which passes it on.
      ::dup2(input[0], STDIN_FILENO);
      ::dup2(output[1], STDOUT_FILENO);
      ::dup2(error[1], STDERR_FILENO);
      ::execvp(arguments[0], arguments.data());
      std::fprintf(stderr, "%s cannot be run: %s\n", arguments[0], std::strerror(errno));
      ::_exit(127);
    }
    ::setpgid(pid_, pid_);  // It may not have come to do so itself when a signal is due.
    for (const int end : {input[0], output[1], error[1]}) ::close(end);
    input_ = input[1];
    streams_[0] = {output[0], stdout, ""};
    streams_[1] = {error[0], stderr, ""};
  }
  ~Child() {
    if (input_ >= 0) ::close(input_);
    for (Stream& stream : streams_) {
      if (stream.from >= 0) ::close(stream.from);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void watch(std::vector<pollfd>& polled) const {
    for (const Stream& stream : streams_) polled.push_back({stream.from, POLLIN, 0});
  }
  /// Passes on, line by line, what has come on stream 0 (stdout) or 1 (stderr). `quiet`: not the
  /// line by which a rank says that it is there.
  void pass_on(std::size_t number, bool quiet, StatusLine& status) {
    Stream& stream = streams_[number];
    char bytes[4096];
    const ssize_t got = ::read(stream.from, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) return;
    if (got > 0) stream.line.append(bytes, static_cast<std::size_t>(got));
    if (got > 0) heard_ = clock_ns();
    show(stream, got <= 0, quiet, status);
  }
  /// Closes the streams of a rank that has ended and of which nothing has come for a second: a
  /// connection that its ssh keeps in the background may hold them open.
  void let_go(bool quiet, StatusLine& status) {
    if (code_ < 0 || clock_ns() - std::max(heard_, ended_) < held_open_ns) return;
    for (Stream& stream : streams_) {
      pollfd unread{stream.from, POLLIN, 0};
      if (stream.from >= 0 && ::poll(&unread, 1, 0) == 0) show(stream, true, quiet, status);
    }
  }
  bool silent() const { return streams_[0].from < 0 && streams_[1].from < 0; }

  /// Returns whether it has ended. Then code() is its exit code, or 128 + the signal that ended it.
  bool ended() {
    int status = 0;
    if (code_ >= 0) return true;
    if (::waitpid(pid_, &status, WNOHANG) != pid_) return false;
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    ended_ = clock_ns();
    return true;
  }
  int code() const { return code_; }
  RankEnd end() const { return {code_, began_, alone_}; }
  double lived() const { return seconds(clock_ns() - made_); }
  bool cannot_obey() const { return code_ < 0 && is_stopped(pid_); }
  std::size_t rank() const { return rank_; }
  void signal(int number) const {
    if (code_ < 0) ::kill(-pid_, number);
  }

 private:
  struct Stream {
    int from = -1;
    std::FILE* to = nullptr;
    std::string line;    ///< The bytes of which no whole piece has come yet.
    bool shown = false;  ///< The last piece was a line that is rewritten.
  };
  /// Passes on the whole pieces of a stream. `last`: no more of it comes, and it is closed.
  void show(Stream& stream, bool last, bool quiet, StatusLine& status) {
    if (last && !stream.line.empty()) stream.line += '\n';
    for (Piece piece; take_piece(stream.line, piece);) {
      if (piece.kind == Piece::Kind::rewritten) {
        status.show(piece.text);
        stream.shown = !piece.text.empty();
        continue;
      }
      if (stream.shown && piece.text.empty()) {
        status.keep();
      } else {
        const bool begins = !began_ && piece.text.rfind("rank ", 0) == 0;
        began_ = began_ || begins;
        alone_ = alone_ || piece.text.find(net::waited_in_vain) != std::string::npos;
        if (!begins || !quiet)
          status.line(stream.to, "[" + std::to_string(rank_) + "] " + piece.text);
      }
      stream.shown = false;
    }
    if (!last) return;
    ::close(stream.from);
    stream.from = -1;
  }
  [[noreturn]] static void fail(const char* what) {
    throw Error(std::string("launch: ") + what + ": " + std::generic_category().message(errno));
  }

  std::size_t rank_;
  pid_t pid_ = -1;
  int input_ = -1, code_ = -1;
  bool began_ = false, alone_ = false;
  const std::int64_t made_ = clock_ns();
  std::int64_t heard_ = 0, ended_ = 0;  ///< When something has come last, and when it has ended.
  Stream streams_[2];
};

class Launch {
 public:
  Launch(const std::vector<std::vector<std::string>>& commands, const TogetherRules& rules)
      : rules_(rules), again_(commands.size()) {
    for (const auto& command : commands) {
      children_.push_back(std::make_unique<Child>(children_.size(), command));
    }
  }

  /// Runs until all have ended.
  TogetherResult run() {
    while (!all_ended()) {
      pass_on();
      start_again();
      notice();
      kill_the_stopped();
      end_those_that_wait();
    }
    TogetherResult result{code_, code_ != 0 && !asked_ && !refused_, {}};
    if (interrupted != 0) result = {128 + first_interrupt, false, {}};
    for (const auto& child : children_) result.ends.push_back(child->end());
    return result;
  }

 private:
  bool all_ended() {
    bool all = true;
    for (const auto& child : children_) {
      const bool before = child->code() >= 0;
      if (child->ended() && !before && child->code() != 0) note_failure(*child);
      child->let_go(rules_.quiet, status_);
      all = all && child->ended() && child->silent() && !again_[child->rank()].command;
    }
    return all;
  }

  void note_failure(const Child& child) {
    const bool goes_on = !rules_.needed(child.rank());
    if (goes_on && again_[child.rank()].started && needed_ended_well()) return;
    if (interrupted == 0 && (code_ == 0 || goes_on))
      status_.line(stderr, "launch: rank " + std::to_string(child.rank()) +
                               " ended with exit code " + std::to_string(child.code()) +
                               (goes_on ? "; the others may go on without it" : ""));
    if (goes_on && plan_again(child)) return;
    // A rank that says why it failed (1, 2) would fail again.
    refused_ = refused_ || child.code() == 1 || child.code() == 2;
    // Somebody else has ended this rank, as `launch stop` does. Another rank that lost it may have
    // been noticed first, where both ended at once.
    const bool asked =
        !signalled_ && (child.code() == 128 + SIGINT || child.code() == 128 + SIGTERM);
    if (code_ == 0 || (asked && !asked_ && !refused_)) code_ = child.code();
    asked_ = asked_ || asked;
    if (!goes_on && deadline_ == 0) end_others(grace_seconds);  // Otherwise they are being ended.
  }

  bool needed_ended_well() const {
    for (const auto& child : children_)
      if (rules_.needed(child->rank()) && child->code() != 0) return false;
    return true;
  }

  /// Returns whether a process that has failed is started again.
  bool plan_again(const Child& child) {
    const bool lost =
        child.code() == 3 || child.code() == 4 ||
        (child.code() > 128 && child.code() != 128 + SIGINT && child.code() != 128 + SIGTERM);
    if (!lost || !rules_.again || interrupted != 0 || deadline_ != 0) return false;
    Again& again = again_[child.rank()];
    again.command = rules_.again(child.rank());
    if (!again.command) return false;
    // One that soon fails again may have a cause that lasts, such as a machine that is off.
    again.pause = child.lived() > longest_pause || !again.started
                      ? 0.0
                      : std::min(longest_pause, std::max(1.0, 2.0 * again.pause));
    again.at = clock_ns() + static_cast<std::int64_t>(again.pause * 1e9);
    return true;
  }

  void start_again() {
    for (std::size_t number = 0; number < again_.size(); ++number) {
      Again& again = again_[number];
      if (!again.command || !children_[number]->silent()) continue;
      const bool useless = interrupted != 0 || deadline_ != 0 || needed_ended_well();
      if (!useless && clock_ns() < again.at) continue;
      if (!useless) children_[number] = std::make_unique<Child>(number, *again.command);
      again.started = true;
      again.command.reset();
    }
  }

  /// Where nobody comes back any more, the needed ones wait in vain for those that have failed; and
  /// where they have ended well, one that was started again waits in vain for them.
  void end_those_that_wait() {
    if (!rules_.again || deadline_ != 0) return;
    const bool over = needed_ended_well();
    bool any = false, all_failed = true, runs = false;
    for (const auto& child : children_) {
      if (rules_.needed(child->rank())) continue;
      any = true;
      all_failed = all_failed && child->code() > 0 && !again_[child->rank()].command;
      runs = runs || (child->code() < 0 && again_[child->rank()].started);
    }
    if (any && all_failed && !over) end_others(0.0);
    if (over && runs) end_others(grace_seconds);
  }

  void pass_on() {
    std::vector<pollfd> polled;
    for (const auto& child : children_) child->watch(polled);
    if (::poll(polled.data(), polled.size(), 50) <= 0) return;
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd >= 0 && polled[i].revents != 0)
        children_[i / 2]->pass_on(i % 2, rules_.quiet, status_);
    }
  }

  /// Acts on Ctrl-C, and on the deadlines of ranks that are to end.
  void notice() {
    if (interrupted != 0 && deadline_ == 0) {
      status_.line(stderr, "launch: interrupted; ending all ranks");
      end_others(0.0);
    }
    if (interrupted > 1 && next_signal_ == SIGKILL) deadline_ = clock_ns();
    if (deadline_ == 0 || next_signal_ == 0) return;
    if (next_signal_ == SIGKILL)
      for (const auto& child : children_)
        if (child->cannot_obey()) child->signal(SIGKILL);
    if (clock_ns() < deadline_) return;
    for (const auto& child : children_) child->signal(next_signal_);
    signalled_ = true;
    next_signal_ = next_signal_ == SIGTERM ? SIGKILL : 0;
    deadline_ = clock_ns() + static_cast<std::int64_t>(obey_seconds * 1e9);
  }

  /// Kills ranks that are stopped, where they alone still run, and the others have failed or have
  /// ended without them: they cannot end by themselves.
  void kill_the_stopped() {
    for (const auto& child : children_) {
      if (child->code() >= 0) continue;
      if (!child->cannot_obey() || (code_ == 0 && rules_.needed(child->rank()))) return;
    }
    for (const auto& child : children_) child->signal(SIGKILL);
  }

  void end_others(double after) {
    deadline_ = clock_ns() + static_cast<std::int64_t>(after * 1e9);
    next_signal_ = SIGTERM;
  }

  /// How a process is started again.
  struct Again {
    std::optional<std::vector<std::string>> command;  ///< Set while it is due.
    std::int64_t at = 0;                              ///< When it is due.
    double pause = 0.0;
    bool started = false;  ///< It has been, once at least.
  };

  const TogetherRules& rules_;
  std::vector<Again> again_;
  std::vector<std::unique_ptr<Child>> children_;
  StatusLine status_;
  int code_ = 0;
  bool asked_ = false;      ///< Somebody else has asked a rank to end, by a signal.
  bool signalled_ = false;  ///< The ranks have been told to end by this launch itself.
  bool refused_ = false;    ///< A rank has failed for a reason of its own.
  std::int64_t deadline_ = 0;
  int next_signal_ = 0;
};

}  // namespace

void note_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler == SIG_IGN) return;  // nohup
  ::sigaction(SIGHUP, &action, nullptr);
}

int interrupts() {
  return interrupted;
}

int interruption() {
  return first_interrupt;
}

TogetherResult run_together(const std::vector<std::vector<std::string>>& commands,
                            const TogetherRules& rules) {
  note_interrupts();
  return Launch(commands, rules).run();
}

int pause_together(double seconds) {
  const std::int64_t end = clock_ns() + static_cast<std::int64_t>(seconds * 1e9);
  while (interrupted == 0 && clock_ns() < end) ::poll(nullptr, 0, 50);
  return interrupted == 0 ? 0 : 128 + first_interrupt;
}

}  // namespace duplex::tools
