// The checkpoints of one rank among several: its own part of the training's state. Synchronous and
// asynchronous trainings take them in ways of their own (docs/decisions/training.md).
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "layers/exchange/host_parameters.h"
#include "net/exchange/exchange.h"
#include "net/rendezvous/held_files.h"
#include "tools/checkpoint/checkpoints.h"
#include "tools/dist/dist_spec.h"
#include "tools/run_directory/troubles.h"

namespace duplex::tools {

/// The weights of a run as its ranks exchange them, and what checkpoints call them, which does not
/// depend on how the network is cut.
struct StateSpans {
  /// A span begins there in the parameter of this name.
  struct Place {
    std::string parameter;
    std::size_t first = 0;  ///< Elements before it.
  };

  std::vector<Span> spans;
  std::vector<Place> places;
  std::vector<std::vector<int>> members;  ///< As ShardMap::among has them; empty: all workers.
  /// The ranks whose parts of a checkpoint have more than chunks, such as running statistics.
  std::set<int> with_more;

  /// Those of a network that is not cut.
  static StateSpans of(const HostParameters& host);
};

/// A rank's part: the weights and the optimiser's state of the chunks that it owns, and what a
/// worker has of its own, such as running statistics. The training thread calls these functions,
/// and on a rank that only serves the one that waits for the run's end.
class RankCheckpoints {
 public:
  virtual ~RankCheckpoints();
  RankCheckpoints(const RankCheckpoints&) = delete;
  RankCheckpoints& operator=(const RankCheckpoints&) = delete;

  /// More arrays that belong to this rank: running statistics, and what its own optimiser holds.
  /// Call it before the first checkpoint is written or loaded.
  void add(std::vector<StateArray> arrays);

  /// Says which checkpoints this rank can go on from. Throws as CheckpointFiles::whole does, and if
  /// the newest is by a number of ranks that cannot change.
  virtual net::ResumeOffer offer() = 0;
  /// Says which files this rank holds, and which each rank needs; `statistics`: each worker
  /// has arrays that all workers begin alike, such as running statistics. None: ranks send each
  /// other no files. Call it after offer(); this object must outlive the result.
  virtual std::optional<net::FileSharing> sharing(bool /*statistics*/) { return std::nullopt; }
  /// Loads a checkpoint into the host's weights and the arrays that were added, and sets `exchange`
  /// up to go on from it. Newer ones are removed, unless the run goes on already
  /// (ResumePoint::late). Returns the steps that this rank's training goes
  /// on after, and the samples that all workers count as seen then. Throws Error.
  virtual net::ResumePoint go_on_from(const net::ResumePoint& point,
                                      net::ExchangeSpec& exchange) = 0;

  /// The owners of all chunks of this run.
  const net::ShardMap& shards() const { return map_; }

  /// Removes what there is, since it is of no use.
  void begin_anew() { files_.remove_after(0); }
  /// Notes that the training begins, so that a rank that is killed before its first checkpoint is
  /// whole can say so.
  void note_begin() const;

  /// Bytes that this rank's frames had before the checkpoint that it goes on from.
  const net::FrameBytes& bytes_before() const { return before_; }

  /// Asks the exchange that will be made for the calls that checkpoints need.
  virtual void hook_into(net::ExchangeSpec& exchange) = 0;
  /// Call it once, when the exchange is there (ExchangeSpec::ready).
  virtual void attach(net::ParameterExchange& wire) { wire_ = &wire; }

  /// The ranks are to pause each time that all workers together have seen so many samples more, but
  /// not from `end` steps on, where the training ends. Call it before the training begins.
  void pause_every(std::uint64_t samples, std::uint64_t end) {
    pause_samples_ = samples;
    end_ = end;
  }
  /// On the first worker: the training has come to what it is for. All ranks end it as soon as they
  /// can, as if it had no more steps. Call it before after().
  void end_training() { ends_ = true; }
  /// LoopSpec::checkpoint of a worker.
  virtual bool after(std::uint64_t steps, const std::function<void()>& await_weights) = 0;
  /// A worker has trained the steps of its own. What after() is called for from now on are batches
  /// of lost workers.
  virtual void own_steps_ended() {}
  /// The training has ended, and the last weights are here.
  virtual void end() {}
  /// Writes the checkpoint at the end of a training that no signal has ended, after so many steps
  /// of this rank, if any were asked for.
  virtual void finish(std::uint64_t steps) = 0;
  /// Waits until what was taken has been written, well or not; calls `getting_on` meanwhile.
  void settle(const std::function<void()>& getting_on) const {
    while (!is_written(std::chrono::milliseconds(50))) getting_on();
  }
  /// Waits until what was taken is on the disk. Call it when all ranks have ended the training.
  /// Throws Error if that which a signal asked for cannot be written.
  virtual void flush();

  /// Keeps what this rank has, when the run has failed. Throws nothing that an Error could say; it
  /// logs that.
  virtual void rescue() = 0;

