#include "tools/scenario/stragglers.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "core/random.h"
#include "tools/simulation/draw.h"
#include "tools/text/cells.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr double above_0 = 1e-9;

bool read_rank(const std::string& text, int& rank) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  return error == std::errc() && end == text.data() + text.size() && rank >= 0;
}

double number(const std::string& text, double minimum, const std::string& what) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !std::isfinite(value) || value < minimum)
    throw Error("--slow '" + what + "': '" + text + "' is not a number of " +
                    (minimum < above_0   ? "0 or more"
                     : minimum > above_0 ? fixed(minimum, 2) + " or more"
                                         : "more than 0"),
                Exit::usage);
  return value;
}

double draw(const Straggler& of, const RandomStream& random, std::uint64_t step) {
  switch (of.kind) {
    case Straggler::Kind::uniform:
      return of.a + (of.b - of.a) * simulation::uniform(random, step);
    case Straggler::Kind::lognormal:
      return std::exp(of.a * simulation::normal(random, step));
    case Straggler::Kind::exponential:
      return 1.0 - of.a * std::log(simulation::uniform(random, step));
    case Straggler::Kind::factor:
      break;
  }
  return of.a;
}

}  // namespace

Ranks parse_ranks(const std::string& text, int ranks, const std::string& what) {
  if (text == "all") return {0, ranks - 1};
  Ranks read;
  const auto dash = text.find('-');
  const bool one = dash == std::string::npos;
  const std::string first = text.substr(0, dash), last = one ? first : text.substr(dash + 1);
  if (!read_rank(first, read.first) || !read_rank(last, read.last) || read.last < read.first)
    throw Error(what + ": '" + text + "' is neither a rank, nor ranks A-B, nor all", Exit::usage);
  if (read.last >= ranks)
    throw Error(what + ": the last rank is " + std::to_string(ranks - 1), Exit::usage);
  return read;
}

Straggler Straggler::parse(const std::string& text, int ranks) {
  const std::vector<std::string> parts = cells_of(text, ':');
  const auto has = [&](std::size_t count, const char* name) {
    return parts.size() == count && (count == 2 || parts[1] == name);
  };
  Straggler read;
  const Ranks who = parse_ranks(parts[0], ranks, "--slow '" + text + "'");
  read.first = who.first;
  read.last = who.last;
  if (has(3, "lognormal")) {
    read.kind = Kind::lognormal;
    read.a = number(parts[2], 0.0, text);
  } else if (has(3, "exponential")) {
    read.kind = Kind::exponential;
    read.a = number(parts[2], 0.0, text);
  } else if (has(4, "uniform")) {
    read.kind = Kind::uniform;
    read.a = number(parts[2], above_0, text);
    read.b = number(parts[3], read.a, text);
  } else if (has(2, "")) {
    read.a = number(parts[1], above_0, text);
  } else {
    throw Error("--slow '" + text +
                    "' is not RANKS:FACTOR, RANKS:uniform:LOW:HIGH, RANKS:lognormal:SIGMA or "
                    "RANKS:exponential:MEAN",
                Exit::usage);
  }
  return read;
}

std::function<double(int rank, std::uint64_t step)> straggler_factor(std::vector<Straggler> all,
                                                                     std::uint64_t seed) {
  if (all.empty()) return {};
  return
      [all = std::move(all), seed, stream = stream_of("slowness")](int rank, std::uint64_t step) {
        double factor = 1.0;
        for (std::size_t i = 0; i < all.size(); ++i) {
          if (rank < all[i].first || rank > all[i].last) continue;
          const RandomStream random(seed, stream + static_cast<std::uint64_t>(rank),
                                    static_cast<std::uint32_t>(i));
          factor *= draw(all[i], random, step);
        }
        return factor;
      };
}

double mean_factor(const std::function<double(int rank, std::uint64_t step)>& factor, int rank) {
  constexpr std::uint64_t steps = 64;
  double sum = 0.0;
  for (std::uint64_t step = 0; step < steps; ++step) sum += factor(rank, step);
  return sum / static_cast<double>(steps);
}

}  // namespace duplex::tools
