#include "course/harness/program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::course {
namespace {

constexpr std::chrono::seconds longest{60};

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string path_of_program() {
  const char* named = std::getenv("DUPLEX");
  const std::string path = named != nullptr ? named : "bin/duplex";
  if (::access(path.c_str(), X_OK) != 0)
    throw Error(path + " is missing, and this exercise measures with it: make builds it");
  return path;
}

}  // namespace

Program::Program(const std::vector<std::string>& arguments) {
  const std::string path = path_of_program();
  std::vector<char*> words{const_cast<char*>(path.c_str())};
  words_ = path;
  for (const std::string& each : arguments) {
    words.push_back(const_cast<char*>(each.c_str()));
    words_ += " " + each;
  }
  words.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error(words_ + ": no pipe: " + std::strerror(errno));
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(ends[1], 1);
    ::dup2(ends[1], 2);
    ::execv(path.c_str(), words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  out_ = ends[0];
  if (process_ < 0) throw Error(words_ + ": no process can be made: " + std::strerror(errno));
}

Program::~Program() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  ::close(out_);
}

std::string Program::output() {
  std::string text;
  const auto deadline = Clock::now() + longest;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd readable{out_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0)
      throw Error(words_ + ": took longer than a minute");
    char buffer[4096];
    const ssize_t got = ::read(out_, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 0;
  ::waitpid(process_, &status, 0);
  process_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error(words_ + ": failed: " + last_line(text));
  return text;
}

std::string output_of(const std::vector<std::string>& arguments) {
  return Program(arguments).output();
}

std::vector<double> numbers_of(const std::string& line) {
  std::vector<double> numbers;
  std::stringstream stream(line);
  std::string word;
  while (std::getline(stream, word, ';')) numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

double number_in(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const std::string key = "\"" + name + "\":", all = text.str();
  const std::size_t at = all.find(key);
  if (at == std::string::npos) throw Error(path + " has no " + name);
  return std::strtod(all.c_str() + at + key.size(), nullptr);
}

int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  const bool ok = ::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 &&
                  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!ok) throw Error(std::string("no port of loopback is free: ") + std::strerror(errno));
  return ntohs(address.sin_port);
}

}  // namespace duplex::course
