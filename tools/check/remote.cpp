#include "tools/check/remote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "core/error.h"
#include "net/wire/frame.h"
#include "tools/check/machine/messages.h"

namespace duplex::tools {
namespace {

/// The most that a machine may have said and nobody has read yet; facts of one that knows a
/// thousand others take less.
constexpr std::size_t most_text = std::size_t{1} << 20U;
constexpr std::size_t longest_words = 300;
/// Time that a process has to end when its input has ended.
constexpr std::chrono::milliseconds patience{1000};
/// Milliseconds in which it must have taken some of what was sent before.
constexpr int room_ms = 2000;

/// A pipe whose ends are closed in processes that are started.
struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error("check: no pipe can be made: " + std::generic_category().message(errno));
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  /// Gives an end away.
  int take(int end) {
    const int taken = ends[end];
    ends[end] = -1;
    return taken;
  }
};

}  // namespace

Remote::Remote(const std::vector<std::string>& command) : program_(command.at(0)) {
  Pipe input, output, errors;
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.ends[0], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.ends[1], STDERR_FILENO);
  ::posix_spawnattr_init(&attributes);
  // Ctrl-C reaches whoever checks alone; the end of their input ends the others. SIGPIPE ends a
  // shell there as it usually does.
  sigset_t usual;
  ::sigemptyset(&usual);
  ::sigaddset(&usual, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &usual);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  const int reason =
      ::posix_spawnp(&pid_, arguments[0], &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (reason != 0)
    throw Error("check: " + program_ +
                " cannot be run: " + std::generic_category().message(reason));
  input_ = input.take(1);
  streams_[0].from = output.take(0);
  streams_[1].from = errors.take(0);
  // A machine that takes nothing must not hold up the others.
  for (const int end : {input_, streams_[0].from, streams_[1].from})
    ::fcntl(end, F_SETFL, O_NONBLOCK);
}

Remote::~Remote() {
  end();
  for (Stream& stream : streams_)
    if (stream.from >= 0) ::close(stream.from);
}

bool Remote::ended() {
  int status = 0;
  if (code_ < 0 && ::waitpid(pid_, &status, WNOHANG) == pid_)
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return code_ >= 0;
}

void Remote::end() {
  close_input();
  bool killed = false;
  while (!ended()) {
    if (!killed && Clock::now() >= last_) killed = ::kill(-pid_, SIGKILL) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

void Remote::close_input() {
  if (input_ < 0) return;
  ::close(input_);
  input_ = -1;
  last_ = Clock::now() + patience;
}

void Remote::send(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size() && input_ >= 0;) {
    const ssize_t put = ::write(input_, text.data() + sent, text.size() - sent);
    pollfd room{input_, POLLOUT, 0};
    if (put > 0)
      sent += static_cast<std::size_t>(put);
    else if (errno != EINTR && (errno != EAGAIN || ::poll(&room, 1, room_ms) == 0))
      close_input();  // It has ended, or does not read the lines before.
  }
}

void Remote::read() {
  for (Stream& stream : streams_) {
    char piece[1 << 14];
    for (int pieces = 0; pieces < 64 && stream.from >= 0; ++pieces) {
      const ssize_t got = ::read(stream.from, piece, sizeof piece);
      if (got > 0) {
        // Bytes beyond the most are dropped.
        if (stream.text.size() < most_text)
          stream.text.append(piece, static_cast<std::size_t>(got));
        continue;
      }
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
      ::close(stream.from);
      stream.from = -1;
    }
  }
}

std::optional<std::string> Remote::next_answer() {
  std::string& text = streams_[0].text;
  for (std::size_t end; (end = text.find('\n')) != std::string::npos;) {
    std::string line = text.substr(0, end);
    text.erase(0, end + 1);
    if (is_answer(line)) return line;
  }
  return std::nullopt;
}

std::string Remote::last_words() {
  end();
  read();
  std::string words = streams_[1].text;
  const auto last = words.find_last_not_of(" \t\r\n");
  words.erase(last == std::string::npos ? 0 : last + 1);
  const auto line = words.find_last_of("\r\n");
  if (line != std::string::npos) words.erase(0, line + 1);
  words = net::printable(words.substr(0, longest_words));
  const std::string code = program_ + " ended with exit code " + std::to_string(code_);
  return words.empty() ? code : words;
}

}  // namespace duplex::tools
