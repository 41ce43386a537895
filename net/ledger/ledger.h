// The ledger has a record of every frame that crossed this rank's wire; its files are on the
// coordinator's clock. Its sums are checked against the kernel's counters, and t_comm and exposed
// communication are computed from it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "net/ledger/csv_file.h"
#include "net/ledger/frame_record.h"
#include "net/ledger/ledger_row.h"
#include "net/ledger/sampled_steps.h"
#include "net/ledger/trace.h"
#include "net/ledger/traffic.h"
#include "net/ledger/traffic_sums.h"

namespace duplex::net {

/// Bytes of all frames, with headers.
struct FrameBytes {
  std::uint64_t sent = 0, received = 0;
  std::int64_t saved_sent = 0, saved_received = 0;  ///< By the codings of values.
};

/// Where the ledger's files lie; empty: there is none.
struct LedgerPaths {
  std::string frames;   ///< A row a frame.
  std::string traffic;  ///< A row a step.
};

struct LedgerSpec {
  int rank = 0;
  CoordinatorTime time;
  LedgerPaths paths;
  FrameSample sample;                           ///< The frames that the file has.
  std::uint64_t first_step = 0;                 ///< The step that the run begins with.
  std::uint64_t trace_steps = 0;                ///< The last steps whose frames traced() has.
  std::function<void(const std::string&)> log;  ///< Takes a line for the user; may be empty.
};

/// A record goes from its lane into the files and the sums, and is not kept, but for the trace. So
/// the ledger's memory is bounded, whatever the length of the run: by what a few steps bring
/// (TrafficSums), what lanes gather between two calls of flush(), and the trace.
class Ledger {
 public:
  /// The part of the ledger that one thread writes: the frames to, or from, one peer.
  class Lane {
   public:
    explicit Lane(Ledger& ledger) : ledger_(ledger) {}
    /// Flushes the ledger where the lane has many records, since nobody else does.
    void add(const FrameRecord& record);
    FrameBytes bytes() const;  ///< The bytes of all frames so far.

   private:
    friend class Ledger;
    Ledger& ledger_;
    /// Guards all below. The lane's thread takes it, and those that flush the ledger or ask for its
    /// bytes, which hold the ledger's; each takes no other lock meanwhile.
    mutable std::mutex mutex_;
    std::vector<FrameRecord> fresh_;
    FrameBytes bytes_;
  };

  /// Throws Error if a file cannot be opened.
  explicit Ledger(LedgerSpec spec = {});
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Makes a lane, which lives as long as the ledger. Any thread may call it, at any time.
  Lane& lane();

  // Called by the training thread.

  /// The worker waited for the weights of `step`. Waits come in the order of their ends.
  void waited(const Interval& interval, std::uint64_t step);
  /// Takes the records of all lanes into files and sums. It is called between steps and in long
  /// waits, so that lanes take bounded memory and no time within a step.
  void flush();
  /// Flushes, sums up the steps that are open, and closes the files. Throws Error if one could not
  /// be written.
  void close();

  /// Says which frames their file has and, once it is closed, whether it is whole.
  FramesKept kept() const;
  /// The frames of weights and gradients of the last steps that were flushed.
  std::vector<TraceEvent> traced() const { return trace_.events(); }
  const CoordinatorTime& coordinator_time() const { return spec_.time; }
  FrameBytes bytes() const;  ///< So far. Any thread may call it.
  /// Sums up what was flushed; only its bytes are of all frames. `weight_bytes`: bytes of the
  /// whole model's weights.
  TrafficSummary summary(std::uint64_t weight_bytes) const;
  std::size_t held() const;  ///< Bytes of memory that it takes, about, without the trace.

 private:
  struct Wait {
    Interval interval;
    std::uint64_t step = 0;
  };
  void flush_if_free();  ///< Unless another thread has the ledger.
  std::string take_records();
  void book(const FrameRecord& record);
  void write(const FrameRecord& record);
  std::string left_out() const;

  const LedgerSpec spec_;

  /// Guards all below, but for the trace and what is in a lane, which have locks of their own.
  /// A thread that flushes or asks for the bytes takes it, and then those of the lanes, one by one.
  mutable std::mutex mutex_;
  std::deque<Lane> lanes_;
  CsvFile<LedgerRow> frames_;
  CsvFile<StepTraffic> traffic_;
  SampledSteps sample_;
  TrafficSums sums_;
  TraceWindow trace_;
  std::vector<FrameRecord> taken_;  ///< A lane's, while they are booked.
  std::vector<Wait> waits_;         ///< Waits that flush() has still to add to the sums.
  bool tells_ = false;              ///< The user is still to be told that frames are left out.
  bool broken_ = false;             ///< The file of frames is not whole.
};

}  // namespace duplex::net
