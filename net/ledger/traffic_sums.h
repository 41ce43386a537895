// Sums up the traffic of every step while the run goes on, in memory that depends neither on how
// long it is nor, once a step is over, on its number of chunks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "net/ledger/frame_record.h"
#include "net/ledger/traffic.h"

namespace duplex::net {

/// Sums up steps. It keeps of an open one only the times in which some frame was on its way. A step
/// is summed up when nothing of it can come any more:
///
/// - A stream is the frames of weights, or of gradients, from or to one peer. It never goes back to
///   an earlier round (net/wire/frame.h).
/// - A step is open while some stream is in its round, in the one before it or in the one behind
///   it, and until the second close_finished() that finds none there.
///
/// In a synchronous run no frame of a round is under way when a frame of the second round behind it
/// begins, so each step is summed up once, from all of its frames. In an asynchronous run the
/// streams of a slow peer come to a step when it has been summed up for the others: what comes late
/// is summed up as another part of that step, and added. Its bytes are exact in any case. Its times
/// are exact but for frames of two parts that cross the wire at once, which count twice there, and
/// for waits that have not ended when a step is summed up.
///
/// It is not for several threads at once.
class TrafficSums {
 public:
  /// Steps whose sums are kept for the summary: those of the highest numbers.
  static constexpr std::size_t window = 1024;

  /// Takes the sums of a step, or of another part of one.
  using Take = std::function<void(const StepTraffic&)>;

  /// `first_step`: the step that the run begins with; its weights are the initial ones, which
  /// belong to no step. `take` may be empty.
  TrafficSums(std::uint64_t first_step, Take take);

  /// Frames of other kinds than weights and gradients are left out.
  void add(const FrameRecord& record);
  /// The worker waited for the weights of `step`. Waits are added in the order of their ends.
  void waited(const Interval& wait, std::uint64_t step);
  /// Sums up the steps that are over. Call it when all frames that were recorded before the call
  /// before this one have been added.
  void close_finished();
  /// Sums up all steps.
  void close();

  /// The medians over the steps of the window and those that are open, without the first step of
  /// the run, which waits for the initial weights.
  TrafficSummary summary(std::uint64_t weight_bytes) const;
  std::size_t held() const;  ///< Bytes of memory, about.

 private:
  /// So many waits are kept at most; half of them go when there are more.
  static constexpr std::size_t most_waits = 8192;

  /// Times in which frames were on their way: joined where there are many.
  struct Stretches {
    std::vector<Interval> list;
    std::size_t join_at = 4096;
    void add(const Interval& interval);
  };
  struct Open {
    StepTraffic sums;  ///< Bytes, and the time waited; the other times are not known yet.
    Stretches sending, receiving;
    std::int64_t end = 0;  ///< When the last frame was through.
    bool over = false;     ///< The close_finished() before this one found no stream near it.
  };
  using OpenSteps = std::map<std::uint64_t, Open>;

  Open& open(std::uint64_t round);
  void move(std::uint64_t& stream, std::uint64_t round);
  bool is_near(std::uint64_t round) const;
  StepTraffic sum_of(const Open& open) const;
  void drop_old_waits();
  void keep(const StepTraffic& sum);
  OpenSteps::iterator close(OpenSteps::iterator open);

  const std::uint64_t first_;
  const Take take_;
  OpenSteps open_;  ///< By round.
  std::vector<std::uint64_t>
      streams_;                        ///< By peer, direction and kind: its round + 1; 0: no frame.
  std::map<std::uint64_t, int> near_;  ///< By round: streams that are in it.
  // All memory of these two is taken at the start. A small allocation for every step, which lives
  // for a thousand steps, would keep the large ones of the computing between it from being reused:
  // the heap of a LeNet grew by 150 MB (a C library before glibc 2.38).
  std::vector<Interval> waits_;    ///< In the order of their ends.
  std::vector<StepTraffic> sums_;  ///< By step: the window.
};

}  // namespace duplex::net
