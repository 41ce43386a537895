// A check of an exercise says here what it found.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "course/harness/child.h"
#include "course/harness/guarded.h"

namespace duplex::course {

/// A check tries cases from simple to hard, and ends with the first that fails.
struct Report {
  int passed = 0;         ///< How many cases passed, in the order of the check.
  int cases = 0;          ///< How many there are.
  std::string failed;     ///< Which case failed; empty: none.
  std::string complaint;  ///< What is wrong there, where, what was expected and what came.

  bool ok() const { return failed.empty(); }
};

/// A case of a check: what is special about it, and what tries it and returns a complaint, or an
/// empty text.
struct Case {
  std::string name;
  std::function<std::string()> complaint;
};
Report check_cases(const std::vector<Case>& cases);

/// Runs a student's function in a child process (run_in_child). Returns a complaint if it crashes,
/// takes too long, or writes outside of `memory`, which it was given; otherwise an empty text.
std::string complaint_of_call(const std::string& function, const std::vector<Guarded*>& memory,
                              const std::function<void()>& call, const Limits& limits = {});

/// Returns a complaint about the first value that differs by more than `tolerance` times the
/// largest expected value, or is not finite; otherwise an empty text. `place` says in words where
/// value i lies, such as "y[0][2][1][5]".
std::string complaint_of_values(const float* got, const std::vector<float>& expected,
                                float tolerance,
                                const std::function<std::string(std::size_t)>& place);

/// The stub of an exercise calls it in place of what is to be written. Throws.
[[noreturn]] void not_written(const char* function);

/// Returns the processor seconds that a call of a student's function takes. Throws Error where
/// complaint_of_call() would complain.
double seconds_of_call(const std::string& function, const std::vector<Guarded*>& memory,
                       const std::function<void()>& call, const Limits& limits = {});

/// Returns a number as messages have it: whole ones in full, others with so many digits.
std::string number_text(double value, int digits = 6);

}  // namespace duplex::course
