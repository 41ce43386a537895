// Exercises that measure with the program itself start it.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace duplex::course {

/// The program, bin/duplex unless the environment variable DUPLEX names another, with its
/// arguments. It is ended when the object is destroyed.
class Program {
 public:
  /// Starts it. Throws Error where it is missing or cannot be started.
  explicit Program(const std::vector<std::string>& arguments);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Waits for its end and returns what it printed. Throws Error with the last line of its errors
  /// where it failed or took longer than a minute.
  std::string output();

 private:
  std::string words_;
  int out_ = -1;  ///< Where its output and its errors come.
  pid_t process_ = -1;
};

/// Runs the program to its end.
std::string output_of(const std::vector<std::string>& arguments);

/// Returns the numbers of a line that the program printed with --output csv.
std::vector<double> numbers_of(const std::string& line);

/// Returns the number behind "name": in a file of JSON, of which the first one of that name counts.
/// Throws Error where there is none.
double number_in(const std::string& path, const std::string& name);

/// Returns a TCP port of loopback that nobody uses.
int free_port();

}  // namespace duplex::course
