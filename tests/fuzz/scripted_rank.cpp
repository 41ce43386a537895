#include "tests/fuzz/scripted_rank.h"

#include <array>
#include <chrono>
#include <csignal>
#include <utility>

namespace duplex::fuzz {
namespace {

constexpr std::chrono::seconds timeout{60};
constexpr std::array<std::size_t, 3> counts{5, 20, 3};  // Chunks of 5, 16, 4 and 3.

/// Or lets it go on.
bool ends_training(int signal) {
  return signal == 0 || signal == SIGINT || signal == SIGTERM;
}

}  // namespace

ScriptedSetting::ScriptedSetting(std::uint8_t a, std::uint8_t b) {
  const int kind = a % 4;  // 0: a central server; 1: its worker; else both in one.
  const int size = (a & 128) != 0 ? 3 : 2;
  run.topology = {kind < 2 ? net::ServerMode::central : net::ServerMode::distributed, size, 0};
  run.rank = kind == 1 || kind == 3 ? 1 : 0;
  run.sync = a / 4 % 4 == 1 ? net::Sync::split : a / 4 % 4 == 2 ? net::Sync::none : net::Sync::join;
  run.semaphore = (a & 16) != 0;
  run.steps = b % 4;
  spec.sync = run.sync;
  spec.average = a / 4 % 4 == 3;
  spec.semaphore = run.semaphore;
  spec.overlap = (a & 32) == 0;
  spec.keeps_before = (a & 64) != 0;  // And takes snapshots.
  spec.round = spec.average ? 2 : 1;
  spec.trace_steps = (b & 4) != 0 ? 2 : 0;
  spec.early_bytes = (b & 8) != 0 ? 0 : 4096;
  if (!spec.average && (b & 16) != 0) run.wire.gradients = net::Coding::bf16;
  if (!spec.average && (b & 32) != 0) run.wire.weights = net::Coding::fp16;
  if ((b & 64) != 0) run.wire.gradients = net::Coding::lossless;
  if ((b & 128) != 0) run.wire.weights = net::Coding::lossless;
  spec.wire = run.wire;
  if (run.sync != net::Sync::none) spec.last_step = run.steps;
  spec.chunk_bytes = 64;
  spec.rate.base = 1;
  spec.timeout = timeout;
  if (run.sync == net::Sync::none && kind == 0) spec.steps = run.steps;
  if (run.sync == net::Sync::split) spec.mean.samples.assign(run.topology.workers().size(), 2);
  run.map = run.topology.shard_map({counts.begin(), counts.end()}, spec.shards, spec.chunk_bytes);
}

ScriptedRank::ScriptedRank(const ScriptedSetting& setting, std::vector<net::Link> links)
    : run_(setting.run) {
  std::vector<Span> spans;
  for (std::size_t p = 0; p < counts.size(); ++p) {
    weights_.emplace_back(counts[p], first_weight);
    gradients_.emplace_back(counts[p], gradient_value);
  }
  for (std::size_t p = 0; p < counts.size(); ++p)
    spans.push_back({"p" + std::to_string(p), counts[p], weights_[p].data(), gradients_[p].data()});
  net::ExchangeSpec spec = setting.spec;
  if (spec.keeps_before)
    spec.snapshot = [this, round = spec.round](const net::CheckpointCall& call) {
      take_snapshot(call, round);
    };
  exchange_.emplace(spec, spans, net::Mesh::of(run_.topology, run_.rank, std::move(links)));
  ended_ = std::async(std::launch::async, [this] { train(); });
}

void ScriptedRank::train() {
  try {
    if (exchange_->is_worker()) train_steps();
    exchange_->finish([] { return std::string("report"); });
  } catch (const Error& error) {
    error_ = error.what();
    code_ = error.code;
  }
}

void ScriptedRank::train_steps() {
  train_steps(run_.steps);
  while (const auto lease = exchange_->next_lease(run_.steps)) train_steps(lease->steps.count());
}

void ScriptedRank::train_steps(std::uint64_t count) {
  for (std::uint64_t trained = 0; trained < count; ++trained) {
    const std::uint64_t step = exchange_->next_step();
    exchange_->begin(step);
    exchange_->await_all();
    for (std::size_t p = counts.size(); p-- > 0;) {
      pushed_ = step + 1;
      exchange_->push(p);
    }
    exchange_->end();
    take_part();
  }
}

/// Takes its part of the checkpoints that were called for.
void ScriptedRank::take_part() {
  if (!is_async()) {
    const auto call = exchange_->called_for(pushed_);
    require(!call || ends_training(call->signal), "a call with a signal that ends no training");
    return;
  }
  while (const auto call = exchange_->open_call()) {
    exchange_->await_all();
    exchange_->called_for(call->steps);
    exchange_->mark_checkpoint(*call);
  }
}

void ScriptedRank::take_snapshot(const net::CheckpointCall& call, std::uint64_t round) {
  require(ends_training(call.signal), "a snapshot with a signal that ends no training");
  require(call.steps > 0 && call.steps % round == 0, "a snapshot of no step");
  const net::Store& store = exchange_->store();
  for (std::size_t i = 0; i < run_.map.chunks(); ++i) {
    if (run_.map[i].owner != run_.rank) continue;
    const std::uint64_t step = call.steps / round;
    require(is_async() || store.step_of(i) == step, "a snapshot of another step");
    require(store.state(i, step).has_value(), "a snapshot of a chunk without a state");
  }
}

}  // namespace duplex::fuzz
