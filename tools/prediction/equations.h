// The thesis's equations (chapter 4): seconds and speedup of training in parallel, from t_comm and
// t_grad.
#pragma once
#include <cstdint>
#include <optional>

#include "net/coding/coding.h"
#include "net/store/store.h"
#include "net/topology/shard_map.h"

namespace duplex::tools {

/// The equations take these two times, in seconds; the thesis calls them c and g.
struct Costs {
  double comm = 0.0;  ///< One transfer of all weights over one link.
  double grad = 0.0;  ///< The gradient of one batch on one machine.
};

/// The costs with these codings on the wire: a transfer of weights and one of gradients take as
/// long as their bytes on the average.
Costs coded(Costs costs, const net::WireFormat& wire, const net::PackedParts& packed = {});

/// Returns the costs where the gradients of some layers are exchanged as factors
/// (docs/fewer-bytes.md): their weights are the part 1 - `left` of all, and a worker's factors have
/// `factors` times the bytes of all weights. With these costs (4.12) is the iteration of so many
/// workers.
Costs factored(Costs costs, const net::WireFormat& wire, const net::PackedParts& packed,
               double left, double factors, double workers);

/// One synchronous iteration with a central server: best (4.4), worst (4.7), and their mean (4.11).
double sync_central_best(const Costs& costs, double workers);
double sync_central_worst(const Costs& costs, double workers);
double sync_central(const Costs& costs, double workers);
/// One synchronous iteration with a distributed server (4.12).
double sync_distributed(const Costs& costs, double workers);

/// All of `batches` batches, asynchronously, with a central server: best (4.13)-(4.15), worst
/// (4.16), and their mean (4.20).
double async_central_best(const Costs& costs, double workers, double batches);
double async_central_worst(const Costs& costs, double workers, double batches);
double async_central(const Costs& costs, double workers, double batches);
/// The same with a distributed server (4.21).
double async_distributed(const Costs& costs, double workers, double batches);

/// Seconds of `batches` batches in parallel: those of (4.11), (4.12), (4.20) or (4.21). Join does N
/// batches in an iteration, split one, of which each worker has 1/N.
double parallel_seconds(const Costs& costs, net::Sync sync, net::ServerMode server, double workers,
                        double batches);

/// A time or a speedup lies between these two.
struct Interval {
  double low = 0.0, high = 0.0;
};

/// Seconds of `batches` batches with a central server, from the best case to the worst: (4.10) of a
/// synchronous iteration, times their number, or (4.19). None with a distributed server, of which
/// the thesis has one case alone.
std::optional<Interval> seconds_between(const Costs& costs, net::Sync sync, net::ServerMode server,
                                        double workers, double batches);

/// Speedup (4.23): the seconds that one machine takes for `batches` batches, over those of
/// `workers`.
double speedup(const Costs& costs, net::Sync sync, net::ServerMode server, double workers,
               double batches);
/// The speedups of seconds_between(), from the worst case to the best.
std::optional<Interval> speedup_between(const Costs& costs, net::Sync sync, net::ServerMode server,
                                        double workers, double batches);

/// Says how long the transfers of N workers over a server's link take. All at once, each is done
/// when all are, after N c. In turns, as semaphores have it, a transfer takes c where nobody is
/// before it (7.1) and N c where all others are (7.2), so it never takes longer (7.3).
double transfer_at_once(const Costs& costs, double workers);
Interval transfer_in_turns(const Costs& costs, double workers);

}  // namespace duplex::tools
