// The checkpoints of a synchronous training: all ranks write their parts after the same steps
// (docs/decisions/training.md).
#pragma once
#include <map>
#include <mutex>

#include "tools/dist/part_needs.h"
#include "tools/dist/rank_checkpoints.h"
#include "tools/dist/rank_copies.h"

namespace duplex::tools {

/// The files of a run whose network is cut have something under this key.
constexpr const char* cut_key = "cut";
/// Under this key, files have the ranks that have a part of the checkpoint.
constexpr const char* parts_key = "parts";

/// Beside its chunks, a worker's part has its running statistics and the average of the weights,
/// and with --average its own optimiser's state. A keeper writes copies of other ranks' parts, too
/// (RankCopies).
class SyncCheckpoints final : public RankCheckpoints {
 public:
  /// `host` has the weights of all chunks, of which a keeper copies others' (RankCopies).
  SyncCheckpoints(const DistSpec& spec, CheckpointFiles files, HostParameters& host,
                  StateSpans spans, Troubles& troubles)
      : RankCheckpoints(spec, std::move(files), std::move(spans), troubles),
        copies_(spec, host, map_) {}

  net::ResumeOffer offer() override;
  std::optional<net::FileSharing> sharing(bool statistics) override;
  net::ResumePoint go_on_from(const net::ResumePoint& point, net::ExchangeSpec& exchange) override;
  void hook_into(net::ExchangeSpec& exchange) override;
  bool after(std::uint64_t steps, const std::function<void()>& await_weights) override;
  /// Warns where this is not the end of a round, since no checkpoint can be taken there.
  void finish(std::uint64_t steps) override;
  /// Keeps the last whole step.
  void rescue() override;
  std::string extent() const override;

 private:
  bool leads() const;
  std::uint64_t round() const;
  std::uint64_t samples(std::uint64_t steps) const;
  bool pauses_after(std::uint64_t steps) const;
  bool is_last_whole_round(std::uint64_t steps) const;
  void require_shareable(const Checkpoint& checkpoint) const;
  std::vector<CheckpointFile> files_of(const net::ResumePoint& point) const;
  void load_pieces(const std::vector<CheckpointFile>& files, const Arrays& arrays);
  /// Returns whether a rank has a part of this run's checkpoints. A worker of a central server has
  /// none, where its network has no running statistics.
  bool has_part(int rank) const {
    return map_.chunks_of(rank) > 0 || spans_.with_more.count(rank) > 0;
  }
  bool holds_nothing() const override { return !has_part(spec_.rank()); }
  CheckpointFiles::Metadata common_metadata(std::uint64_t steps) const;
  CheckpointFiles::Metadata metadata(std::uint64_t steps) const;
  std::uint64_t newest_step() const;
  void remember(std::uint64_t steps);
  void order_snapshot(const net::CheckpointCall& call);
  void snapshot(const net::CheckpointCall& call);
  void pass_signals_on();
  void take(std::uint64_t steps);
  void await_copies();
  void rescue_copies(std::string& written);

  /// The thread that has received an order for a checkpoint holds it while it takes that, and the
  /// one that keeps what a failed run has meanwhile. No other thread takes checkpoints of its rank.
  std::mutex taking_;
  bool rescued_ = false;  ///< Under it: nothing is taken any more.
  RankCopies copies_;
  std::vector<CheckpointFile> received_;        ///< Of the checkpoint that this run goes on from.
  std::optional<PartNeeds> needs_;              ///< Set by sharing().
  std::map<std::uint64_t, Arrays> boundaries_;  ///< Copies of added_ after so many steps.
  net::ResumePoint from_;                       ///< Where this run began.
  std::uint64_t taken_ = 0;                     ///< Steps of the last one.
  int passed_on_ = 0;  ///< The signal that pass_signals_on() has passed on.
};

}  // namespace duplex::tools
