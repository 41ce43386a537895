#include "tools/report/thesis/statements.h"

#include <algorithm>
#include <cmath>

#include "models/registry.h"
#include "tools/prediction/layer_times.h"
#include "tools/report/thesis/accuracy.h"
#include "tools/report/thesis/reached.h"
#include "tools/scenario/scenario.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;
using net::Sync;

const std::vector<ServerMode> both{ServerMode::central, ServerMode::distributed};

/// In the thesis's order, with its own t_comm.
double with_its_own_costs(const ThesisFigure& figure, ServerMode server, int workers) {
  const ThesisNetwork& network = thesis_network(figure.network);
  models::ModelOptions options;
  options.classes = caltech_classes;
  const Model model = models::build(figure.network, options);
  SimulationRequest request;
  request.workers = workers;
  request.parallel.sync = figure.sync;
  request.parallel.server = server;
  request.parallel.shards = net::Shards::tensors;
  request.parallel.overlap = false;
  Scenario scenario =
      Scenario::with_comm(model, share_out(network.costs.grad, model), network.costs.comm);
  scenario.batch = 840;  // 1 to 8 workers share it evenly.
  return simulated_speedup(request, scenario, 16);
}

/// "more: 2.54 on the lab, 2.35 simulated with Table 6.1's t_comm".
void compare_with(double stated, const Thesis& thesis, const Reached& point, Verdict& verdict) {
  const bool near = std::abs(point.speedup / stated - 1.0) <= close;
  verdict.found = (near                     ? ""
                   : point.speedup > stated ? "more: "
                                            : "less: ") +
                  point.number() + " " + point.how() + ", " +
                  fixed(with_its_own_costs(*point.figure, point.server, point.workers), 2) +
                  " simulated with Table 6.1's t_comm" + overlap_text(thesis, point);
  verdict.outcome = near ? Verdict::confirmed : Verdict::refuted;
}

/// A speedup with a distributed server and eight workers.
Verdict stated(const Thesis& thesis, const char* figure, const std::string& statement,
               double speedup) {
  Verdict verdict{"section 7.1", {figure}, statement, "", Verdict::open};
  if (const auto point = reached(thesis, figure_of(figure), ServerMode::distributed, 8))
    compare_with(speedup, thesis, *point, verdict);
  return verdict;
}

/// Says where the points with these servers and two workers or more lie, beside one machine alone:
/// all of them below its speed, or above, or that some exceed it.
struct Claim {
  std::vector<ServerMode> servers;
  enum Side { below, above, exceeds } side;
};

/// The point that decides about a claim: the fastest, or for `above` the slowest.
std::optional<Reached> deciding(const Thesis& thesis, const std::vector<std::string>& figures,
                                const Claim& claim) {
  std::optional<Reached> extreme;
  for (const std::string& number : figures) {
    const ThesisFigure& figure = figure_of(number);
    for (const ServerMode server : claim.servers) {
      for (int n = 2; n <= figure.most; ++n) {
        const auto point = reached(thesis, figure, server, n);
        if (!point) continue;
        if (!extreme || (claim.side == Claim::above ? point->speedup < extreme->speedup
                                                    : point->speedup > extreme->speedup))
          extreme = point;
      }
    }
  }
  return extreme;
}

