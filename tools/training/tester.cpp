#include "tools/training/tester.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "core/clock.h"
#include "tools/run_directory/run_files.h"
#include "tools/setup/setup.h"
#include "tools/text/table.h"
#include "tools/training/divergence.h"

namespace duplex::tools {

Tester::Tester(Network& network, const datasets::Subset& test, const RunDirectory& directory,
               const Schedule& schedule, const datasets::LoaderOptions& reading,
               std::uint64_t first, Troubles& troubles, const Display& display,
               std::function<void()> after_batch)
    : network_(network),
      test_(test),
      directory_(directory),
      schedule_(schedule),
      reading_(reading),
      troubles_(troubles),
      display_(display),
      after_batch_(std::move(after_batch)) {
  const std::string path = directory.file(accuracy_file);
  if (first == 0 || !std::filesystem::exists(path)) return;
  before_ =
      keep_rows<AccuracyRow>(path, [first](const AccuracyRow& row) { return row.step <= first; });
  file_.emplace(path, Rows::appended, troubles);
}

bool Tester::has_reached(const AccuracyTarget& target) const {
  return std::any_of(before_.begin(), before_.end(),
                     [&](const AccuracyRow& row) { return target.reached_by(row.top1, row.top5); });
}

Accuracy Tester::test(std::uint64_t steps) {
  if (last_ && last_->first == steps) return last_->second;
  const std::int64_t begin = clock_ns();
  Accuracy accuracy;
  PassOptions options;
  options.reading = reading_;
  options.after_batch = after_batch_;
  options.display = display_;
  const auto tested = [&] { accuracy = evaluate(network_, test_, options); };
  if (average_ != nullptr)
    average_->replace(network_, steps / schedule_.steps_per_update, tested);
  else
    tested();
  std::printf("accuracy %s after %s steps%s\n", accuracy.str().c_str(),
              grouped(static_cast<std::int64_t>(steps)).c_str(),
              average_ != nullptr ? ", of the averaged weights" : "");
  std::fflush(stdout);
  report_unreadable(accuracy.unreadable);
  if (!file_) file_.emplace(directory_.file(accuracy_file), Rows::anew, troubles_);
  const AccuracyRow row{steps,         schedule_.epochs(steps), accuracy.samples,  accuracy.top1,
                        accuracy.top5, accuracy.loss,           clock_ns() - begin};
  file_->write(row);
  if (told_) told_(row);
  last_ = {steps, accuracy};
  return accuracy;
}

bool Tester::reaches(std::uint64_t steps, const std::optional<AccuracyTarget>& target) {
  const Accuracy accuracy = test(steps);
  if (accuracy.not_finite == 0) return target && target->reached_by(accuracy.top1, accuracy.top5);
  throw diverged("step " + std::to_string(steps - 1), "the output for a test image");
}

}  // namespace duplex::tools
