#include "tests/tools/program.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "core/random.h"

namespace duplex::tools::testing {
namespace {

/// Sanitizers make plain loops ten times slower.
std::chrono::minutes longest_run() {
  const char* sanitizer = std::getenv("SANITIZE");
  return std::chrono::minutes(sanitizer != nullptr && *sanitizer != '\0' ? 5 : 1);
}

std::string read_all(int file) {
  std::string text;
  char buffer[4096];
  ::lseek(file, 0, SEEK_SET);
  for (ssize_t got = 0; (got = ::read(file, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  return text;
}

void put_big_endian(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xFFU);
}

void write_part(const std::string& folder, const std::string& prefix, int count,
                std::uint64_t seed) {
  std::string images, labels;
  put_big_endian(images, 0x803);
  put_big_endian(labels, 0x801);
  for (std::string* file : {&images, &labels})
    put_big_endian(*file, static_cast<std::uint32_t>(count));
  put_big_endian(images, 28);
  put_big_endian(images, 28);
  for (int i = 0; i < count; ++i) {
    const int label = i % 10;
    const RandomStream noise(seed, static_cast<std::uint64_t>(i));
    labels += static_cast<char>(label);
    for (int row = 0; row < 28; ++row) {
      for (int column = 0; column < 28; ++column) {
        const bool bright = row / 7 == label / 3 && column / 9 == label % 3;
        const auto pixel = static_cast<std::uint64_t>(row * 28 + column);
        images += static_cast<char>((bright ? 128U : 0U) + noise.below(pixel, 127));
      }
    }
  }
  write_text(folder + "/" + prefix + "-images-idx3-ubyte", images);
  write_text(folder + "/" + prefix + "-labels-idx1-ubyte", labels);
}

/// Several processes may write to it at once. Linux locks the position of a memfd for none of them,
/// so all of them append.
int unnamed_file() {
  const int file = ::memfd_create("output", MFD_CLOEXEC);
  ::fcntl(file, F_SETFL, O_APPEND);
  return file;
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const std::string& program)
    : out_(unnamed_file()), err_(unnamed_file()) {
  const char* path = program.empty() ? std::getenv("DUPLEX") : program.c_str();
  if (path == nullptr) throw std::runtime_error("DUPLEX does not name the program; use make test");
  std::vector<char*> argv{const_cast<char*>(path)};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::dup2(out_, STDOUT_FILENO);
    ::dup2(err_, STDERR_FILENO);
    ::execvp(path, argv.data());
    ::_exit(127);
  }
}

Process::Process(Process&& other) noexcept : pid_(other.pid_), out_(other.out_), err_(other.err_) {
  other.pid_ = other.out_ = other.err_ = -1;
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

Result Process::wait() {
  int status = 0;
  std::string late;
  const auto deadline = std::chrono::steady_clock::now() + longest_run();
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (late.empty() && std::chrono::steady_clock::now() > deadline) {
      ::kill(pid_, SIGKILL);
      late = "the test ended it after " + std::to_string(longest_run().count()) + " min";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_all(out_),
          read_all(err_) + late};
}

void Process::kill(int signal) const {
  ::kill(pid_, signal);
  siginfo_t stopped;
  if (signal == SIGSTOP)
    ::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WEXITED | WNOWAIT);
}

Result run(const std::vector<std::string>& arguments) {
  return Process(arguments).wait();
}

void write_squares(const std::string& folder, int train, int test) {
  write_part(folder, "train", train, 1);
  write_part(folder, "t10k", test, 2);
}

std::vector<std::string> plus(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
}

void await_bytes(const std::string& path, std::size_t bytes) {
  for (int i = 0; i < 2000 && read_text(path).size() < bytes; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

std::vector<int> processes_with(const std::vector<std::string>& texts) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (number.find_first_not_of("0123456789") != std::string::npos) continue;
    std::string line = read_text(entry.path() / "cmdline");
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (std::all_of(texts.begin(), texts.end(),
                    [&](const std::string& text) { return line.find(text) != std::string::npos; }))
      found.push_back(std::stoi(number));
  }
  return found;
}

std::vector<int> free_ports(int count) {
  std::vector<int> sockets, ports;
  for (int i = 0; i < count; ++i) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (::bind(socket, reinterpret_cast<sockaddr*>(&address), length) != 0) {
      throw std::runtime_error("no free port on loopback");
    }
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
    sockets.push_back(socket);
    ports.push_back(ntohs(address.sin_port));
  }
  for (int socket : sockets) ::close(socket);
  return ports;
}

std::string nodes_here(int ranks, const std::vector<int>& slots) {
  std::string nodes;
  std::size_t rank = 0;
  for (const int port : free_ports(ranks)) {
    nodes += "127.0.0.1:" + std::to_string(port);
    if (rank < slots.size()) nodes += " slots=" + std::to_string(slots[rank]);
    nodes += "\n";
    ++rank;
  }
  return nodes;
}

}  // namespace duplex::tools::testing
