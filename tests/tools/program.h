// Runs bin/duplex as a user does, and gives its output and exit code.
#pragma once
#include <string>
#include <vector>

namespace duplex::tools::testing {

struct Result {
  int exit = -1;  ///< Exit code; 128 + signal if a signal ended it.
  std::string out, err;
};

/// A program that runs. It is ended with SIGKILL if it still runs at the end.
class Process {
 public:
  /// `arguments` are the command and its flags. `program` is $DUPLEX unless it is given.
  explicit Process(const std::vector<std::string>& arguments, const std::string& program = "");
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  Process& operator=(Process&&) = delete;

  /// Waits until the program ends; ends it with SIGKILL after a minute, or
  /// after five where the environment says SANITIZE.
  Result wait();
  /// Returns from SIGSTOP when all of its threads have stopped.
  void kill(int signal) const;

 private:
  int pid_ = -1;
  int out_ = -1, err_ = -1;  ///< Unnamed files that receive the output.
};

Result run(const std::vector<std::string>& arguments);

/// Writes IDX files (Fashion-MNIST's format) of 28x28 images in 10 classes that can be told apart:
/// each class is a bright square in a place of its own, under noise.
void write_squares(const std::string& folder, int train, int test);

/// Appends more words to those of a command line.
std::vector<std::string> plus(std::vector<std::string> words, const std::vector<std::string>& more);

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
/// Waits until a file has so many bytes, for 20 seconds at most.
void await_bytes(const std::string& path, std::size_t bytes);

/// Returns the processes whose command line has all of these texts, as the kernel lists them.
std::vector<int> processes_with(const std::vector<std::string>& texts);

/// Returns `count` ports on loopback that were free a moment ago.
std::vector<int> free_ports(int count);
/// A nodefile of so many ranks on this machine, at free ports: others may run tests here, too.
/// `slots` are those of the first ranks; the others have one.
std::string nodes_here(int ranks, const std::vector<int>& slots = {});

}  // namespace duplex::tools::testing
