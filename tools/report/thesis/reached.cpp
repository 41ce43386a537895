#include "tools/report/thesis/reached.h"

#include <algorithm>

#include "core/error.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;

/// What is known of a speedup, and how.
struct Known {
  std::optional<double> simulated, lab;
};

Known known(const Thesis& thesis, const ThesisFigure& figure, ServerMode server, int workers,
            Order order) {
  const ThesisPoint* point = thesis.point(figure.number, server, workers);
  if (point == nullptr) return {};
  const bool overlap = order == Order::overlap;
  const std::optional<LabResult>& lab = overlap ? point->lab_overlap : point->lab;
  return {overlap ? point->simulated_overlap : point->simulated,
          lab ? std::optional(lab->speedup) : std::nullopt};
}

}  // namespace

std::string Reached::number() const {
  return fixed(speedup, 2);
}

std::string Reached::place() const {
  return std::string("figure ") + figure->number + ", " + net::name_of(server) +
         ", N = " + std::to_string(workers) + ", " + how();
}

std::string Pair::place() const {
  return std::string("figure ") + figure->number + ", N = " + std::to_string(workers) +
         (lab ? ", on the lab" : ", simulated");
}

const ThesisFigure& figure_of(std::string_view number) {
  const auto found =
      std::find_if(chapter_6().begin(), chapter_6().end(),
                   [&](const ThesisFigure& figure) { return number == figure.number; });
  if (found == chapter_6().end())
    throw Error("points.jsonl has a point of figure " + std::string(number) +
                ", which chapter 6 does not have");
  return *found;
}

std::optional<Reached> reached(const Thesis& thesis, const ThesisFigure& figure, ServerMode server,
                               int workers) {
  const Known here = known(thesis, figure, server, workers, Order::strict);
  if (!here.lab && !here.simulated) return std::nullopt;
  return Reached{&figure, server, workers, here.lab ? *here.lab : *here.simulated,
                 here.lab.has_value()};
}

std::string overlap_text(const Thesis& thesis, const Reached& point) {
  const Known here = known(thesis, *point.figure, point.server, point.workers, Order::overlap);
  if (here.lab) return "; with overlap " + fixed(*here.lab, 2) + " on the lab";
  if (here.simulated) return "; with overlap " + fixed(*here.simulated, 2) + " simulated";
  return "";
}

std::vector<Reached> whole_figure(const Thesis& thesis, const ThesisFigure& figure,
                                  const std::vector<ServerMode>& servers) {
  for (const bool lab : {true, false}) {
    std::vector<Reached> points;
    for (const ServerMode server : servers) {
      for (int n = 1; n <= figure.most; ++n) {
        const Known here = known(thesis, figure, server, n, Order::strict);
        if (const auto speedup = lab ? here.lab : here.simulated)
          points.push_back({&figure, server, n, *speedup, lab});
      }
    }
    if (points.size() == servers.size() * static_cast<std::size_t>(figure.most)) return points;
  }
  return {};
}

const Reached& best_of(const std::vector<Reached>& points) {
  return *std::max_element(points.begin(), points.end(), [](const Reached& a, const Reached& b) {
    return a.speedup < b.speedup;
  });
}

std::vector<Pair> pairs_of(const Thesis& thesis, const ThesisFigure& figure, Order order) {
  std::vector<Pair> pairs;
  for (int n = 1; n <= figure.most; ++n) {
    const Known central = known(thesis, figure, ServerMode::central, n, order),
                distributed = known(thesis, figure, ServerMode::distributed, n, order);
    if (central.lab && distributed.lab)
      pairs.push_back({&figure, n, *central.lab, *distributed.lab, true});
    else if (central.simulated && distributed.simulated)
      pairs.push_back({&figure, n, *central.simulated, *distributed.simulated, false});
  }
  return pairs;
}

}  // namespace duplex::tools::reports
