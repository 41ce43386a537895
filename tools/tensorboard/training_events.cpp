#include "tools/tensorboard/training_events.h"

#include <utility>

namespace duplex::tools {

void TrainingEvents::begin(std::uint64_t steps, std::int64_t batch,
                           std::function<WireBytes()> wire) {
  batch_ = static_cast<double>(batch);
  wire_ = std::move(wire);
  if (wire_) before_ = wire_();
  file_.begin(steps);
}

void TrainingEvents::step(const StepMetrics& row) {
  Scalars scalars;
  if (row.loss) scalars.emplace_back("train/loss", *row.loss);
  scalars.emplace_back("train/learning_rate", row.rate);
  if (row.total > 0.0) scalars.emplace_back("train/images_per_second", batch_ / row.total);
  if (wire_) {
    const WireBytes now = wire_();
    scalars.emplace_back("wire/bytes_sent", static_cast<double>(now.sent - before_.sent));
    scalars.emplace_back("wire/bytes_received",
                         static_cast<double>(now.received - before_.received));
    scalars.emplace_back("wire/seconds_waiting", row.await);
    before_ = now;
  }
  file_.write(row.step + 1, scalars);
}

void TrainingEvents::test(const AccuracyRow& row) {
  Scalars scalars{{"test/top1", row.top1}, {"test/top5", row.top5}};
  if (row.loss) scalars.emplace_back("test/loss", *row.loss);
  file_.write(row.step, scalars);
}

}  // namespace duplex::tools
