// The checkpoints of an asynchronous training: they have numbers, since no step is common to all
// ranks, and each worker goes on with a step of its own (docs/decisions/training.md).
#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "tools/dist/rank_checkpoints.h"

namespace duplex::tools {

/// A central server, or the first worker, calls for a checkpoint. A worker takes its part when all
/// its gradients so far have been applied, and marks that; an owner copies its chunks when all
/// workers have, with a record of the gradients that are in each.
class AsyncCheckpoints final : public RankCheckpoints {
 public:
  /// See RankCheckpoints.
  AsyncCheckpoints(const DistSpec& spec, CheckpointFiles files, StateSpans spans,
                   Troubles& troubles)
      : RankCheckpoints(spec, std::move(files), std::move(spans), troubles) {}

  net::ResumeOffer offer() override;
  /// A central server gets the files that workers kept without it.
  std::optional<net::FileSharing> sharing(bool statistics) override;
  net::ResumePoint go_on_from(const net::ResumePoint& point, net::ExchangeSpec& exchange) override;
  void hook_into(net::ExchangeSpec& exchange) override;
  void attach(net::ParameterExchange& wire) override;
  bool after(std::uint64_t steps, const std::function<void()>& await_weights) override;
  void own_steps_ended() override;
  void end() override;
  void finish(std::uint64_t steps) override;
  /// With a central server, the server keeps its chunks if it has lost all workers, and a worker
  /// the weights that it got last. With distributed servers nothing is kept: what a lost rank owned
  /// is lost with it.
  void rescue() override;
  std::string extent() const override;

 private:
  /// This is what a worker has of a checkpoint that owners have not copied their chunks for.
  struct Part {
    std::uint64_t steps = 0;
    Arrays arrays;
  };

  bool holds_nothing() const override { return false; }
  std::size_t workers() const { return spec_.mesh.topology.workers().size(); }
  std::size_t own_number() const {
    return static_cast<std::size_t>(spec_.mesh.topology.worker_number(spec_.rank()));
  }
  void require_as_many_ranks() const;
  void leave_own();
  net::ResumePoint point_of(const Checkpoint& checkpoint) const;
  std::optional<net::ResumePoint> kept_by_workers();
  net::ResumePoint kept_point(const Checkpoint& checkpoint) const;
  net::ResumePoint come_back(const net::ResumePoint& point, net::ExchangeSpec& exchange);
  void load(const Checkpoint& checkpoint, net::ExchangeSpec& exchange);
  void load_statistics(const Checkpoint* checkpoint, const net::ResumePoint& point);
  void load_kept(const net::ResumePoint& point, net::ExchangeSpec& exchange);

  std::uint64_t progress() const;
  void look_at_signals(std::uint64_t steps);
  bool take_part(const std::function<void()>& await_weights);
  void snapshot(const net::CheckpointCall& call);
  void write(std::uint64_t number, const Part& part, const std::set<int>& absent);
  void prune(const net::CheckpointCall& call);
  std::string keep_chunks();
  std::string keep_weights();
  void remember(std::uint64_t steps);
  std::set<int> lost_ranks() const;

  /// Names of weights that a worker has kept begin so, in the file of its own part.
  static constexpr const char* kept_prefix = "kept.";

  std::vector<Checkpoint> kept_;       ///< Workers kept these without this server; they are here.
  std::vector<std::string> received_;  ///< Files among them that the workers have sent.
  net::ResumePoint from_;              ///< Where this run began.
  std::uint64_t steps_ = 0;            ///< Steps of its own that this worker has trained.
  std::uint64_t own_end_ = net::ResumePoint::no_end;  ///< Steps behind it are of lost workers.
  std::map<std::uint64_t, Arrays> boundaries_;        ///< Copies of added_ after so many steps.

  // Used by the thread that looks at signals.
  int passed_on_ = 0;  ///< The signal that was passed on, or called for.
  bool asked_ = false;
  std::uint64_t called_ = 0;  ///< The number of the last one that this rank has called for.

  /// Guards all below and writing. Training and receiving threads take it; within it, they read the
  /// store and wait for files.
  std::mutex mutex_;
  std::map<std::uint64_t, Part> parts_;  ///< By number.
  /// On an owner, the part of its worker in all checkpoints since that has trained its last step:
  /// nobody waits for its marks, and so for no other part.
  std::optional<Part> last_part_;
  std::uint64_t taken_ = 0;  ///< The number of the last one that was whole here.
  bool no_more_ = false;     ///< This rank has called for the last one, as a signal asked.
};

}  // namespace duplex::tools
