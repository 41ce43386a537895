// Exercises that measure with the program itself start it.
#pragma once
#include <string>
#include <vector>

namespace duplex::course {

/// Runs the program, bin/duplex unless the environment variable DUPLEX names another, to its end.
/// Any thread may call it. Returns what it printed. Throws Error where it is missing or fails.
std::string output_of(const std::vector<std::string>& arguments);

/// Returns the numbers of a line that the program printed with --output csv.
std::vector<double> numbers_of(const std::string& line);

/// Returns a number of a JSON file, by the names that lead to it. Throws Error where there is none.
double number_in(const std::string& path, const std::vector<std::string>& names);

/// Returns a TCP port of loopback that nobody uses.
int free_port();

}  // namespace duplex::course
