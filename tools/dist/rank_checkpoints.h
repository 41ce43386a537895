// The checkpoints of one rank among several: its own part of the training's state. All ranks write
// theirs after the same steps (docs/decisions/training.md).
#pragma once
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "layers/exchange/host_parameters.h"
#include "net/exchange/exchange.h"
#include "net/rendezvous/resume.h"
#include "tools/checkpoint/checkpoints.h"
#include "tools/dist/dist_spec.h"
#include "tools/run_directory/troubles.h"

namespace duplex::tools {

/// A rank's part: the weights and the optimiser's state of the chunks that it owns; on a worker its
/// running statistics; with --average its own optimiser's state. The training thread calls these
/// functions, but for snapshot().
class RankCheckpoints {
 public:
  /// `files`: this rank's. All arguments but that must outlive it.
  RankCheckpoints(const DistSpec& spec, CheckpointFiles files, HostParameters& host,
                  Troubles& troubles);
  ~RankCheckpoints();
  RankCheckpoints(const RankCheckpoints&) = delete;
  RankCheckpoints& operator=(const RankCheckpoints&) = delete;

  /// More arrays that belong to this rank: running statistics, and what its own optimiser holds.
  /// Call it before the first checkpoint is written or loaded.
  void add(std::vector<StateArray> arrays);

  /// Says which checkpoints this rank can go on from. Throws as CheckpointFiles::whole does.
  net::ResumeOffer offer();
  /// Loads a checkpoint into the host's weights and the arrays that were added, and sets `exchange`
  /// up to go on from it. Newer ones are removed. Throws Error.
  void go_on_from(const net::ResumePoint& point, net::ExchangeSpec& exchange);

  /// Removes what there is, since it is of no use.
  void begin_anew() { files_.remove_after(0); }
  /// Notes that the training begins, so that a rank that is killed before its first checkpoint is
  /// whole can say so.
  void note_begin() const;

  /// Bytes that this rank's frames had before the checkpoint that it goes on from.
  const net::FrameBytes& bytes_before() const { return before_; }

  /// Sets `wire` up. Call it once, when the exchange is there.
  void attach(net::ParameterExchange& wire) { wire_ = &wire; }

  /// LoopSpec::checkpoint of a worker.
  bool after(std::uint64_t steps, const std::function<void()>& await_weights);
  /// ExchangeSpec::snapshot of a rank that only serves; a receiving thread calls it.
  void snapshot(const net::CheckpointCall& call);
  /// ExchangeSpec::while_serving: passes signals on to the first worker.
  void pass_signals_on();
  /// Writes the checkpoint at the end of the training, if any were asked for and this is the end of
  /// a round.
  void finish(std::uint64_t steps);
  /// Waits until what was taken is on the disk. Call it when all ranks have ended the training.
  /// Throws Error if that which a signal asked for cannot be written.
  void settle();

  /// Keeps what this rank has of the last whole step, when the run has failed. Throws nothing that
  /// an Error could say; it logs that.
  void rescue();

  /// Returns whether the user has asked for checkpoints; otherwise only signals ask.
  bool wanted() const { return spec_.training.checkpoints.any() || spec_.training.resume; }
  /// The checkpoint that a signal has ended the training with; none: the training went on.
  const std::optional<net::CheckpointCall>& stopped() const { return stopped_; }

 private:
  using Arrays = std::vector<StateArray>;

  bool leads() const;
  std::uint64_t round() const;
  std::uint64_t samples(std::uint64_t steps) const;
  Arrays wanted_arrays();
  void require_shareable(const Checkpoint& checkpoint) const;
  void load_from_other_ranks(const Checkpoint& checkpoint, const Arrays& arrays);
  /// Names of the optimiser's arrays that belong to chunks.
  std::vector<std::string> optimiser_names() const;
  bool holds_nothing() const;
  CheckpointFiles::Metadata metadata(std::uint64_t steps) const;
  std::optional<Arrays> arrays_of(std::uint64_t steps, const Arrays& more) const;
  std::uint64_t newest_step() const;
  void remember(std::uint64_t steps);
  void take(std::uint64_t steps);
  /// Waits for the checkpoint that is being written. Returns its error, or "".
  std::string await_written();

  const DistSpec& spec_;
  HostParameters& host_;
  Troubles& troubles_;
  CheckpointFiles files_;
  CheckpointClock clock_;
  const net::ShardMap map_;
  net::ParameterExchange* wire_ = nullptr;
  Arrays added_;
  std::map<std::uint64_t, Arrays> boundaries_;  ///< Copies of added_ after so many steps.
  /// The optimiser's arrays that go_on_from() has read for ExchangeSpec::initial_state, by chunk.
  std::vector<std::vector<std::vector<float>>> optimiser_;
  std::future<std::string> writing_;  ///< The error of the checkpoint that is being written, or "".
  std::vector<Checkpoint> offered_;
  net::ResumePoint from_;  ///< Where this run began.
  net::FrameBytes before_;
  std::uint64_t taken_ = 0;  ///< Steps of the last one.
  std::optional<net::CheckpointCall> stopped_;
  int passed_on_ = 0;  ///< The signal that pass_signals_on() has passed on.
};

}  // namespace duplex::tools
