// Exercises that measure with the program itself start it.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace duplex::course {

/// Returns the path of the program: bin/duplex, unless the environment variable DUPLEX names
/// another.
std::string duplex_program();

/// Runs `program` to its end. Any thread may call it. Returns what it printed. Throws Error where
/// it is missing, fails, or takes longer than `limit`; then it is ended.
std::string output_of(const std::string& program, const std::vector<std::string>& arguments,
                      std::chrono::seconds limit = std::chrono::seconds(60));
/// Does the same with duplex_program().
std::string output_of(const std::vector<std::string>& arguments);

/// Returns the numbers of a line that the program printed with --output csv.
std::vector<double> numbers_of(const std::string& line);

/// Returns a number of a JSON file, by the names that lead to it. Throws Error where there is none.
double number_in(const std::string& path, const std::vector<std::string>& names);

/// Returns a TCP port of loopback that nobody uses.
int free_port();

}  // namespace duplex::course
