#include "net/factors/factor_store.h"

#include <algorithm>
#include <exception>
#include <future>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/mapped_memory.h"
#include "net/wire/frame.h"

namespace duplex::net {
namespace {

/// Rows of a sum that a thread computes before it updates the weights by them.
constexpr std::size_t rows_together = 8 * OuterProducts::rows_at_once;

std::vector<float> factors_of(const FactorMap& map, const FactorStoreSpec& spec) {
  const MeanSpec& mean = spec.mean;
  const auto workers = static_cast<int>(map.workers());
  if (mean.sum)
    return std::vector<float>(map.workers(), 1.0F / static_cast<float>(spec.micro_batches));
  const auto all = static_cast<float>(mean.total(workers));
  std::vector<float> factors;
  for (const std::int64_t factor : mean.factors(workers))
    factors.push_back(static_cast<float>(factor) / all);
  return factors;
}

}  // namespace

FactorStore::FactorStore(const FactorMap& map, FactorStoreSpec spec, const std::vector<Span>& spans)
    : map_(map), spec_(std::move(spec)), spans_(spans), factor_(factors_of(map, spec_)) {
  const int states = spec_.optimiser.states();
  std::size_t values = 0;
  for (std::size_t number = 0; number < map_.layers().size(); ++number)
    if (trains(number))
      values +=
          spans_[map_.layers()[number].weights].count + spans_[map_.layers()[number].bias].count;
  state_memory_ = map_memory(values * static_cast<std::size_t>(states) * sizeof(float));
  auto* next = static_cast<float*>(state_memory_.data());
  layers_.resize(map_.layers().size());
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    Layer& layer = layers_[number];
    layer.step = spec_.first_step;
    if (!trains(number)) continue;
    for (int which = 0; which < 2; ++which)
      for (int each = 0; each < states; ++each) {
        layer.state[which].push_back(next);
        next += spans_[parameter_of(map_.layers()[number], which)].count;
      }
    for (std::size_t parity = 0; parity < 2; ++parity) {
      layer.inbox[parity].resize(map_.workers());
      begin_step(layer, number, parity);
    }
  }
}

FactorStore::~FactorStore() {
  stop();
  if (thread_.joinable()) thread_.join();
}

void FactorStore::start() {
  thread_ = std::thread([this] { run(); });
}

/// All factors of a step of this parity are to come.
void FactorStore::begin_step(Layer& layer, std::size_t number, std::size_t parity) const {
  layer.incomplete[parity] = 0;
  for (std::size_t worker = 0; worker < map_.workers(); ++worker) {
    if (!map_.trains(static_cast<int>(worker), number)) continue;
    ++layer.incomplete[parity];
    Inbox& inbox = layer.inbox[parity][worker];
    const std::size_t pieces = map_.pieces(number, static_cast<int>(worker)).size();
    inbox.taken.assign(pieces, 0);
    inbox.missing = pieces;
  }
}

/// Throws ProtocolError if nothing of that worker is due for the step. The lock is held.
FactorStore::Inbox& FactorStore::due(std::size_t layer, int worker, std::uint64_t step) {
  Layer& here = layers_[layer];
  if (!trains(layer))
    throw ProtocolError("factors of " + spans_[map_.layers()[layer].weights].name +
                        ", with which this rank does not train");
  // A worker that has been sent this rank's factors may be a step ahead.
  if (step != here.step && step != here.step + 1)
    throw ProtocolError("factors of " + spans_[map_.layers()[layer].weights].name + " of step " +
                        std::to_string(step) + " where those of " + std::to_string(here.step) +
                        " are due");
  return here.inbox[step % 2][static_cast<std::size_t>(worker)];
}

void FactorStore::open(Layer& layer) {
  if (layer.open) return;
  layer.open = true;
  layer.since = Clock::now();
}

