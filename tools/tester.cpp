#include "tools/tester.h"

#include <cstdio>

#include "tools/table.h"
#include "tools/training.h"

namespace duplex::tools {

Tester::Tester(Network& network, const datasets::Subset& test, const RunDirectory& directory,
               std::uint64_t steps_per_epoch)
    : network_(network), test_(test), directory_(directory), steps_per_epoch_(steps_per_epoch) {}

Accuracy Tester::test(std::uint64_t steps) {
  const Accuracy accuracy = evaluate(network_, test_, loader_threads());
  const double epochs = static_cast<double>(steps) / static_cast<double>(steps_per_epoch_);
  std::printf("accuracy %s after %s steps\n", accuracy.str().c_str(),
              grouped(static_cast<std::int64_t>(steps)).c_str());
  std::fflush(stdout);
  if (!file_) file_.emplace(directory_.file("accuracy.csv"), "step,epoch,samples,top1,top5,loss");
  char row[160];
  std::snprintf(row, sizeof row, "%llu,%.9g,%llu,%.9g,%.9g,%.9g",
                static_cast<unsigned long long>(steps), epochs,
                static_cast<unsigned long long>(accuracy.samples), accuracy.top1, accuracy.top5,
                accuracy.loss);
  file_->write(row);
  return accuracy;
}

}  // namespace duplex::tools
