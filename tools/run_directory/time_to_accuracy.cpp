#include "tools/run_directory/time_to_accuracy.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "net/ledger/ledger_row.h"
#include "tools/run_directory/row_file.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// Sums of what the rows of a training say, by the steps behind them.
class Sums {
 public:
  /// Rows may come in any order. Call sort() behind the last.
  void add(std::uint64_t steps, std::uint64_t value) { rows_.emplace_back(steps, value); }
  void sort() {
    std::sort(rows_.begin(), rows_.end());
    for (std::size_t i = 1; i < rows_.size(); ++i) rows_[i].second += rows_[i - 1].second;
  }
  /// Returns the sum of the rows of so many steps and fewer.
  std::uint64_t up_to(std::uint64_t steps) const {
    const auto behind =
        std::upper_bound(rows_.begin(), rows_.end(), steps,
                         [](std::uint64_t wanted, const auto& row) { return wanted < row.first; });
    return behind == rows_.begin() ? 0 : std::prev(behind)->second;
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> rows_;
};

/// Returns the bytes of all steps. Those of an averaging are of the last step before it, or of the
/// training's last where that comes first.
Sums bytes_of(const std::vector<net::StepTraffic>& traffic, std::uint64_t last,
              std::uint64_t average) {
  Sums bytes;
  const std::uint64_t apart = std::max<std::uint64_t>(average, 1);
  for (const net::StepTraffic& row : traffic)
    if (row.step < (last + apart - 1) / apart)
      bytes.add(std::min((row.step + 1) * apart, last), row.sent + row.received);
  bytes.sort();
  return bytes;
}

/// Returns the seconds of the first step, the first two, and so on, from 0 for none: as far as
/// each step has a row.
std::vector<double> seconds_of(const std::vector<StepMetrics>& metrics) {
  std::vector<std::pair<std::uint64_t, double>> rows;
  rows.reserve(metrics.size());
  for (const StepMetrics& row : metrics) rows.emplace_back(row.step, row.total);
  std::sort(rows.begin(), rows.end());
  std::vector<double> seconds{0.0};
  for (const auto& [step, total] : rows) {
    if (step >= seconds.size()) break;
    if (step + 1 == seconds.size()) seconds.push_back(seconds.back() + total);
  }
  return seconds;
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

std::vector<TimeToAccuracy> times_of_tests(const std::vector<AccuracyRow>& tests,
                                           const std::vector<StepMetrics>& metrics,
                                           const std::vector<net::StepTraffic>* traffic,
                                           const RowMeaning& meaning) {
  const std::vector<double> seconds = seconds_of(metrics);
  // The rows of a file stand in the order in which steps were closed.
  const bool known =
      traffic == nullptr || std::any_of(traffic->begin(), traffic->end(),
                                        [](const net::StepTraffic& row) { return row.step == 0; });
  std::uint64_t last = 0;
  for (const StepMetrics& row : metrics) last = std::max(last, row.step + 1);
  for (const AccuracyRow& test : tests) last = std::max(last, test.step);
  const Sums bytes = traffic == nullptr ? Sums() : bytes_of(*traffic, last, meaning.average);
  std::vector<TimeToAccuracy> times;
  double testing = 0.0;
  for (const AccuracyRow& test : tests) {
    TimeToAccuracy& time = times.emplace_back();
    time.steps = test.step;
    if (test.step < seconds.size())
      time.seconds = seconds[test.step] + (meaning.asynchronous ? testing : 0.0);
    if (known) time.bytes = bytes.up_to(test.step);
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
  if (!std::filesystem::exists(path(accuracy_file))) return std::nullopt;
  std::vector<StepMetrics> metrics;
  if (std::filesystem::exists(path(metrics_file)))
    metrics = read_rows<StepMetrics>(path(metrics_file), false);
  std::vector<net::StepTraffic> traffic;
  if (first_worker && std::filesystem::exists(path(traffic_file(*first_worker))))
    traffic = read_rows<net::StepTraffic>(path(traffic_file(*first_worker)), false);
  return time_to_accuracy(target, read_rows<AccuracyRow>(path(accuracy_file), false), metrics,
                          first_worker ? &traffic : nullptr, meaning);
}

std::string reached_report(const AccuracyTarget& target,
                           const std::optional<TimeToAccuracy>& time) {
  if (!time) return "reached  " + target.str() + " in no test\n";
  std::string text = "reached  " + target.str() + " after " +
                     grouped(static_cast<std::int64_t>(time->steps)) + " steps";
  if (!time->seconds)
    return text + "; " + metrics_file + " has not all of them, so their time is not known\n";
  text += ", " + fixed(*time->seconds, 1) + " s of training";
  if (time->bytes && *time->bytes > 0)
    text += " and " + fixed(1e-6 * static_cast<double>(*time->bytes), 1) + " MB";
  return text + "\n";
}

}  // namespace duplex::tools
