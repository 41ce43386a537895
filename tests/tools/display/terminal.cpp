#include "tests/tools/display/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>

namespace duplex::tools::testing {

std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

void Screen::feed(const std::string& bytes) {
  const auto end_rewriting = [&] {
    if (over_ && !lines_.back().empty()) rewritten_.push_back(lines_.back());
    over_ = false;
  };
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == '\n') {
      end_rewriting();
      lines_.emplace_back();
    } else if (bytes[i] == '\r') {
      // A terminal makes \r\n of \n.
      if (i + 1 < bytes.size() && bytes[i + 1] == '\n') continue;
      end_rewriting();
      lines_.back().clear();
      over_ = true;
    } else if (bytes.compare(i, 3, "\x1b[K") == 0) {
      end_rewriting();
      i += 2;
    } else {
      lines_.back() += bytes[i];
    }
  }
}

TerminalRun run_on_terminal(const std::vector<std::string>& arguments, std::size_t columns,
                            const std::string& locale) {
  const char* const program = std::getenv("DUPLEX");
  if (program == nullptr) throw std::runtime_error("DUPLEX does not name the program");
  const int master = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0 || ::grantpt(master) != 0 || ::unlockpt(master) != 0)
    throw std::runtime_error("there is no pseudo-terminal");
  const std::string name = ::ptsname(master);
  const int slave = ::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
  winsize size{};
  size.ws_row = 24;
  size.ws_col = static_cast<unsigned short>(columns);
  ::ioctl(slave, TIOCSWINSZ, &size);
  std::vector<char*> argv{const_cast<char*>(program)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    ::setenv("LC_ALL", locale.c_str(), 1);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(slave, stream);
    ::execvp(program, argv.data());
    ::_exit(127);
  }
  ::close(slave);
  TerminalRun run;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  char bytes[4096];
  for (;;) {
    pollfd polled{master, POLLIN, 0};
    ::poll(&polled, 1, 100);
    if (std::chrono::steady_clock::now() > deadline) ::kill(child, SIGKILL);
    if (polled.revents == 0) continue;
    // The read fails when the program and all that it has started have closed the terminal.
    const ssize_t got = ::read(master, bytes, sizeof bytes);
    if (got <= 0) break;
    run.bytes.append(bytes, static_cast<std::size_t>(got));
  }
  ::close(master);
  int status = 0;
  ::waitpid(child, &status, 0);
  run.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

}  // namespace duplex::tools::testing
