// Stragglers of a simulated run: ranks on which computing takes longer.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace duplex::tools {

/// The straggler of a "WHO:HOW". WHO is a rank, ranks A-B, or all. HOW is a factor, or a
/// distribution that every step's factor is drawn from: uniform:LOW:HIGH, lognormal:SIGMA (its
/// median is 1), or exponential:MEAN (which comes on top of 1).
struct Straggler {
  enum class Kind { factor, uniform, lognormal, exponential };
  int first = 0, last = 0;  ///< Ranks.
  Kind kind = Kind::factor;
  double a = 1.0, b = 1.0;

  /// Throws Error(Exit::usage), also for a rank that is none of `ranks`.
  static Straggler parse(const std::string& text, int ranks);
  bool varies() const { return kind != Kind::factor; }
};

/// Parses "A", "A-B" or "all" of `ranks` ranks; `what` begins the error's text. Throws
/// Error(Exit::usage).
struct Ranks {
  int first = 0, last = 0;
};
Ranks parse_ranks(const std::string& text, int ranks, const std::string& what);

/// The factor of a rank in a step: the product of all stragglers' that concern the rank. Empty if
/// there are none. The same seed, rank and step give the same factor, whatever else is asked.
std::function<double(int rank, std::uint64_t step)> straggler_factor(std::vector<Straggler> all,
                                                                     std::uint64_t seed);

/// A rank's factor on the average over many steps.
double mean_factor(const std::function<double(int rank, std::uint64_t step)>& factor, int rank);

}  // namespace duplex::tools
