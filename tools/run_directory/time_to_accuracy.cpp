#include "tools/run_directory/time_to_accuracy.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "net/ledger/ledger_row.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// Returns the bytes of all steps before each one, and of all, none where `traffic` is null. Those
/// of an averaging are of the last step before it.
std::vector<std::uint64_t> bytes_before(const std::vector<net::StepTraffic>* traffic,
                                        std::size_t steps, std::uint64_t average) {
  std::vector<std::uint64_t> bytes(steps + 1);
  if (traffic == nullptr) return bytes;
  const std::uint64_t apart = std::max<std::uint64_t>(average, 1);
  for (const net::StepTraffic& row : *traffic)
    if (row.step < steps && row.step * apart < steps)
      bytes[std::min<std::uint64_t>((row.step + 1) * apart, steps)] += row.sent + row.received;
  std::partial_sum(bytes.begin(), bytes.end(), bytes.begin());
  return bytes;
}

}  // namespace

std::string AccuracyTarget::str() const {
  std::ostringstream text;
  text << (top5 ? "top5:" : "top1:") << fraction;
  return text.str();
}

AccuracyTarget parse_accuracy_target(const std::string& text) {
  const std::string measure = text.substr(0, text.find(':'));
  AccuracyTarget target;
  target.top5 = measure == "top5";
  if ((target.top5 || measure == "top1") && text.size() > measure.size() + 1) {
    char* end = nullptr;
    target.fraction = std::strtod(text.c_str() + measure.size() + 1, &end);
    if (*end == '\0' && target.fraction > 0.0 && target.fraction <= 1.0) return target;
  }
  throw Error("'" + text +
                  "' is no accuracy to reach; it is written as top1:0.88 or top5:0.98, a part of "
                  "the test images above 0 and up to 1",
              Exit::usage);
}

std::vector<std::optional<TimeToAccuracy>> times_of_tests(
    const std::vector<AccuracyRow>& tests, const std::vector<StepMetrics>& metrics,
    const std::vector<net::StepTraffic>* traffic, const RowMeaning& meaning) {
  std::vector<double> seconds(metrics.size() + 1);  // Sums of the steps before each one.
  for (std::size_t step = 0; step < metrics.size(); ++step)
    seconds[step + 1] = seconds[step] + metrics[step].total;
  // The rows of a file stand in the order in which steps were closed.
  const bool known =
      traffic == nullptr || std::any_of(traffic->begin(), traffic->end(),
                                        [](const net::StepTraffic& row) { return row.step == 0; });
  const std::vector<std::uint64_t> bytes = bytes_before(traffic, metrics.size(), meaning.average);
  std::vector<std::optional<TimeToAccuracy>> times;
  double testing = 0.0;
  for (const AccuracyRow& test : tests) {
    times.emplace_back();
    if (test.step <= metrics.size()) {
      times.back() = {test.step, seconds[test.step] + (meaning.asynchronous ? testing : 0.0), {}};
      if (known) times.back()->bytes = bytes[test.step];
    }
    testing += 1e-9 * static_cast<double>(test.test_ns);
  }
  return times;
}

std::optional<TimeToAccuracy> time_to_accuracy(const AccuracyTarget& target,
                                               const std::vector<AccuracyRow>& tests,
                                               const std::vector<StepMetrics>& metrics,
                                               const std::vector<net::StepTraffic>* traffic,
                                               const RowMeaning& meaning) {
  const auto times = times_of_tests(tests, metrics, traffic, meaning);
  for (std::size_t test = 0; test < tests.size(); ++test)
    if (target.reached_by(tests[test].top1, tests[test].top5)) return times[test];
  return std::nullopt;
}

std::optional<TimeToAccuracy> time_to_accuracy(const std::string& directory,
                                               const AccuracyTarget& target,
                                               std::optional<int> first_worker,
                                               const RowMeaning& meaning) {
  const auto path = [&](const std::string& name) { return directory + "/" + name; };
  for (const char* file : {accuracy_file, metrics_file})
    if (!std::filesystem::exists(path(file))) return std::nullopt;
  std::vector<net::StepTraffic> traffic;
  if (first_worker && std::filesystem::exists(path(traffic_file(*first_worker))))
    traffic = read_rows<net::StepTraffic>(path(traffic_file(*first_worker)), false);
  return time_to_accuracy(target, read_rows<AccuracyRow>(path(accuracy_file), false),
                          read_rows<StepMetrics>(path(metrics_file), false),
                          first_worker ? &traffic : nullptr, meaning);
}

std::string reached_report(const AccuracyTarget& target,
                           const std::optional<TimeToAccuracy>& time) {
  if (!time) return "reached  " + target.str() + " in no test\n";
  std::string text = "reached  " + target.str() + " after " +
                     grouped(static_cast<std::int64_t>(time->steps)) + " steps, " +
                     fixed(time->seconds, 1) + " s of training";
  if (time->bytes && *time->bytes > 0)
    text += " and " + fixed(1e-6 * static_cast<double>(*time->bytes), 1) + " MB";
  return text + "\n";
}

}  // namespace duplex::tools