  /// Returns whether the user has asked for checkpoints; otherwise only signals ask.
  bool wanted() const { return spec_.training.checkpoints.any() || spec_.training.resume; }
  /// The checkpoint that a signal or a pause has ended the training with; none: it went on, or has
  /// come to its end.
  const std::optional<net::CheckpointCall>& stopped() const { return stopped_; }
  /// The training has ended, for whatever reason: leased batches are left.
  bool ended() const { return stopped_ || reached_; }
  /// "1,200 steps": what this rank's training had come to where it goes on from a checkpoint, or
  /// where a signal has ended it with one.
  virtual std::string extent() const = 0;

 protected:
  using Arrays = std::vector<StateArray>;

  /// `files`: this rank's. All arguments but that and `spans` must outlive it.
  RankCheckpoints(const DistSpec& spec, CheckpointFiles files, StateSpans spans,
                  Troubles& troubles);

  /// Everything that this rank needs of a checkpoint; setting it fills the host's weights, what was
  /// added, and optimiser_.
  Arrays wanted_arrays();
  /// Returns `more` and copies of all chunks of this rank, as the store has them for `step`; none
  /// if a chunk is of other steps. Takes into `records`, unless it is null, what the store tells of
  /// each chunk.
  std::optional<Arrays> arrays_of(std::uint64_t step, Arrays more,
                                  std::vector<net::ChunkRecord>* records = nullptr) const;
  /// This is what the optimiser's chunks begin with, by what was loaded.
  std::function<void(std::size_t chunk, const std::vector<float*>& state)> initial_state();
  /// Names of the optimiser's arrays that belong to chunks.
  std::vector<std::string> optimiser_names() const;
  /// Says what every checkpoint says beside its arrays.
  CheckpointFiles::Metadata metadata() const;
  /// Takes the bytes that a file tells into bytes_before().
  void count_bytes(const CheckpointFiles::Metadata& metadata);
  bool owns() const { return map_.chunks_of(spec_.rank()) > 0; }
  bool trains() const { return spec_.mesh.topology.is_worker(spec_.rank()); }
  /// Returns whether the run is over, and this rank's part of the checkpoint of that number is
  /// here: what fails then has taken nothing that is not kept.
  bool is_over_with(std::uint64_t number) const;

  /// Writes a checkpoint while the training goes on, and then calls `then`, which returns its own
  /// error or "". No arrays: this rank has no file of its own, and only `then` is called. The
  /// checkpoint before must have been awaited.
  void start_writing(std::uint64_t number, std::optional<Arrays> arrays,
                     CheckpointFiles::Metadata said, std::function<std::string()> then = {});
  /// Waits for the checkpoint that is being written. Returns false if it still is after `at_most`.
  bool is_written(std::chrono::milliseconds at_most) const;
  /// Waits for the checkpoint that is being written. Returns its error, or "".
  std::string await_written();

  const DistSpec& spec_;
  const StateSpans spans_;
  Troubles& troubles_;
  CheckpointFiles files_;
  CheckpointClock clock_;
  const net::ShardMap map_;
  net::ParameterExchange* wire_ = nullptr;
  Arrays added_;
  std::vector<Checkpoint> offered_;
  net::FrameBytes before_;
  std::optional<net::CheckpointCall> stopped_;
  bool ends_ = false;                ///< end_training() was called.
  bool reached_ = false;             ///< All ranks have ended the training for it.
  std::uint64_t pause_samples_ = 0;  ///< 0: no pause.
  std::uint64_t end_ = 0;            ///< The training has so many steps.

 private:
  virtual bool holds_nothing() const = 0;

  /// The optimiser's arrays that were loaded for initial_state(), by chunk.
  std::vector<std::vector<std::vector<float>>> optimiser_;
  std::future<std::string> writing_;  ///< The error of the checkpoint that is being written, or "".
};

/// Those of a synchronous or an asynchronous training, as `spec` says.
std::unique_ptr<RankCheckpoints> make_checkpoints(const DistSpec& spec, CheckpointFiles files,
                                                  HostParameters& host, StateSpans spans,
                                                  Troubles& troubles);

/// Copies of arrays, which the result holds.
std::vector<StateArray> copies_of(const std::vector<StateArray>& arrays);
/// Returns whether all values of the arrays are finite.
bool finite(const std::vector<StateArray>& arrays);
/// "conv1.weight[4096:8192]".
std::string name_of(const net::Chunk& chunk, const StateSpans::Place& place);
/// The number that a file tells under a key; 0: it tells none.
std::uint64_t number_in(const CheckpointFiles::Metadata& metadata, const std::string& key);
/// "0,2", and the ranks that a file tells so under a key; none: it tells of none.
std::string text_of(const std::set<int>& ranks);
std::set<int> ranks_in(const CheckpointFiles::Metadata& metadata, const std::string& key);

}  // namespace duplex::tools
