#include "tools/deploy/call.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::tools {
namespace {

constexpr std::size_t piece = std::size_t{256} << 10;
/// No script says as much; what a command writes beyond that is dropped.
constexpr std::size_t most_said = std::size_t{4} << 20;

[[noreturn]] void fail(const char* what) {
  throw Error(std::string("launch: ") + what + ": " + std::generic_category().message(errno));
}

/// A pipe whose ends are closed by this process and by what it starts.
struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) fail("pipe");
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    close(read);
    close(write);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  static void close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

/// The input of a command, which is fed piece by piece.
class Feed {
 public:
  explicit Feed(const CallInput& input) : input_(input), offset_(input.offset) {}

  /// Writes as much as the pipe takes. Returns false when there is no more, or nobody reads it.
  bool write_to(int pipe) {
    if (sent_ == buffer_.size() && !refill()) return false;
    const ssize_t count = ::write(pipe, buffer_.data() + sent_, buffer_.size() - sent_);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    sent_ += static_cast<std::size_t>(count);
    total_ += static_cast<std::uint64_t>(count);
    return true;
  }
  std::uint64_t total() const { return total_; }

 private:
  bool refill() {
    sent_ = 0;
    buffer_.clear();
    if (!text_done_) {
      text_done_ = true;
      buffer_ = input_.text;
      if (!buffer_.empty()) return true;
    }
    if (input_.file < 0) return false;
    buffer_.resize(piece);
    const ssize_t count =
        ::pread(input_.file, buffer_.data(), buffer_.size(), static_cast<off_t>(offset_));
    buffer_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    offset_ += buffer_.size();
    return !buffer_.empty();
  }

  const CallInput& input_;
  std::string buffer_;
  std::size_t sent_ = 0;
  std::uint64_t offset_, total_ = 0;
  bool text_done_ = false;
};

pid_t start(const std::vector<std::string>& command, const Pipe& input, const Pipe& output,
            const Pipe& error, int out_file) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t process = ::fork();
  if (process < 0) fail("fork");
  if (process > 0) {
    ::setpgid(process, process);  // The child does so, too: whoever is first.
    return process;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setpgid(0, 0);  // Ctrl-C reaches this program alone, which then ends the group.
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input.read, STDIN_FILENO);
  ::dup2(out_file >= 0 ? out_file : output.write, STDOUT_FILENO);
  ::dup2(error.write, STDERR_FILENO);
  ::execvp(arguments[0], arguments.data());
  const char* why = std::strerror(errno);
  for (const char* part : {command[0].c_str(), " cannot be run: ", why, "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  ::_exit(127);
}

/// Appends what has come. Returns false at the end.
bool take(int from, std::string& to) {
  char bytes[1 << 16];
  const ssize_t count = ::read(from, bytes, sizeof bytes);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  if (to.size() < most_said) to.append(bytes, static_cast<std::size_t>(count));
  return count > 0;
}

/// A line without what could move a terminal's cursor.
std::string printable(std::string line) {
  line.erase(std::remove_if(line.begin(), line.end(),
                            [](unsigned char letter) { return letter < 32 || letter == 127; }),
             line.end());
  return line;
}

}  // namespace

std::vector<std::string> script_lines(const std::string& out) {
  std::vector<std::string> lines;
  std::istringstream text(out);
  for (std::string line; std::getline(text, line);)
    if (line.rfind(script_line, 0) == 0)
      lines.push_back(printable(line.substr(std::strlen(script_line))));
  return lines;
}

std::string CallResult::reason() const {
  const std::string problem = "problem ";
  for (const std::string& line : script_lines(out))
    if (line.rfind(problem, 0) == 0) return line.substr(problem.size());
  std::string last, offending;
  std::istringstream text(err);
  for (std::string line; std::getline(text, line);) {
    line = printable(line);
    // ssh says here which line of which file has the old key of a host whose key has changed.
    if (line.rfind("Offending", 0) == 0) offending = " (" + line + ")";
    if (line.find_first_not_of(' ') != std::string::npos) last = line;
  }
  if (last.empty()) return "exit code " + std::to_string(code);
  return last + offending;
}

CallResult call(const std::vector<std::string>& command, const CallInput& input,
                const std::atomic<bool>& stop, const std::function<void(std::uint64_t)>& fed,
                int out_file) {
  Pipe in, out, err;
  CallResult result;
  const pid_t process = start(command, in, out, err, out_file);
  Pipe::close(in.read);
  Pipe::close(out.write);
  Pipe::close(err.write);
  ::fcntl(in.write, F_SETFL, O_NONBLOCK);
  Feed feed(input);
  bool ending = false, insisted = false, ended = false;
  Clock::time_point asked;
  int status = 0;
  while (out.read >= 0 || err.read >= 0) {
    if (stop && !ending) {
      ::kill(-process, SIGTERM);
      asked = Clock::now();
    }
    ending = ending || stop;
    // launch waits for ranks that do not end, until it is asked again.
    if (ending && !insisted && Clock::now() - asked > std::chrono::seconds(2)) {
      ::kill(-process, SIGTERM);
      insisted = true;
    }
    pollfd polled[] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    if (::poll(polled, 3, 100) <= 0) {
      // A process that it has left running may hold its output open, as a connection that ssh keeps
      // does.
      if (::waitpid(process, &status, WNOHANG) != process) continue;
      ended = true;
      // The command's last output may have come since the poll.
      while (::poll(polled, 2, 0) > 0) {
        if (polled[0].revents != 0 && !take(out.read, result.out)) Pipe::close(out.read);
        if (polled[1].revents != 0 && !take(err.read, result.err)) Pipe::close(err.read);
        polled[0].fd = out.read;
        polled[1].fd = err.read;
      }
      break;
    }
    if (polled[0].revents != 0 && !take(out.read, result.out)) Pipe::close(out.read);
    if (polled[1].revents != 0 && !take(err.read, result.err)) Pipe::close(err.read);
    if (polled[2].revents != 0) {
      if (!feed.write_to(in.write)) Pipe::close(in.write);
      if (fed) fed(feed.total());
    }
  }
  Pipe::close(in.write);
  while (!ended && ::waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

PipesMayBreak::PipesMayBreak() : before_(::signal(SIGPIPE, SIG_IGN)) {}

PipesMayBreak::~PipesMayBreak() {
  ::signal(SIGPIPE, before_);
}

}  // namespace duplex::tools
