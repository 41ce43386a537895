// The ledger has a record of every frame that crossed this rank's wire; its file is on the
// coordinator's clock. Its sums are checked against the kernel's counters, and t_comm and exposed
// communication are computed from it.
#pragma once
#include <cstdint>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/wire/frame.h"

namespace duplex::net {

/// Times are nanoseconds on this rank's monotonic clock.
struct FrameRecord {
  std::uint64_t step = 0;
  std::uint32_t parameter = 0;
  std::uint32_t chunk = 0;
  FrameKind kind = FrameKind::hello;
  bool sent = false;        ///< Sent by this rank; otherwise received.
  std::int32_t peer = -1;   ///< Rank at the other end.
  std::uint64_t bytes = 0;  ///< With the header.
  std::int64_t queued = 0;  ///< Sent: when it was handed over. Received: as `first`.
  std::int64_t first = 0;   ///< Sent: before the kernel got its first byte. Received: the header
                            ///< was there.
  std::int64_t last = 0;    ///< Sent: the kernel had its last byte. Received: all of it was there.
};

/// A stretch of time, [from, to).
struct Interval {
  std::int64_t from = 0, to = 0;
};

/// Returns them sorted, and joined where they overlap.
std::vector<Interval> merged(std::vector<Interval> intervals);
/// Nanoseconds that lie in both of two merged lists.
std::int64_t overlap(const std::vector<Interval>& a, const std::vector<Interval>& b);
std::int64_t length(const std::vector<Interval>& merged);

/// Converts this rank's clock to the coordinator's: coordinator time = local + offset - epoch.
struct CoordinatorTime {
  std::int64_t offset_ns = 0, epoch_ns = 0, error_ns = 0;
  std::int64_t of(std::int64_t local) const { return local + offset_ns - epoch_ns; }
};

/// The traffic of one step of a worker, or of the time between two publications of a server.
struct StepTraffic {
  std::uint64_t step = 0;
  std::uint64_t sent = 0, received = 0;  ///< Bytes of weights and gradients with headers.
  std::int64_t sending_ns = 0;           ///< Time in which a frame was going out.
  std::int64_t receiving_ns = 0;         ///< Time in which a frame was coming in.
  std::int64_t wire_ns = 0;              ///< Time in which either was.
  std::int64_t exposed_ns = 0;           ///< Part of wire_ns in which the worker waited, so that
                                         ///< nothing hid it.
};

/// Sums up the steps that the ledger still holds, the last `window` at least, without the first,
/// which waits for the initial weights or has lost some of its records. Figures are medians over
/// steps where not said otherwise.
struct TrafficSummary {
  std::uint64_t bytes_sent = 0, bytes_received = 0;  ///< All frames of the whole run.
  std::uint64_t steps = 0;                           ///< Steps that the medians are taken over.
  double step_sent = 0, step_received = 0;           ///< Bytes a step.
  /// Seconds of one transfer of all weights, at the rate of sending or of receiving, whichever is
  /// slower: a sender whose bytes fit into the kernel's buffers, or a receiver that finds them
  /// there, sees only a copy.
  double t_comm = 0;
  double wire_seconds = 0;     ///< StepTraffic::wire_ns in seconds.
  double exposed_seconds = 0;  ///< StepTraffic::exposed_ns in seconds.
};

/// The traffic of each step, from records in any order; `waits`: when the worker waited for
/// weights.
std::vector<StepTraffic> traffic_by_step(const std::vector<FrameRecord>& records,
                                         const std::vector<Interval>& waits);

/// Bytes of all frames, with headers.
struct FrameBytes {
  std::uint64_t sent = 0, received = 0;
};

class Ledger {
 public:
  /// Steps whose records are kept for the summary; older records are only in the file and the sums.
  static constexpr std::uint64_t window = 128;

  /// The part of the ledger that one thread writes: the frames to, or from, one peer.
  class Lane {
   public:
    void add(const FrameRecord& record);
    std::uint64_t sent() const;  ///< Bytes of all frames so far.
    std::uint64_t received() const;

   private:
    friend class Ledger;
    /// Guards all below. The lane's thread takes it, and the one that flushes the ledger; each
    /// takes no other lock meanwhile.
    mutable std::mutex mutex_;
    std::vector<FrameRecord> fresh_;
    std::uint64_t sent_ = 0, received_ = 0;
  };

  /// `path`: file for the CSV; empty: none is written.
  Ledger(int rank, const CoordinatorTime& time, const std::string& path);

  Lane& lane();  ///< Makes a lane, which lives as long as the ledger.

  // Called by the training thread.

  void waited(const Interval& interval);  ///< The worker waited for weights.
  /// Moves the records of lanes that have many, or of all, to the file and the window. It is called
  /// now and then, so that lanes take bounded memory and no time within a step.
  void flush(bool all = false);
  /// Flushes everything and closes the file. Throws Error if it could not be written.
  void close();

  /// Flushed records of weights and gradients in the window.
  const std::vector<FrameRecord>& records() const { return records_; }
  const CoordinatorTime& coordinator_time() const { return time_; }
  FrameBytes bytes() const;  ///< So far. Any thread may call it once all lanes are there.
  /// `weight_bytes`: bytes of the whole model's weights.
  TrafficSummary summary(std::uint64_t weight_bytes) const;

 private:
  void write(const FrameRecord& record);

  int rank_;
  CoordinatorTime time_;
  std::string path_;
  std::ofstream file_;
  std::string line_;
  std::deque<Lane> lanes_;
  std::vector<FrameRecord> records_;
  std::vector<Interval> waits_;
  std::uint64_t oldest_ = 0, newest_ = 0;  ///< Bounds of the window.
};

}  // namespace duplex::net
