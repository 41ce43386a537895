#include "tools/display/progress_line.h"

#include <string>

#include "tools/display/progress_bar.h"
#include "tools/text/peak_memory.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// Seconds over which the rate on a terminal is the mean: it follows a machine that slows down.
constexpr double rate_seconds = 10.0;

}  // namespace

void ProgressLine::show(std::uint64_t step, const std::optional<double>& loss,
                        const std::optional<Hits>& hits, double gone) {
  if (display_.rewrites()) {
    recent_.push_back({loss, hits});
    if (recent_.size() > recent_batches) recent_.pop_front();
  }
  const bool last = display_.rewrites() && step + 1 == schedule_.steps;
  if (!progress_.due() && !last) return;
  if (display_.rewrites())
    show_bar(step, gone);
  else
    show_plain(step, loss, gone);
}

void ProgressLine::show_plain(std::uint64_t step, const std::optional<double>& loss, double gone) {
  const auto done = static_cast<double>(step + 1 - first_);
  const auto left = static_cast<double>(schedule_.steps - step - 1);
  progress_.show("epoch " + std::to_string(schedule_.epoch_of(step) + 1) + ", batch " +
                 std::to_string(step + 1) + "/" + std::to_string(schedule_.steps) +
                 (loss ? ", loss " + fixed(*loss, 4) : "") + ", " +
                 fixed(done * static_cast<double>(batch_) / gone, 1) + " images/s, " +
                 clock_text(gone / done * left) + " left");
}

void ProgressLine::show_bar(std::uint64_t step, double gone) {
  TrainingProgress shown;
  shown.done = step + 1;
  shown.steps = schedule_.steps;
  shown.epoch = schedule_.epoch_of(step) + 1;
  double sum = 0.0;
  std::size_t losses = 0;
  Hits hits;
  for (const Outcome& outcome : recent_) {
    sum += outcome.loss.value_or(0.0);
    losses += outcome.loss ? 1U : 0U;
    hits.right += outcome.hits ? outcome.hits->right : 0U;
    hits.samples += outcome.hits ? outcome.hits->samples : 0U;
  }
  if (losses > 0) shown.loss = sum / static_cast<double>(losses);
  if (hits.samples > 0)
    shown.top1 = static_cast<double>(hits.right) / static_cast<double>(hits.samples);
  const double rate = steps_a_second({static_cast<double>(step + 1 - first_), gone});
  shown.images = rate * static_cast<double>(batch_);
  if (rate > 0.0) shown.left = static_cast<double>(schedule_.steps - step - 1) / rate;
  shown.memory_bytes = memory_bytes_now();
  progress_.show(progress_bar(shown, display_.width()));
}

/// Returns the mean over the last seconds, or since the first step where that is shorter.
double ProgressLine::steps_a_second(const Moment& now) {
  if (moments_.empty()) moments_.push_back({});
  while (moments_.size() > 1 && now.gone - moments_[1].gone >= rate_seconds) moments_.pop_front();
  const Moment from = moments_.front();
  moments_.push_back(now);
  return now.gone > from.gone ? (now.done - from.done) / (now.gone - from.gone) : 0.0;
}

}  // namespace duplex::tools
