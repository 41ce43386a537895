// The rank of a run that the fuzz target of an exchange is about, and its setting.
#pragma once
#include <atomic>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "net/exchange/exchange.h"
#include "tests/fuzz/scripted_peer.h"

namespace duplex::fuzz {

/// This says what run it is: the first two bytes of an input.
struct ScriptedSetting {
  ScriptedSetting(std::uint8_t a, std::uint8_t b);

  ScriptedRun run;
  net::ExchangeSpec spec;
};

/// It trains, in a thread, and does what a rank should.
class ScriptedRank {
 public:
  static constexpr float first_weight = 64;  ///< All weights, until they are told others.

  ScriptedRank(const ScriptedSetting& setting, std::vector<net::Link> links);

  net::ParameterExchange& exchange() { return *exchange_; }
  /// Waits that long for its end, and returns whether it has come.
  bool ended_within(std::chrono::milliseconds time) const {
    return ended_.wait_for(time) == std::future_status::ready;
  }
  /// Call it when it has ended.
  void destroy() { exchange_.reset(); }

  const std::optional<std::string>& error() const { return error_; }
  Exit code() const { return code_; }
  /// Steps whose gradients it may have pushed.
  std::uint64_t pushed() const { return pushed_; }
  const float* weights(const net::Chunk& chunk) const {
    return weights_[chunk.parameter].data() + chunk.offset;
  }

 private:
  void train();
  void train_steps();
  void train_steps(std::uint64_t count);
  void take_part();
  void take_snapshot(const net::CheckpointCall& call, std::uint64_t round);
  bool is_async() const { return run_.sync == net::Sync::none; }

  const ScriptedRun& run_;
  std::vector<std::vector<float>> weights_, gradients_;
  std::optional<net::ParameterExchange> exchange_;
  std::future<void> ended_;
  std::atomic<std::uint64_t> pushed_{0};
  std::optional<std::string> error_;
  Exit code_ = Exit::ok;
};

}  // namespace duplex::fuzz
