// Advice on whether it pays to train on several machines, and how: the equations' answers for all
// modes, servers and numbers of workers, side by side.
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

/// All ways, in the thesis's order.
std::vector<Way> all_ways();

/// The number of workers, from 2 to `most`, that makes a way the fastest; the smallest of equals.
struct Best {
  Way way;
  int workers = 1;
  double speedup = 1.0;
};
Best best_of(const Way& way, const Costs& costs, int most, int batches);
/// The best of all ways.
Best best_of_all(const Costs& costs, int most, int batches);

/// The factor by which a link has to be faster, or batches larger, for the best way to be exactly
/// as fast as one machine. Below 1, the link may be as much slower, or batches smaller, before one
/// machine is as fast.
double break_even(const Costs& costs, int most, int batches);

/// The table with its meaning in words. `rate`: bytes a second that t_comm stands for, if known.
std::string advice(const Costs& costs, int most, int batches, std::optional<double> rate);

}  // namespace duplex::tools
