// This is what a rank computes with, and what it trains: the steps of its own, and batches that
// lost workers have left.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/device_name.h"
#include "core/error.h"
#include "core/processor/cores.h"
#include "layers/checkpoint.h"
#include "tools/dist/exchanges.h"
#include "tools/dist/rank.h"
#include "tools/run_directory/run_files.h"
#include "tools/training/divergence.h"
#include "tools/training/network_computation.h"
#include "tools/training/replay.h"
#include "tools/training/replayed_gradients.h"

namespace duplex::tools {

// ---- What computes.

/// Makes the first slot's network, and the other slots. A replay's slots need no places.
void Rank::prepare_slots() {
  const auto count = static_cast<std::size_t>(slots());
  std::vector<SlotPlace> places(count);
  if (count > 1 && !replays())
    places = slot_places(spec_.training.computing, slots(), spec_.slots_before, spec_.slots_here,
                         "dist");
  if (count > 1 && is_gpu(spec_.training.computing.device))
    spec_.training.computing.device = places.front().device;
  if (count > 1)
    run_bound(places.front().cores, [this] { prepare_network(); });
  else
    prepare_network();
  if (count > 1)
    team_ = std::make_unique<SlotTeam>(spec_.training, setup_.model,
                                       spec_.share_of(spec_.rank(), 0).count, places, host_);
}

/// Gives a replay the gradients that it sends, where what they are decides how many bytes cross.
void Rank::draw_replayed_gradients() {
  const net::WireFormat& wire = spec_.parallel.wire;
  const bool packs =
      wire.weights == net::Coding::lossless || wire.gradients == net::Coding::lossless;
  if (!replays() || !packs) return;
  const TrainingSpec& training = spec_.training;
  // All of the sum is the first slot's: a replay writes no gradient anew, to which the others'
  // would be added in each step.
  draw_gradients(host_.spans(), training.optimiser,
                 training.rate.base / static_cast<float>(slots()));
}

void Rank::prepare_network() {
  const TrainingSpec& training = spec_.training;
  const std::int64_t samples = spec_.share_of(spec_.rank(), 0).count;
  if (replays()) {
    times_ = layer_times(replay_source(training.computing.device), setup_.model, training.batch);
    times_.scale(static_cast<double>(samples) / static_cast<double>(training.batch));
    return;
  }
  device_ = training.computing.make();
  network_ = training.computing.build(setup_.model, *device_, samples);
  network_->observe(tracing_.observer());
  network_->initialise(training.seed);
  if (!training.weights.empty()) load_checkpoint(training.weights, *network_);
  if (training.ema > 0.0) average_.emplace(host_.specs(), training.ema);
  if (spec_.parallel.average > 0)
    own_updates_ = std::make_unique<LocalExchange>(*network_, training.optimiser, training.rate,
                                                   Updates::each);
}

// ---- The training.

/// Says which batches a slot reads, and how.
datasets::LoaderOptions Rank::reading(int slot) const {
  datasets::LoaderOptions options =
      loader_options(spec_.training, spec_.share_of(spec_.rank(), slot));
  options.first_step = from_.steps;
  if (from_.steps > 0) options.first_sample = from_.samples;
  // Where slots have cores of their own, a thread sees no others.
  if (team_ && team_->first_cores().empty())
    options.threads = std::max(1, options.threads / slots());
  return options;
}

/// Trains the first slot by `lead`, and the others, if there are any, by `others`.
TrainingResult Rank::train_slots(Exchange& wire,
                                 const std::function<TrainingResult(Exchange& inner)>& lead,
                                 const SlotTeam::TrainSlot& others) {
  if (!team_) return lead(wire);
  TrainingResult result;
  const bool alone = spec_.mesh.topology.workers().size() == 1;
  team_->train(
      wire, alone ? 1.0F / static_cast<float>(slots()) : 1.0F,
      [&](Exchange& inner) { result = lead(inner); }, others);
  return result;
}

/// The error where a checkpoint has more steps than the run.
Error Rank::further_than(std::uint64_t steps) const {
  return Error("dist: the checkpoint of " + std::to_string(from_.steps) +
                   " steps is further than the " + std::to_string(steps) +
                   " batches of this run: give more --batches or --epochs",
               Exit::usage);
}

/// Makes network_ ready for tests, on the way and in the end.
void Rank::make_tester(const Schedule& schedule, std::function<void()> after_batch) {
  const TrainingSpec& training = spec_.training;
  tester_.emplace(*network_, setup_.split.test, *directory_, schedule, test_options(training),
                  from_.steps, troubles_, training.display, std::move(after_batch));
  if (events_) tester_->tell([this](const AccuracyRow& row) { events_->test(row); });
  if (average_) tester_->average(*average_);
  // A pause, or a signal, has come before the ranks could end.
  if (training.until && tester_->has_reached(*training.until)) checkpoints_->end_training();
}

TrainingResult Rank::compute(net::ParameterExchange& wire) {
  const TrainingSpec& training = spec_.training;
  std::unique_ptr<datasets::BatchLoader> made;  // Its threads are those of the first slot.
  const auto make = [&] {
    made = std::make_unique<datasets::BatchLoader>(setup_.split.train, reading(0));
  };
  team_ ? run_bound(team_->first_cores(), make) : make();
  datasets::BatchLoader& loader = *made;
  Schedule schedule = schedule_of(training, loader);
  if (from_.steps > schedule.steps) throw further_than(schedule.steps);
  if (spec_.parallel.average > 0) schedule.steps_per_round = spec_.parallel.average;
  LoopSpec loop = loop_spec(schedule, wire);
  if (checkpoints_)
    loop.checkpoint = [this](std::uint64_t steps, const std::function<void()>& await_weights) {
      return checkpoints_->after(steps, await_weights);
    };
  if (leads()) {
    make_tester(schedule, [&wire] { wire.progress_made(); });
    loop.test = [this](std::uint64_t steps) {
      if (tester_->reaches(steps, spec_.training.until)) checkpoints_->end_training();
      return true;  // All ranks end together, a little later.
    };
    if (training.profile)
      profile_ = std::make_unique<Profile>(*network_, schedule.warm_up_after(from_.steps));
  }
  const auto looks = [steps = schedule.steps](std::uint64_t step) {
    return looks_for_nan(step, steps);
  };
  const auto train_first = [&](Exchange& inner) {
    const Exchanges exchanges =
        make_exchanges(spec_, network_.get(), host_, inner, own_updates_.get(), schedule.steps);
    std::optional<NetworkComputation> computation;
    computation.emplace(*network_, batches_of(loader), training.seed, looks);
    if (loop.display.rewrites()) computation->count_hits();
    const TrainingResult trained = train(*computation, *exchanges.back(), loop, troubles_);
    computation.reset();
    train_leases(wire, *exchanges.back(), schedule.steps,
                 [&](const net::Lease& lease, const std::function<void(Computation&)>& train) {
                   const std::vector<int> workers = spec_.mesh.topology.workers();
                   datasets::LoaderOptions leased = loader_options(
                       training, spec_.share_of(workers[static_cast<std::size_t>(lease.worker)]));
                   leased.first_step = lease.steps.first;
                   datasets::BatchLoader batches(setup_.split.train, leased);
                   NetworkComputation of_lease(*network_, batches_of(batches), training.seed,
                                               looks);
                   train(of_lease);
                 });
    return trained;
  };
  std::mutex replaced_mutex;
  std::vector<datasets::LeftOut> replaced;  // By the other slots, under the mutex.
  const auto train_other = [&](SlotTeam::Slot& slot, Exchange& inner,
                               const SlotTeam::NextStep& next) {
    datasets::BatchLoader own(setup_.split.train, reading(slot.number));
    const Exchanges exchanges = make_exchanges(spec_, slot.network.get(), *slot.host, inner,
                                               nullptr, schedule.steps, slot.number);
    NetworkComputation computation(*slot.network, batches_of(own), training.seed, looks);
    for (std::uint64_t step = from_.steps; next(step); ++step) {
      computation.run(*exchanges.back(), step);
      require_finite_loss(step, computation.outcome().loss);
    }
    const std::lock_guard<std::mutex> lock(replaced_mutex);
    for (datasets::LeftOut& each : own.replaced()) replaced.push_back(std::move(each));
  };
  std::optional<MovingAverageExchange> averaging;
  if (average_)
    averaging.emplace(wire, *average_, host_.spans().size(),
                      [this](std::size_t parameter) { return host_.spans()[parameter].weights; });
  Exchange& exchange = averaging ? static_cast<Exchange&>(*averaging) : wire;
  const TrainingResult result = train_slots(exchange, train_first, train_other);
  for (datasets::LeftOut& each : loader.replaced()) replaced.push_back(std::move(each));
  if (result.steps > 0) report_replaced(replaced);
  return result;
}

TrainingResult Rank::replay(net::ParameterExchange& wire) {
  Replay computation(setup_.model, times_);
  computation.observe(tracing_.observer());
  Schedule schedule;
  schedule.steps = schedule.epoch_samples = spec_.training.batches.value();
  const auto with_exchange = [&](HostParameters& host, Exchange& inner, int slot,
                                 const std::function<void(Exchange&)>& work) {
    const Exchanges made =
        make_exchanges(spec_, nullptr, host, inner, nullptr, schedule.steps, slot);
    work(made.empty() ? inner : *made.back());
  };
  const auto train_first = [&](Exchange& inner) {
    TrainingResult result;
    with_exchange(host_, inner, 0, [&](Exchange& exchange) {
      result = train(computation, exchange, loop_spec(schedule, wire), troubles_);
      train_leases(wire, exchange, schedule.steps,
                   [&](const net::Lease&, const std::function<void(Computation&)>& train) {
                     train(computation);
                   });
    });
    return result;
  };
  const auto train_other = [&](SlotTeam::Slot& slot, Exchange& inner,
                               const SlotTeam::NextStep& next) {
    Replay own(setup_.model, times_);
    with_exchange(*slot.host, inner, slot.number, [&](Exchange& exchange) {
      for (std::uint64_t step = from_.steps; next(step); ++step) own.run(exchange, step);
    });
  };
  return train_slots(wire, train_first, train_other);
}

/// Trains batches that lost workers have left, as long as the server gives some. Where a signal
/// ends the training, those that were on their way are left, too.
void Rank::train_leases(net::ParameterExchange& wire, Exchange& exchange, std::uint64_t total,
                        const WithBatches& with_batches) {
  if (checkpoints_) checkpoints_->own_steps_ended();
  while (const std::optional<net::Lease> lease = wire.next_lease(total)) {
    if (checkpoints_ && checkpoints_->ended()) continue;
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
    computation.run(exchange, own);
    require_finite_loss(step, computation.outcome().loss);
    const bool goes_on =
        !checkpoints_ || checkpoints_->after(own + 1, [&] { exchange.await_all(); });
    if (!goes_on) return;
  }
}

LoopSpec Rank::loop_spec(const Schedule& schedule, net::ParameterExchange& wire) {
  LoopSpec loop;
  loop.schedule = schedule;
  loop.first = from_.steps;
  const auto number = static_cast<std::size_t>(spec_.mesh.topology.worker_number(spec_.rank()));
  if (number < from_.ends.size()) loop.end = from_.ends[number];
  loop.rate = spec_.training.rate;
  // Asynchronous workers have each a pace of their own.
  loop.batch = asynchronous() ? spec_.share_of(spec_.rank()).count
                              : static_cast<std::int64_t>(spec_.step_samples());
  if (leads()) loop.display = spec_.training.display;
  if (leads()) loop.metrics_path = directory_->file(metrics_file);
  if (events_) {
    events_->begin(from_.steps, loop.batch, [&wire] {
      const net::FrameBytes bytes = wire.ledger().bytes();
      return WireBytes{bytes.sent, bytes.received};
    });
    loop.after_step = [this](const StepMetrics& row) { events_->step(row); };
  }
  loop.beginning = [this](std::uint64_t step) { tracing_.begin_step(step); };
  return loop;
}

}  // namespace duplex::tools
