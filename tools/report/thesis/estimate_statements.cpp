// What the thesis states of its estimates, and of the two costs that they take.
#include <algorithm>
#include <array>
#include <cmath>

#include "tools/report/thesis/accuracy.h"
#include "tools/report/thesis/reached.h"
#include "tools/report/thesis/statements.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;
using net::Sync;

const std::vector<ServerMode> both{ServerMode::central, ServerMode::distributed};

std::string percent(double part) {
  return fixed(100.0 * part, 1) + "%";
}

std::string count(std::size_t of, std::size_t all) {
  return std::to_string(of) + " of " + std::to_string(all);
}

std::string short_place(const Reached& point) {
  return std::string(net::name_of(point.server)) + ", N = " + std::to_string(point.workers);
}

/// The point of a figure that the estimates say is best, and the one that is.
struct Choice {
  Reached named, best;
  std::vector<Reached> points;

  bool right() const { return named.speedup >= equal * best.speedup; }
};

std::optional<Choice> choice(const Thesis& thesis, const ThesisFigure& figure,
                             const std::vector<ServerMode>& servers) {
  Choice choice;
  choice.points = whole_figure(thesis, figure, servers);
  if (choice.points.empty()) return std::nullopt;
  const auto estimate = [&](const Reached& point) {
    return estimated(thesis, figure, point.server, point.workers);
  };
  choice.named = *std::max_element(
      choice.points.begin(), choice.points.end(),
      [&](const Reached& a, const Reached& b) { return estimate(a) < estimate(b); });
  choice.best = best_of(choice.points);
  return choice;
}

Verdict squeezenet_peak(const Thesis& thesis) {
  Verdict verdict{"sections 6.4 and 7.1",
                  {"6.6"},
                  "SqueezeNet, split, central: best at N = 4, as the estimate foretold",
                  "",
                  Verdict::open};
  const auto found = choice(thesis, figure_of("6.6"), {ServerMode::central});
  if (!found) return verdict;
  std::string values;
  for (const Reached& point : found->points)
    values += (values.empty() ? "" : ", ") + point.number();
  const double at_4 = found->points[3].speedup;
  verdict.found = "estimated best at N = " + std::to_string(found->named.workers) +
                  ", best at N = " + std::to_string(found->best.workers) +
                  " (N = 1 to 8: " + values + ", " + found->best.how() + ")";
  verdict.outcome = found->named.workers == 4 && at_4 >= equal * found->best.speedup
                        ? Verdict::confirmed
                        : Verdict::refuted;
  return verdict;
}

/// Section 6.4 does not say in what the two differ: here it is where the speedup is greatest.
Verdict googlenet_contradiction(const Thesis& thesis) {
  const ThesisFigure& figure = figure_of("6.5");
  Verdict verdict{
      "section 6.4",
      {figure.number},
      "GoogLeNet, split, distributed: what was measured contradicts the estimate, which "
      "promises a speedup",
      "",
      Verdict::open};
  const auto found = choice(thesis, figure, {ServerMode::distributed});
  if (!found) return verdict;
  verdict.found =
      "estimated best at N = " + std::to_string(found->named.workers) + " with " +
      fixed(estimated(thesis, figure, ServerMode::distributed, found->named.workers), 2) +
      ", where it is " + found->named.number() +
      "; best at N = " + std::to_string(found->best.workers) + " with " + found->best.number() +
      " (" + found->best.how() + ")";
  verdict.outcome = found->right() ? Verdict::refuted : Verdict::confirmed;
  return verdict;
}