float* FactorStore::reserve(std::size_t layer, int worker, std::uint32_t piece,
                            std::uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return nullptr;
  Inbox& inbox = due(layer, worker, step);
  if (piece >= inbox.taken.size() || inbox.taken[piece] != 0)
    throw ProtocolError("factors of " + spans_[map_.layers()[layer].weights].name + ": piece " +
                        std::to_string(piece) +
                        (piece < inbox.taken.size() ? " has come already" : " is none of them"));
  inbox.taken[piece] = 1;
  if (inbox.values.empty()) inbox.values.resize(map_.values(layer, worker));
  if (step == layers_[layer].step) open(layers_[layer]);
  return inbox.values.data() + map_.pieces(layer, worker)[piece].offset;
}

void FactorStore::commit(std::size_t layer, int worker, std::uint32_t, std::uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--due(layer, worker, step).missing > 0) return;
  if (--layers_[layer].incomplete[step % 2] == 0) changed_.notify_all();
}

void FactorStore::submit(std::size_t layer, std::uint64_t step, std::vector<float> rounded) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Inbox& inbox = due(layer, spec_.own, step);
  inbox.missing = 0;
  inbox.values = std::move(rounded);
  open(layers_[layer]);
  if (--layers_[layer].incomplete[step % 2] == 0) changed_.notify_all();
}

void FactorStore::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

/// Updates the layers that are complete, one after the other.
void FactorStore::run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_) {
    const auto ready = std::find_if(layers_.begin(), layers_.end(), [](const Layer& layer) {
      return !layer.inbox[0].empty() && layer.incomplete[layer.step % 2] == 0;
    });
    if (ready == layers_.end()) {
      changed_.wait(lock);
      continue;
    }
    Layer& layer = *ready;
    const auto number = static_cast<std::size_t>(ready - layers_.begin());
    layer.busy = true;
    lock.unlock();
    const std::int64_t from = clock_ns();
    try {
      update(number, layer);
    } catch (...) {
      lock.lock();
      layer.busy = false;
      layer.broken = stopped_ = true;
      changed_.notify_all();
      lock.unlock();
      spec_.failed(std::current_exception());
      return;
    }
    lock.lock();
    begin_step(layer, number, layer.step % 2);
    const std::uint64_t step = ++layer.step;
    layer.busy = false;
    layer.since = Clock::now();  // Pieces of this step may have come before.
    layer.open = std::any_of(layer.inbox[step % 2].begin(), layer.inbox[step % 2].end(),
                             [](const Inbox& inbox) {
                               return std::count(inbox.taken.begin(), inbox.taken.end(), 0) <
                                      static_cast<std::ptrdiff_t>(inbox.taken.size());
                             });
    changed_.notify_all();
    lock.unlock();
    spec_.updated(number, step, from, clock_ns());
    lock.lock();
  }
}

void FactorStore::update(std::size_t number, Layer& layer) {
  const FactoredLayer& shape = map_.layers()[number];
  std::vector<FactorBlock> blocks;
  for (std::size_t worker = 0; worker < map_.workers(); ++worker) {
    const std::size_t count = shape.samples[worker];
    if (count == 0) continue;
    const Inbox& inbox = layer.inbox[layer.step % 2][worker];
    const float* dy = inbox.values.empty() ? spans_[shape.weights].factors : inbox.values.data();
    blocks.push_back({dy, dy + count * shape.outputs, count, factor_[worker]});
  }
  OuterProducts products(shape.outputs, shape.inputs);
  if (spec_.replayed_flops > 0.0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(
        products.flop(map_.all_samples(number)) / spec_.replayed_flops));
    return;
  }
  layer.before.clear();
  for (const Chunk& chunk : kept_of(shape)) layer.before.push_back(copy_of(layer, shape, chunk));
  products.take(blocks);
  const OptimiserStep step{spec_.optimiser, spec_.rate.at(layer.step), layer.step + 1};
  std::vector<float> bias(shape.outputs);
  products.bias(bias.data());
  duplex::update(step, shape.outputs, spans_[shape.bias].weights, bias.data(),
                 layer.state[1].data());

  const std::size_t groups = (shape.outputs + rows_together - 1) / rows_together;
  const std::size_t threads =
      std::min(groups, static_cast<std::size_t>(std::max(spec_.threads, 1)));
  std::vector<std::exception_ptr> errors(threads);
  const auto share = [&](std::size_t thread) {
    try {
      for (std::size_t group = thread; group < groups; group += threads)
        update_rows(layer, shape, products, step, group * rows_together,
                    std::min((group + 1) * rows_together, shape.outputs));
    } catch (...) {
      errors[thread] = std::current_exception();
    }
  };
  std::vector<std::future<void>> others;  // Their destructors wait.
  for (std::size_t thread = 1; thread < threads; ++thread)
    others.push_back(std::async(std::launch::async, share, thread));
  share(0);
  for (const std::future<void>& other : others) other.wait();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

