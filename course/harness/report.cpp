#include "course/harness/report.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <stdexcept>

#include "core/error.h"

namespace duplex::course {
namespace {

std::string complaint_of_fault(const Outcome& outcome, const std::vector<Guarded*>& memory) {
  // An address that no program can have is not told.
  if (outcome.nowhere)
    return "followed a pointer that leads nowhere: it was never set, or an index is far outside";
  const void* address = outcome.address;
  for (const Guarded* each : memory)
    if (const std::string place = each->place(address); !place.empty())
      return "touched memory " + place;
  if (reinterpret_cast<std::uintptr_t>(address) < 65536)
    return "followed a pointer that is null, or nearly so";
  return "touched memory that is not its own: an index is far outside, or a recursion has no end";
}

std::string complaint_of_signal(int signal) {
  switch (signal) {
    case SIGFPE:
      return "divided an integer by zero";
    case SIGILL:
      return "did what C++ does not define, such as a division by zero, or a loop that does "
             "nothing";
    case SIGABRT:
      return "was aborted: an assertion failed, or the heap is damaged";
    case SIGXCPU:
      return "did not end";
    case SIGXFSZ:
      return "wrote too much into a file";
    default:
      return "was ended by signal " + std::to_string(signal);
  }
}

std::string complaint_of_outcome(const Outcome& outcome, const std::vector<Guarded*>& memory,
                                 const Limits& limits) {
  switch (outcome.how) {
    case Outcome::How::finished:
      return "";
    case Outcome::How::threw:
      return "threw an exception: " + outcome.what;
    case Outcome::How::touched:
      return complaint_of_fault(outcome, memory);
    case Outcome::How::killed:
      return complaint_of_signal(outcome.signal);
    case Outcome::How::timed_out:
      return "did not end within " + number_text(static_cast<double>(limits.time.count()) * 1e-3) +
             " s";
    case Outcome::How::left:
      return "ended the program (exit()) instead of returning";
  }
  return "";
}

/// Returns a complaint about a call that ended so.
std::string complaint_of_end(const std::string& function, const std::vector<Guarded*>& memory,
                             const Outcome& outcome, const Limits& limits) {
  const std::string complaint = complaint_of_outcome(outcome, memory, limits);
  if (!complaint.empty()) {
    if (outcome.how == Outcome::How::threw && outcome.what.rfind(function + "() is not", 0) == 0)
      return outcome.what;
    return function + "() " + complaint;
  }
  for (const Guarded* each : memory)
    if (!each->intact()) return function + "() wrote before the beginning of " + each->name();
  return "";
}

}  // namespace

Report check_cases(const std::vector<Case>& cases) {
  Report report;
  report.cases = static_cast<int>(cases.size());
  for (const Case& each : cases) {
    report.complaint = each.complaint();
    if (!report.complaint.empty()) {
      report.failed = each.name;
      return report;
    }
    ++report.passed;
  }
  return report;
}

std::string complaint_of_call(const std::string& function, const std::vector<Guarded*>& memory,
                              const std::function<void()>& call, const Limits& limits) {
  return complaint_of_end(function, memory, run_in_child(call, limits), limits);
}

double seconds_of_call(const std::string& function, const std::vector<Guarded*>& memory,
                       const std::function<void()>& call, const Limits& limits) {
  const Outcome outcome = run_in_child(call, limits);
  const std::string complaint = complaint_of_end(function, memory, outcome, limits);
  if (!complaint.empty()) throw Error(complaint);
  return outcome.seconds;
}

std::string complaint_of_values(const float* got, const std::vector<float>& expected,
                                float tolerance,
                                const std::function<std::string(std::size_t)>& place) {
  float largest = 0.0F;
  for (const float value : expected) largest = std::max(largest, std::fabs(value));
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = expected.size(); i-- > 0;) {
    if (std::fabs(got[i] - expected[i]) <= tolerance * largest) continue;  // NaN is not.
    ++wrong;
    first = i;
  }
  if (wrong == 0) return "";
  return place(first) + " is " + number_text(static_cast<double>(got[first])) + ", expected " +
         number_text(static_cast<double>(expected[first])) + "; wrong: " + std::to_string(wrong) +
         " of " + std::to_string(expected.size()) + (expected.size() == 1 ? " value" : " values") +
         (std::isnan(got[first]) ? " (outputs are nan until they are set)" : "");
}

void not_written(const char* function) {
  throw std::logic_error(std::string(function) + "() is not written yet");
}

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "nan";
  char text[40];
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e15;
  std::snprintf(text, sizeof(text), "%.*g", whole ? 15 : digits, value);
  return text;
}

}  // namespace duplex::course
