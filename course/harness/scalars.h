// Functions that return one number are checked here.
#pragma once
#include <functional>
#include <string>

namespace duplex::course {

/// Calls a student's function in a child process. Returns a complaint if it crashes or its number
/// differs from `expected` by more than `tolerance` times that; otherwise an empty text.
std::string complaint_of_number(const std::string& function, const std::function<double()>& call,
                                double expected, double tolerance = 1e-6);

}  // namespace duplex::course