void FactorStore::update_rows(const Layer& layer, const FactoredLayer& shape,
                              const OuterProducts& products, const OptimiserStep& step,
                              std::size_t first, std::size_t end) const {
  thread_local std::vector<float> gradient;
  gradient.resize((end - first) * shape.inputs);
  products.rows(first, end, gradient.data());
  std::vector<float*> state = layer.state[0];
  for (float*& each : state) each += first * shape.inputs;
  duplex::update(step, gradient.size(), spans_[shape.weights].weights + first * shape.inputs,
                 gradient.data(), state.data());
}

std::vector<Chunk> FactorStore::kept_of(const FactoredLayer& shape) const {
  std::vector<Chunk> kept;
  for (const Chunk& chunk : spec_.kept)
    if (chunk.parameter == shape.weights || chunk.parameter == shape.bias) kept.push_back(chunk);
  return kept;
}

ChunkState FactorStore::copy_of(const Layer& layer, const FactoredLayer& shape,
                                const Chunk& chunk) const {
  const auto piece = [&](const float* from) {
    return std::vector<float>(from + chunk.offset, from + chunk.offset + chunk.count);
  };
  ChunkState copy;
  copy.step = layer.step;
  copy.weights = piece(spans_[chunk.parameter].weights);
  for (const float* each : layer.state[chunk.parameter == shape.weights ? 0 : 1])
    copy.optimiser.push_back(piece(each));
  return copy;
}

const std::vector<float*>& FactorStore::state(std::size_t parameter) const {
  const std::size_t layer = map_.layer_of(parameter).value();
  return layers_[layer].state[map_.layers()[layer].weights == parameter ? 0 : 1];
}

bool FactorStore::is_busy() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(layers_.begin(), layers_.end(), [](const Layer& layer) { return layer.busy; });
}

std::uint64_t FactorStore::step_of(std::size_t layer) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !layers_[layer].busy; });
  return layers_[layer].step;
}

std::optional<std::uint64_t> FactorStore::sound_step_of(std::size_t layer) const {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !layers_[layer].busy; });
  if (layers_[layer].broken) return std::nullopt;
  return layers_[layer].step;
}

std::optional<ChunkState> FactorStore::state_of(const Chunk& chunk, std::uint64_t step) const {
  const std::size_t number = map_.layer_of(chunk.parameter).value();
  const FactoredLayer& shape = map_.layers()[number];
  const Layer& layer = layers_[number];
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return !layer.busy; });
  if (step == layer.step && !layer.broken) return copy_of(layer, shape, chunk);
  const std::vector<Chunk> kept = kept_of(shape);
  for (std::size_t i = 0; i < layer.before.size(); ++i)
    if (kept[i].index == chunk.index && layer.before[i].step == step) return layer.before[i];
  return std::nullopt;
}

std::optional<Store::Overdue> FactorStore::overdue(Clock::duration allowed) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto now = Clock::now();
  std::optional<Store::Overdue> worst;
  auto since = now - allowed;
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    const Layer& layer = layers_[number];
    if (layer.busy || !layer.open || layer.since > since) continue;
    Store::Overdue found{
        number, layer.step, {}, std::chrono::duration<double>(now - layer.since).count()};
    for (std::size_t worker = 0; worker < map_.workers(); ++worker)
      if (layer.inbox[layer.step % 2][worker].missing > 0)
        found.missing.push_back(static_cast<int>(worker));
    if (found.missing.empty()) continue;
    since = layer.since;
    worst = std::move(found);
  }
  return worst;
}

}  // namespace duplex::net