Verdict sides(const Thesis& thesis, Verdict verdict, const std::vector<Claim>& claims) {
  bool holds = true, known = true;
  for (const Claim& claim : claims) {
    const auto extreme = deciding(thesis, verdict.figures, claim);
    known = known && extreme;
    if (!extreme) continue;
    holds = holds && (claim.side == Claim::below ? extreme->speedup < 1.0 : extreme->speedup > 1.0);
    verdict.found += (verdict.found.empty() ? "" : "; ") +
                     std::string(claim.side == Claim::above     ? "at least "
                                 : claim.side == Claim::exceeds ? "up to "
                                                                : "at most ") +
                     extreme->number() + " (" + extreme->place() + overlap_text(thesis, *extreme) +
                     ")";
  }
  if (known) verdict.outcome = holds ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

/// (4.11) contradicts it for a central server.
Verdict resnet_join(const Thesis& thesis) {
  Verdict verdict = sides(
      thesis, {"section 6.3", {"6.4"}, "Resnet34, join: always above 1, with either server", ""},
      {{{ServerMode::central}, Claim::above}, {{ServerMode::distributed}, Claim::above}});
  double most = 0.0;
  for (int n = 2; n <= 8; ++n)
    most = std::max(most, estimated(thesis, figure_of("6.4"), ServerMode::central, n));
  if (!verdict.found.empty())
    verdict.found += "; (4.11) says at most " + fixed(most, 2) + " with a central server";
  return verdict;
}

/// 4 "with split of batches", as it stands: the best point of the figure.
Verdict googlenet_split(const Thesis& thesis) {
  const ThesisFigure& figure = figure_of("6.5");
  Verdict verdict{"section 7.1",
                  {figure.number},
                  "GoogLeNet: 4 \"with split of batches\", read as it stands",
                  "",
                  Verdict::open};
  const std::vector<Reached> points = whole_figure(thesis, figure, both);
  if (points.empty()) return verdict;
  const Reached& best = best_of(points);
  compare_with(4.0, thesis, best, verdict);
  verdict.found += "; that is the best of the figure (" + std::string(net::name_of(best.server)) +
                   ", N = " + std::to_string(best.workers) + "), and (4.12) gives " +
                   fixed(estimated_by_table_6_1(figure, ServerMode::distributed, 8), 2) +
                   " for N = 8 with Table 6.1's costs";
  return verdict;
}

Verdict squeezenet_server(const Thesis& thesis) {
  Verdict verdict{"sections 6.3 and 6.5",
                  {"6.3", "6.10"},
                  "SqueezeNet, join and asynchronous: the kind of server does not matter",
                  "",
                  Verdict::open};
  bool alike = true;
  for (const std::string& number : verdict.figures) {
    const std::vector<Pair> pairs = pairs_of(thesis, figure_of(number), Order::strict);
    if (pairs.empty()) return verdict;
    const auto apart = [](const Pair& pair) { return std::abs(std::log(pair.ratio())); };
    const Pair& widest =
        *std::max_element(pairs.begin(), pairs.end(),
                          [&](const Pair& a, const Pair& b) { return apart(a) < apart(b); });
    alike = alike && apart(widest) <= std::log(1.0 + close);
    verdict.found += (verdict.found.empty() ? "" : "; ") + fixed(widest.central, 2) +
                     " with a central server, " + fixed(widest.distributed, 2) +
                     " with a distributed one (" + widest.place() + ")";
  }
  verdict.outcome = alike ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

Verdict never_slower(const Thesis& thesis) {
  Verdict verdict{"chapter 8",
                  {},
                  "A distributed server is never slower than a central one",
                  "",
                  Verdict::open};
  bool holds = true;
  for (const Order order : {Order::strict, Order::overlap}) {
    std::vector<Pair> pairs;
    for (const ThesisFigure& figure : chapter_6())
      for (const Pair& pair : pairs_of(thesis, figure, order)) pairs.push_back(pair);
    if (pairs.empty()) continue;
    const auto kept = std::count_if(pairs.begin(), pairs.end(),
                                    [](const Pair& pair) { return pair.ratio() >= equal; });
    const Pair& least =
        *std::min_element(pairs.begin(), pairs.end(),
                          [](const Pair& a, const Pair& b) { return a.ratio() < b.ratio(); });
    const bool strict = order == Order::strict;
    verdict.found += (strict                  ? ""
                      : verdict.found.empty() ? "with overlap "
                                              : "; with overlap ") +
                     std::to_string(kept) + " of " + std::to_string(pairs.size()) +
                     " pairs, at least " + fixed(least.ratio(), 3) + " times as fast (" +
                     least.place() + ")";
    if (!strict) continue;
    holds = kept == static_cast<std::ptrdiff_t>(pairs.size());
    verdict.outcome = holds ? Verdict::confirmed : Verdict::refuted;
  }
  return verdict;
}

/// One worker with either server, beside one machine alone, which has speedup 1.
Verdict one_worker(const Thesis& thesis, ServerMode server) {
  const bool central = server == ServerMode::central;
  Verdict verdict{"section 7.1",
                  {},
                  central
                      ? "One worker with a central server is always slower than one machine alone"
                      : "One worker with a distributed server is slightly slower than one "
                        "machine alone",
                  "",
                  Verdict::open};
  std::vector<Reached> points;
  for (const ThesisFigure& figure : chapter_6())
    if (const auto point = reached(thesis, figure, server, 1)) points.push_back(*point);
  if (points.empty()) return verdict;
  std::sort(points.begin(), points.end(),
            [](const Reached& a, const Reached& b) { return a.speedup < b.speedup; });
  const auto kept = std::count_if(points.begin(), points.end(), [&](const Reached& point) {
    return point.speedup < 1.0 && (central || point.speedup >= 1.0 - close);
  });
  const Reached &least = points.front(), &most = points.back();
  verdict.found = "so in " + std::to_string(kept) + " of " + std::to_string(points.size()) +
                  " figures: " + fixed(least.speedup, 3) + " (" + least.place() + ") to " +
                  fixed(most.speedup, 3) + " (" + most.place() + ")";
  verdict.outcome =
      kept == static_cast<std::ptrdiff_t>(points.size()) ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

}  // namespace

bool Verdict::is_of(const std::string& figure) const {
  return std::find(figures.begin(), figures.end(), figure) != figures.end();
}

std::string Verdict::place() const {
  std::string text = where;
  for (const std::string& figure : figures)
    text += (&figure != &figures.front() ? ", "
             : figures.size() > 1        ? "; figures "
                                         : "; figure ") +
            figure;
  return text;
}

std::string Verdict::text() const {
  switch (outcome) {
    case confirmed:
      return "confirmed";
    case refuted:
      return "not confirmed";
    default:
      return "not measured";
  }
}

std::vector<Verdict> speedup_verdicts(const Thesis& thesis) {
  const std::vector<ServerMode> central{ServerMode::central}, distributed{ServerMode::distributed};
  return {
      sides(thesis,
            {"sections 6.3, 6.5 and 7.1, chapter 8",
             {"6.1", "6.8"},
             "VGG16E, join and asynchronous: never faster than one machine",
             ""},
            {{both, Claim::below}}),
      stated(thesis, "6.4", "Resnet34: at most 2.1 (join, distributed, N = 8)", 2.1),
      resnet_join(thesis),
      sides(thesis,
            {"chapter 8, which contradicts section 6.3",
             {"6.4", "6.7", "6.11"},
             "Resnet34: a distributed server was necessary to exceed 1",
             ""},
            {{central, Claim::below}, {distributed, Claim::exceeds}}),
      sides(thesis, {"section 6.4", {"6.7"}, "Resnet34, split: always below 1", ""},
            {{both, Claim::below}}),
      sides(
          thesis,
          {"section 6.5",
           {"6.11"},
           "Resnet34, asynchronous: below 1 with a central server, above 1 with a distributed one",
           ""},
          {{central, Claim::below}, {distributed, Claim::above}}),
      stated(thesis, "6.9", "GoogLeNet: 3.9 (asynchronous, distributed, N = 8)", 3.9),
      googlenet_split(thesis),
      stated(thesis, "6.2",
             "GoogLeNet: 4 \"with split of batches\", read as join (distributed, N = 8)", 4.0),
      stated(thesis, "6.3", "SqueezeNet: 6.5 (join, distributed, N = 8)", 6.5),
      squeezenet_server(thesis),
      never_slower(thesis),
      one_worker(thesis, ServerMode::central),
      one_worker(thesis, ServerMode::distributed),
  };
}

std::vector<Verdict> verdicts(const Thesis& thesis) {
  std::vector<Verdict> all = speedup_verdicts(thesis);
  for (Verdict& verdict : estimate_verdicts(thesis)) all.push_back(std::move(verdict));
  return all;
}

}  // namespace duplex::tools::reports
