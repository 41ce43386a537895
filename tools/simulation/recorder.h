// The recorder keeps what a simulated run leaves: the ledgers and the trace that dist would write.
#pragma once
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/ledger/ledger.h"
#include "net/ledger/trace.h"
#include "tools/tracing/trace.h"

namespace duplex::tools::simulation {

inline std::int64_t nanoseconds(double seconds) {
  return std::llround(seconds * 1e9);
}

/// Records the first ranks of a run. Times are nanoseconds since its beginning.
class Recorder {
 public:
  /// `paths`: the ledgers of ranks 0, 1, ..., which have the frames of `sample`; those of other
  /// ranks are not kept. `trace_steps`: number of steps in the trace; 0: there is none. `log` takes
  /// lines for the user; may be empty.
  Recorder(const std::vector<net::LedgerPaths>& paths, const net::FrameSample& sample,
           std::uint64_t trace_steps, const std::function<void(const std::string&)>& log);

  bool keeps(int rank) const { return static_cast<std::size_t>(rank) < ranks_.size(); }
  bool traces(int rank) const { return keeps(rank) && trace_steps_ > 0; }

  // These are called for ranks that it keeps.

  void frame(int rank, const net::FrameRecord& record);
  void waited(int rank, const net::Interval& interval, std::uint64_t step);
  void event(int rank, const net::TraceEvent& event);

  /// Writes the rest of the ledgers. Throws Error if they cannot be written.
  void close();
  const net::Ledger& ledger(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)]->ledger;
  }
  std::vector<RankTrace> trace() const;

 private:
  struct Rank {
    explicit Rank(const net::LedgerSpec& spec)
        : ledger(spec), lane(ledger.lane()), window(spec.trace_steps) {}
    net::Ledger ledger;
    net::Ledger::Lane& lane;
    net::TraceWindow window;
    std::size_t unflushed = 0;
  };
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::uint64_t trace_steps_;
};

}  // namespace duplex::tools::simulation
