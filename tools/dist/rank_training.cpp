// This is what a rank trains: the steps of its own, and batches that lost workers have left.
#include <optional>

#include "core/error.h"
#include "tools/dist/exchanges.h"
#include "tools/dist/rank.h"
#include "tools/run_directory/run_files.h"
#include "tools/training/divergence.h"
#include "tools/training/network_computation.h"
#include "tools/training/replay.h"

namespace duplex::tools {

TrainingResult Rank::compute(net::ParameterExchange& wire) {
  const TrainingSpec& training = spec_.training;
  datasets::LoaderOptions reading = loader_options(training, spec_.share_of(spec_.rank()));
  reading.first_step = from_.steps;
  if (from_.steps > 0) reading.first_sample = from_.samples;
  datasets::BatchLoader loader(setup_.split.train, reading);
  Schedule schedule = schedule_of(training, loader);
  if (from_.steps > schedule.steps)
    throw Error("dist: the checkpoint of " + std::to_string(from_.steps) +
                    " steps is further than the " + std::to_string(schedule.steps) +
                    " batches of this run: give more --batches or --epochs",
                Exit::usage);
  if (spec_.parallel.average > 0) schedule.steps_per_round = spec_.parallel.average;
  const Exchanges exchanges =
      make_exchanges(spec_, network_.get(), host_, wire, own_updates_.get(), schedule.steps);
  LoopSpec loop = loop_spec(schedule);
  if (checkpoints_)
    loop.checkpoint = [this](std::uint64_t steps, const std::function<void()>& await_weights) {
      return checkpoints_->after(steps, await_weights);
    };
  if (leads()) {
    tester_.emplace(*network_, setup_.split.test, *directory_, schedule, training.strict,
                    from_.steps, troubles_, [&wire] { wire.progress_made(); });
    loop.test = [this](std::uint64_t steps) { tester_->test_between(steps); };
    if (training.profile)
      profile_ = std::make_unique<Profile>(*network_, schedule.warm_up_after(from_.steps));
  }
  const auto looks = [steps = schedule.steps](std::uint64_t step) {
    return looks_for_nan(step, steps);
  };
  std::optional<NetworkComputation> computation;
  computation.emplace(*network_, batches_of(loader), training.seed, looks);
  const TrainingResult result = train(*computation, *exchanges.back(), loop, troubles_);
  computation.reset();
  train_leases(wire, *exchanges.back(), schedule.steps,
               [&](const net::Lease& lease, const std::function<void(Computation&)>& train) {
                 const std::vector<int> workers = spec_.mesh.topology.workers();
                 datasets::LoaderOptions leased = loader_options(
                     training, spec_.share_of(workers[static_cast<std::size_t>(lease.worker)]));
                 leased.first_step = lease.steps.first;
                 datasets::BatchLoader batches(setup_.split.train, leased);
                 NetworkComputation of_lease(*network_, batches_of(batches), training.seed, looks);
                 train(of_lease);
               });
  if (result.steps > 0) report_replaced(loader);
  return result;
}

TrainingResult Rank::replay(net::ParameterExchange& wire) {
  Replay computation(setup_.model, times_);
  computation.observe(tracing_.observer());
  Schedule schedule;
  schedule.steps = schedule.epoch_samples = spec_.training.batches.value();
  const Exchanges exchanges = make_exchanges(spec_, nullptr, host_, wire, nullptr, schedule.steps);
  Exchange& exchange = exchanges.empty() ? wire : *exchanges.back();
  const TrainingResult result = train(computation, exchange, loop_spec(schedule), troubles_);
  train_leases(wire, exchange, schedule.steps,
               [&](const net::Lease&, const std::function<void(Computation&)>& train) {
                 train(computation);
               });
  return result;
}

/// Trains batches that lost workers have left, as long as the server gives some. Where a signal
/// ends the training, those that were on their way are left, too.
void Rank::train_leases(net::ParameterExchange& wire, Exchange& exchange, std::uint64_t total,
                        const WithBatches& with_batches) {
  if (checkpoints_) checkpoints_->own_steps_ended();
  while (const std::optional<net::Lease> lease = wire.next_lease(total)) {
    if (checkpoints_ && checkpoints_->stopped()) continue;
    with_batches(*lease, [&](Computation& computation) {
      train_lease(wire, exchange, *lease, computation);
    });
  }
}

void Rank::train_lease(net::ParameterExchange& wire, Exchange& exchange, const net::Lease& lease,
                       Computation& computation) {
  for (std::uint64_t step = lease.steps.first; step < lease.steps.end; ++step) {
    const std::uint64_t own = wire.next_step();
    tracing_.begin_step(own);
    run_step(computation, exchange, own);
    require_finite_loss(step, computation.outcome().loss);
    const bool goes_on =
        !checkpoints_ || checkpoints_->after(own + 1, [&] { exchange.await_all(); });
    if (!goes_on) return;
  }
}

LoopSpec Rank::loop_spec(const Schedule& schedule) {
  LoopSpec loop;
  loop.schedule = schedule;
  loop.first = from_.steps;
  const auto number = static_cast<std::size_t>(spec_.mesh.topology.worker_number(spec_.rank()));
  if (number < from_.ends.size()) loop.end = from_.ends[number];
  loop.rate = spec_.training.rate;
  loop.batch = spec_.share_of(spec_.rank()).count;
  loop.show = leads();
  if (leads()) loop.metrics_path = directory_->file(metrics_file);
  loop.beginning = [this](std::uint64_t step) { tracing_.begin_step(step); };
  return loop;
}

}  // namespace duplex::tools
