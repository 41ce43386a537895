#include "tools/training/metrics.h"

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"
#include "tools/training/divergence.h"

namespace duplex::tools {

void LastLosses::add(double loss) {
  if (stretches_.size() == most && stretches_.back().count == length_) {
    for (std::size_t i = 0; i < most / 2; ++i)
      stretches_[i] = {stretches_[2 * i].sum + stretches_[2 * i + 1].sum, 2 * length_};
    stretches_.resize(most / 2);
    length_ *= 2;
  }
  if (stretches_.empty() || stretches_.back().count == length_) stretches_.emplace_back();
  stretches_.back().sum += loss;
  ++stretches_.back().count;
  ++count_;
}

std::optional<double> LastLosses::mean() const {
  Stretch last;
  for (auto each = stretches_.rbegin(); each != stretches_.rend(); ++each) {
    if (last.count > 0 && 10 * last.count >= count_) break;
    last.sum += each->sum;
    last.count += each->count;
  }
  if (last.count == 0) return std::nullopt;
  return last.sum / static_cast<double>(last.count);
}

Metrics::Metrics(const Schedule& schedule, const LearningRate& rate, const std::string& path,
                 std::uint64_t first, Troubles& troubles)
    : schedule_(schedule),
      rate_(rate),
      tail_(std::max<std::uint64_t>(schedule.steps / 10, 1)),
      steps_(first),
      untimed_(first) {
  if (path.empty()) return;
  std::uint64_t next = 0;  // Each step counts once.
  const auto keeps = [first, &next](const StepMetrics& row) {
    const bool kept = row.step >= next && row.step < first;
    if (kept) next = row.step + 1;
    return kept;
  };
  const std::vector<StepMetrics> before =
      first > 0 ? keep_rows<StepMetrics>(path, keeps) : std::vector<StepMetrics>();
  for (const StepMetrics& row : before) {
    count(row);
    seconds_before_ += row.total;
    --untimed_;
  }
  file_.emplace(path, first > 0 ? Rows::appended : Rows::anew, troubles);
}

StepMetrics Metrics::add(std::uint64_t step, const StepClock& clock, const StepOutcome& outcome) {
  StepMetrics row;
  row.step = step;
  row.epoch = schedule_.epoch_of(step);
  row.loss = outcome.loss;
  row.rate = double{rate_.at(step / schedule_.steps_per_update)};
  row.total = duplex::seconds(clock.end - clock.begin);
  row.data = duplex::seconds(clock.exchange.begun - clock.begin);
  row.await = duplex::seconds(clock.exchange.await);
  row.push = duplex::seconds(clock.exchange.push);
  if (outcome.waits) {
    row.data += outcome.waits->input;
    row.await = outcome.waits->weights;
    row.push = duplex::seconds(clock.exchange.end);
    update_apart_ = false;
  }
  row.await += outcome.maps;
  row.data += outcome.data;
  row.gradient = row.total - row.data - row.await - row.push;
  if (file_) file_->write(row);
  steps_ = step + 1;
  if (count(row)) own_gradient_.add(row.gradient);
  return row;
}

/// Takes a step into the medians, and its loss into the mean at the end. Returns whether it counts
/// for the medians.
bool Metrics::count(const StepMetrics& row) {
  const std::uint64_t step = row.step;
  if (row.loss && step + tail_ >= schedule_.steps) {
    loss_ += *row.loss;
    ++losses_;
  }
  if (row.loss) last_losses_.add(*row.loss);
  // Looking for NaN takes time of its own.
  if (step < schedule_.warm_up() || (looks_for_nan(step, schedule_.steps) && schedule_.steps >= 4))
    return false;
  gradient_.add(row.gradient);
  total_.add(row.total);
  await_.add(row.await);
  push_.add(row.push);
  data_.add(row.data);
  sum_ += row.total;
  sum_of_data_ += row.data;
  data_steps_ += row.data > 0.01 * row.total ? 1U : 0U;
  return true;
}

TrainingResult Metrics::result(double seconds) const {
  TrainingResult result;
  result.steps = steps_;
  result.seconds = seconds_before_ + seconds;
  result.loss = steps_ == schedule_.steps && losses_ > 0 ? loss_ / static_cast<double>(losses_)
                                                         : last_losses_.mean();
  if (untimed_ > 0) result.timed_steps = steps_ - untimed_;
  result.update_apart = update_apart_;
  result.gradient = gradient_.quartiles();
  result.own_gradient = own_gradient_.quartiles();
  result.total = total_.quartiles();
  result.await = await_.quartiles();
  result.push = push_.quartiles();
  result.data = data_.quartiles();
  result.data_steps = data_steps_;
  result.data_share = sum_ > 0.0 ? sum_of_data_ / sum_ : 0.0;
  return result;
}

std::string report_of(const TrainingResult& result, std::int64_t batch, bool alone) {
  if (result.steps == 0) return "";
  std::string text;
  text += "t_grad   " + quartiles_text(result.gradient) + " a batch of " + std::to_string(batch) +
          "; median (quartiles) of " + grouped(static_cast<std::int64_t>(result.gradient.count)) +
          "\n";
  text += "step     " + quartiles_text(result.total) + "\n         data " +
          duration_text(result.data.median) +
          (alone ? (result.update_apart ? ", update " + duration_text(result.push.median)
                                        : ", update with the gradient")
                 : ", awaiting weights " + duration_text(result.await.median) +
                       ", pushing gradients " + duration_text(result.push.median)) +
          "\n";
  const std::string steps = grouped(static_cast<std::int64_t>(result.steps)) + " steps, " +
                            clock_text(result.seconds) + " in all\n";
  text += result.loss ? "loss     " + fixed(*result.loss, 4) +
                            (alone ? "" : " of the first worker's samples,") +
                            " over the last tenth of " + steps
                      : "replay   nothing was computed; " + steps;
  return text;
}

std::string learning_report_of(const TrainingResult& result, const Model& model) {
  constexpr std::uint64_t enough_steps = 30;
  constexpr double close = 0.02;
  if (!result.loss || result.steps < enough_steps || model.classes() < 2) return "";
  double guessing = 0.0;
  for (const Model::Entry& entry : model.nodes())
    if (entry.layer && entry.layer->loss_kind() == LossKind::softmax_cross_entropy)
      guessing +=
          double{entry.layer->loss_weight()} * std::log(static_cast<double>(model.classes()));
  if (guessing <= 0.0 || *result.loss < (1.0 - close) * guessing) return "";
  return "warning  not learning: the loss is no better than guessing among " +
         std::to_string(model.classes()) + " classes (" + fixed(guessing, 4) +
         "); lower --lr, or try --optimizer adam\n";
}

std::string data_report_of(const TrainingResult& result) {
  return "data     computing waited for images during " + fixed(100.0 * result.data_share, 1) +
         "% of the time;\n         for more than 1% of a step in " +
         grouped(static_cast<std::int64_t>(result.data_steps)) + " of " +
         grouped(static_cast<std::int64_t>(result.data.count)) + "\n";
}

}  // namespace duplex::tools
