// Does it pay to train on several machines, and how: the equations' answers for all modes, servers
// and numbers of workers, side by side.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tools/prediction/equations.h"

namespace duplex::tools {

/// A way to train in parallel.
struct Way {
  net::Sync sync;
  net::ServerMode server;

  std::string name() const;  ///< "sync join, distributed".
};

/// All of them, in the thesis's order.
std::vector<Way> all_ways();

/// The number of workers, of 2 to `most`, that makes a way the fastest; the smallest of equals.
struct Best {
  Way way;
  int workers = 1;
  double speedup = 1.0;
};
Best best_of(const Way& way, const Costs& costs, int most, int batches);
/// Of all ways.
Best best_of_all(const Costs& costs, int most, int batches);

/// By what factor a link has to be faster, or batches larger, for the best way to be exactly as
/// fast as one machine. Below 1: it may be as much slower, or they smaller, before one machine is
/// as fast.
double break_even(const Costs& costs, int most, int batches);

/// The table and what it means. `rate`: bytes a second that t_comm stands for, if it is known.
std::string advice(const Costs& costs, int most, int batches, std::optional<double> rate);

}  // namespace duplex::tools
