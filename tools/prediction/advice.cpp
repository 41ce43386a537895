#include "tools/prediction/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr std::size_t columns_at_most = 6;

/// Numbers of workers that the table shows: all, or powers of some factor and the last.
std::vector<int> shown(int most) {
  for (int factor = 1;; factor *= 2) {
    std::vector<int> numbers;
    for (std::int64_t n = 1; n <= most; n = factor == 1 ? n + 1 : n * factor)
      numbers.push_back(static_cast<int>(n));
    if (numbers.back() != most) numbers.push_back(most);
    if (numbers.size() <= columns_at_most) return numbers;
  }
}

/// The most workers that a way can use. Split divides batches, not their number, so that any number
/// of workers has something to do.
int usable(const Way& way, int most, int batches) {
  return way.sync == net::Sync::split ? most : std::min(most, batches);
}

double speedup_of(const Way& way, const Costs& costs, int workers, int batches) {
  return speedup(costs, way.sync, way.server, workers, batches);
}

std::string figure(double value) {
  return fixed(value, value < 100.0 ? 2 : 0);
}

std::string times(double factor) {
  return fixed(factor, factor < 10.0 ? 2 : 0) + " times";
}

/// Says which of its equation's terms a way's time goes into.
std::string dominating(const Best& best, const Costs& costs, int batches) {
  const auto alone = [&](const Costs& part) {
    return parallel_seconds(part, best.way.sync, best.way.server, best.workers, batches);
  };
  const double moving = alone({costs.comm, 0.0}), computing = alone({0.0, costs.grad});
  return std::string(moving > computing ? "Moving weights" : "Computing") + " dominates: of " +
         grouped(batches) + " batches, moving alone takes " + duration_text(moving) +
         ",\ncomputing alone " + duration_text(computing) + ".\n";
}

std::string machines(const Best& best) {
  return std::to_string(best.workers) + " workers" +
         (best.way.server == net::ServerMode::central ? " and the server's machine" : "");
}

}  // namespace

std::string Way::name() const {
  const std::string mode = sync == net::Sync::none    ? "async"
                           : sync == net::Sync::split ? "sync split"
                                                      : "sync join";
  return mode + ", " + (server == net::ServerMode::central ? "central" : "distributed");
}

std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const net::Sync sync : {net::Sync::join, net::Sync::split, net::Sync::none})
    for (const auto server : {net::ServerMode::central, net::ServerMode::distributed})
      ways.push_back({sync, server});
  return ways;
}

Best best_of(const Way& way, const Costs& costs, int most, int batches) {
  Best best{way, 2, 0.0};
  for (int n = 2; n <= usable(way, most, batches); ++n) {
    const double reached = speedup_of(way, costs, n, batches);
    if (reached > best.speedup) best = {way, n, reached};
  }
  return best;
}

Best best_of_all(const Costs& costs, int most, int batches) {
  Best best{all_ways().front(), 2, 0.0};
  for (const Way& way : all_ways()) {
    const Best own = best_of(way, costs, most, batches);
    if (own.speedup > best.speedup) best = own;
  }
  return best;
}

double break_even(const Costs& costs, int most, int batches) {
  // The speedup grows with the link's rate, ever closer to the number of workers.
  double low = 1e-12, high = 1e12;
  for (int i = 0; i < 200; ++i) {
    const double middle = std::sqrt(low * high);
    const Costs faster{costs.comm / middle, costs.grad};
    (best_of_all(faster, most, batches).speedup > 1.0 ? high : low) = middle;
  }
  return high;
}

std::string advice(const Costs& costs, int most, int batches, std::optional<double> rate) {
  std::vector<std::pair<std::string, Table::Align>> columns{{"workers", Table::Align::left}};
  for (const int n : shown(most)) columns.emplace_back(std::to_string(n), Table::Align::right);
  columns.emplace_back("best", Table::Align::right);
  columns.emplace_back("at N", Table::Align::right);
  columns.emplace_back("busy", Table::Align::right);
  Table table(columns);
  for (const Way& way : all_ways()) {
    const Best best = best_of(way, costs, most, batches);
    std::vector<std::string> cells{way.name()};
    for (const int n : shown(most))
      cells.push_back(n <= usable(way, most, batches) ? figure(speedup_of(way, costs, n, batches))
                                                      : "");
    const bool any = usable(way, most, batches) >= 2;
    cells.push_back(any ? figure(best.speedup) : "");
    cells.push_back(any ? std::to_string(best.workers) : "");
    cells.push_back(any ? fixed(100.0 * best.speedup / best.workers, 0) + "%" : "");
    table.row(std::move(cells));
  }
  std::string text = "t_grad " + duration_text(costs.grad) + ", t_comm " +
                     duration_text(costs.comm) + ", " + grouped(batches) +
                     " batches.\nSpeedup over one machine (4.23), by (4.11), (4.12), (4.20) and "
                     "(4.21);\nbusy: how much of its time a worker computes, at best\n\n" +
                     table.str() + "\n";

  const Best best = best_of_all(costs, most, batches);
  const double factor = break_even(costs, most, batches);
  const auto link = [&](double times_as_fast) {
    return rate ? " (" + rate_text(*rate * times_as_fast) + ")" : std::string();
  };
  if (best.speedup > 1.0) {
    text += "It pays: " + best.way.name() + ", with " + machines(best) + ",\nis " +
            times(best.speedup) + " as fast as one machine.\n" + dominating(best, costs, batches) +
            "One machine is as fast again on a link " + times(1.0 / factor) + " slower" +
            link(factor) + ",\nor with batches " + times(1.0 / factor) + " smaller.\n";
  } else {
    text += "One machine is best: of 2 to " + std::to_string(most) + " workers, " +
            std::to_string(best.workers) + " come nearest,\nin " + best.way.name() + ", with " +
            figure(best.speedup) + ".\n" + dominating(best, costs, batches) +
            "Several pay on a link " + times(factor) + " as fast" + link(factor) +
            ",\nor with batches " + times(factor) + " as large.\n";
  }
  for (const double more : {2.0, 10.0}) {
    const Best then = best_of_all({costs.comm / more, costs.grad}, most, batches);
    text += "A link " + fixed(more, 0) + " times as fast, or batches as many times as large: " +
            (then.speedup > 1.0 ? figure(then.speedup) + ",\n  " + then.way.name() +
                                      ", N = " + std::to_string(then.workers)
                                : std::string("still one machine")) +
            ".\n";
  }
  const Interval in_turns = transfer_in_turns(costs, most);
  text += "On a central server of " + std::to_string(most) + " workers a transfer takes " +
          duration_text(transfer_at_once(costs, most)) + ", with semaphores\n" +
          duration_text(in_turns.low) + " at best (7.1) and " + duration_text(in_turns.high) +
          " at worst (7.2), so never longer (7.3).\n";
  return text;
}

}  // namespace duplex::tools
