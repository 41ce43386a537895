// Runs bin/duplex as a user does: a process, its output, its exit code.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools::testing {

struct Result {
  int exit = -1;  ///< Exit code; 128 + signal where one ended it.
  std::string out, err;
};

/// A program that runs. Ended with SIGKILL if it is still there at the end.
class Process {
 public:
  /// `arguments`: the command and its flags. `program`: $DUPLEX unless it is given.
  explicit Process(const std::vector<std::string>& arguments, const std::string& program = "");
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process& operator=(Process&&) = delete;

  /// Until it ends, or is ended with SIGKILL after a minute.
  Result wait();
  void kill(int signal) const;

 private:
  int pid_ = -1;
  int out_ = -1, err_ = -1;  ///< Unnamed files that take the output.
};

Result run(const std::vector<std::string>& arguments);

/// IDX files (Fashion-MNIST's form) of 28x28 images in 10 classes that can be told apart: a class
/// is a bright square in a place of its own, under noise.
void write_squares(const std::string& folder, int train, int test);

/// Words of a command line, and more of them.
std::vector<std::string> plus(std::vector<std::string> words, const std::vector<std::string>& more);

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
/// Waits until a file has so many bytes, 20 seconds at most.
void await_bytes(const std::string& path, std::size_t bytes);

/// `count` ports on loopback that were free a moment ago.
std::vector<int> free_ports(int count);

}  // namespace duplex::tools::testing
