// Speedups that were reached here, as the verdicts compare them.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {

/// A stated speedup, and what the thesis calls accurate, alike or slight without a number, counts
/// as confirmed within so much of it.
constexpr double close = 0.10;

/// Two speedups are called equal if one is at least this part of the other.
constexpr double equal = 0.99;

/// A speedup in the thesis's order: the lab's, or else the simulation's.
struct Reached {
  const ThesisFigure* figure = nullptr;  ///< Of chapter_6().
  net::ServerMode server = net::ServerMode::central;
  int workers = 1;
  double speedup = 0.0;
  bool lab = false;  ///< Otherwise it was simulated.

  std::string number() const;  ///< "0.54".
  std::string place() const;   ///< "figure 6.4, central, N = 8, on the lab".
  std::string how() const { return lab ? "on the lab" : "simulated"; }
};

/// Throws Error: chapter 6 has no such figure.
const ThesisFigure& figure_of(std::string_view number);

std::optional<Reached> reached(const Thesis& thesis, const ThesisFigure& figure,
                               net::ServerMode server, int workers);
/// "; with overlap 1.11 on the lab", or "".
std::string overlap_text(const Thesis& thesis, const Reached& point);

/// Every point of a figure with these servers: the lab's, or, if it does not have them all, the
/// simulation's, so that they may be compared with each other. Empty where neither has them all.
std::vector<Reached> whole_figure(const Thesis& thesis, const ThesisFigure& figure,
                                  const std::vector<net::ServerMode>& servers);
const Reached& best_of(const std::vector<Reached>& points);  ///< The first of equals.

/// A point of both servers, both on the lab, or both simulated; `overlap`: with it.
struct Pair {
  const ThesisFigure* figure = nullptr;
  int workers = 1;
  double central = 0.0, distributed = 0.0;
  bool lab = false;

  double ratio() const { return distributed / central; }
  std::string place() const;  ///< "figure 6.3, N = 8, on the lab".
};
enum class Order { strict, overlap };
std::vector<Pair> pairs_of(const Thesis& thesis, const ThesisFigure& figure, Order order);

}  // namespace duplex::tools::reports