Verdict always_named(const Thesis& thesis) {
  Verdict verdict{"chapter 8",
                  {},
                  "The estimates always named the best number of machines and the kind of server",
                  "",
                  Verdict::open};
  std::size_t right = 0, figures = 0;
  std::string wrong;
  for (const ThesisFigure& figure : chapter_6()) {
    const auto found = choice(thesis, figure, both);
    if (!found) continue;
    ++figures;
    right += found->right() ? 1U : 0U;
    if (!found->right())
      wrong += std::string("; not in figure ") + figure.number + ": " + short_place(found->named) +
               " named, where it is " + found->named.number() + ", " + short_place(found->best) +
               " is best with " + found->best.number();
  }
  if (figures == 0) return verdict;
  verdict.found = "in " + count(right, figures) + " figures" + wrong;
  verdict.outcome = right == figures ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

/// The tendency is right where the estimates name the number of workers that is best.
Verdict accuracy(const Thesis& thesis, Sync sync, const std::string& section,
                 const std::string& mode, const std::string& exception = "") {
  Verdict verdict{"section " + section,
                  {},
                  mode +
                      ": estimates are accurate for a central server, less so for a distributed "
                      "one, whose tendency is right" +
                      exception,
                  "",
                  Verdict::open};
  const PredictionError central = estimate_error(thesis, ServerMode::central, sync),
                        distributed = estimate_error(thesis, ServerMode::distributed, sync);
  std::size_t right = 0, figures = 0;
  for (const ThesisFigure& figure : chapter_6()) {
    // Section 6.4 excepts this one: googlenet_contradiction().
    if (figure.sync != sync || std::string(figure.number) == "6.5") continue;
    const auto found = choice(thesis, figure, {ServerMode::distributed});
    if (!found) continue;
    ++figures;
    right += found->right() ? 1U : 0U;
  }
  if (central.points == 0 || distributed.points == 0 || figures == 0) return verdict;
  verdict.found = "central: off by " + percent(central.median) + " in the median, " +
                  percent(central.worst) + " at most; distributed: by " +
                  percent(distributed.median) + ", " + percent(distributed.worst) + " at most (" +
                  distributed.worst_at + "); its best N is named in " + count(right, figures) +
                  " figures";
  verdict.outcome =
      central.median <= close && distributed.median > central.median && right == figures
          ? Verdict::confirmed
          : Verdict::refuted;
  return verdict;
}

/// (4.10) and (4.19).
Verdict between(const Thesis& thesis) {
  Verdict verdict{"chapter 4",
                  {},
                  "With a central server the truth lies between best and worst case, (4.10) and "
                  "(4.19)",
                  "",
                  Verdict::open};
  std::size_t inside = 0, points = 0;
  double furthest = 0.0;
  std::string where;
  for (const ThesisFigure& figure : chapter_6()) {
    for (int n = 1; n <= figure.most; ++n) {
      const auto point = reached(thesis, figure, ServerMode::central, n);
      if (!point) continue;
      const Interval limits = *estimated_between(thesis, figure, ServerMode::central, n);
      const double outside =
          std::max(limits.low / point->speedup, point->speedup / limits.high) - 1.0;
      ++points;
      inside += outside <= 1.0 / equal - 1.0 ? 1U : 0U;
      if (outside <= furthest) continue;
      furthest = outside;
      where = point->place();
    }
  }
  if (points == 0) return verdict;
  verdict.found = count(inside, points) + " points do";
  if (inside < points)
    verdict.found +=
        ", and the others are outside by " + percent(furthest) + " at most (" + where + ")";
  verdict.outcome = furthest <= close ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

/// Alike: no more apart than those of Table 6.1, or a tenth more.
Verdict gradients(const Thesis& thesis) {
  Verdict verdict{"section 7.1", {}, "t_grad of the four networks is alike", "", Verdict::open};
  std::vector<double> stated, here;
  for (const ThesisNetwork& network : table_6_1()) {
    stated.push_back(network.costs.grad);
    const auto found = thesis.costs.find(network.name);
    if (found != thesis.costs.end() && found->second.grad_cpu)
      here.push_back(*found->second.grad_cpu);
  }
  if (here.size() < stated.size()) return verdict;
  std::sort(stated.begin(), stated.end());
  std::sort(here.begin(), here.end());
  verdict.found = fixed(here.front(), 2) + " to " + fixed(here.back(), 2) +
                  " s with as many images each on this CPU; Table 6.1 has " +
                  fixed(stated.front(), 2) + " to " + fixed(stated.back(), 2) +
                  " s and does not say how many images a batch had";
  verdict.outcome = here.back() / here.front() <= (1.0 + close) * stated.back() / stated.front()
                        ? Verdict::confirmed
                        : Verdict::refuted;
  return verdict;
}

Verdict transfers(const Thesis& thesis) {
  Verdict verdict{"section 7.1",
                  {},
                  "Transfers of GoogLeNet, Resnet34 and VGG16E take 7, 27 and 170 times "
                  "SqueezeNet's",
                  "",
                  Verdict::open};
  const auto comm = [&](const char* network) {
    const auto found = thesis.costs.find(network);
    return found == thesis.costs.end() ? 0.0 : found->second.comm_taken();
  };
  struct Stated {
    const char* network;
    double times;
  };
  constexpr std::array<Stated, 3> stated{
      {{"googlenet", 7.0}, {"resnet34", 27.0}, {"vgg16e", 170.0}}};
  const double unit = comm("squeezenet"), own_unit = thesis_network("squeezenet").costs.comm;
  std::string here, table;
  bool near = true;
  for (const Stated& each : stated) {
    const double times = unit > 0.0 ? comm(each.network) / unit : 0.0;
    if (times <= 0.0) return verdict;
    near = near && std::abs(times / each.times - 1.0) <= close;
    const std::string gap = here.empty() ? "" : ", ";
    here += gap + fixed(times, 1);
    table += gap + fixed(thesis_network(each.network).costs.comm / own_unit, 1);
  }
  verdict.found = here + " times here; Table 6.1 has " + table;
  verdict.outcome = near ? Verdict::confirmed : Verdict::refuted;
  return verdict;
}

}  // namespace

std::vector<Verdict> estimate_verdicts(const Thesis& thesis) {
  return {squeezenet_peak(thesis),
          googlenet_contradiction(thesis),
          always_named(thesis),
          accuracy(thesis, Sync::join, "6.3", "Join"),
          accuracy(thesis, Sync::split, "6.4", "Split", ", but for GoogLeNet"),
          accuracy(thesis, Sync::none, "6.5", "Asynchronous"),
          between(thesis),
          gradients(thesis),
          transfers(thesis)};
}

}  // namespace duplex::tools::reports
