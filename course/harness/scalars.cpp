#include "course/harness/scalars.h"

#include <cmath>
#include <cstring>

#include "course/harness/report.h"

namespace duplex::course {

std::string complaint_of_number(const std::string& function, const std::function<double()>& call,
                                double expected, double tolerance) {
  Guarded result("the result", 2, 0.0F);  // The two halves of a double.
  const std::string complaint = complaint_of_call(function, {&result}, [&] {
    const double number = call();
    std::memcpy(result.data(), &number, sizeof(number));
  });
  if (!complaint.empty()) return complaint;
  double number = 0.0;
  std::memcpy(&number, result.data(), sizeof(number));
  if (std::fabs(number - expected) <= tolerance * std::fabs(expected)) return "";  // NaN is not.
  return function + "() returned " + number_text(number) + ", expected " + number_text(expected);
}

}  // namespace duplex::course
