#include "tools/report/waiting.h"

#include <algorithm>
#include <filesystem>
#include <limits>

#include "tools/run_directory/run_files.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

constexpr int workers_at_most = 16;

std::string milliseconds(double seconds) {
  return fixed(seconds * 1e3, 2);
}
std::string share(double part, double whole) {
  return whole > 0.0 ? fixed(100.0 * part / whole, 0) + "%" : "";
}

/// One row a worker: the means of its steps, without the first, which waits for the first weights.
std::vector<Page::Row> waits_of(const RunData& run) {
  std::vector<Page::Row> rows;
  const int last = std::min(run.ranks, run.first_worker() + workers_at_most);
  for (int rank = run.first_worker(); rank < last; ++rank) {
    const std::string path = run.directory + "/" + traffic_file(rank);
    if (!std::filesystem::exists(path)) continue;
    const auto summary = run.rank_summaries.find(rank);
    const std::uint64_t end = run.sync == net::Sync::none && summary != run.rank_summaries.end()
                                  ? summary->second.steps
                                  : std::numeric_limits<std::uint64_t>::max();
    double steps = 0.0, waited = 0.0, exposed = 0.0;
    for (const net::StepTraffic& step :
         read_step_traffic(path, run.rank_summaries.count(rank) > 0)) {
      // The last weights of an asynchronous run wait until all others have ended.
      if (step.step == 0 || step.step >= end) continue;
      steps += 1.0;
      waited += static_cast<double>(step.waited_ns) * 1e-9;
      exposed += static_cast<double>(step.exposed_ns) * 1e-9;
    }
    if (steps == 0.0) continue;
    rows.push_back({"rank " + std::to_string(rank), milliseconds(waited / steps),
                    milliseconds(exposed / steps), share(exposed, waited),
                    milliseconds((waited - exposed) / steps), share(waited - exposed, waited)});
  }
  return rows;
}

/// One row a straggler: the mean of all owners that are here, since all of them wait for the same.
std::vector<Page::Row> stragglers_of(const RunData& run) {
  std::map<int, StragglerSummary> sums;
  double owners = 0.0;
  for (const auto& [rank, summary] : run.rank_summaries) {
    if (!summary.stragglers) continue;
    owners += 1.0;
    for (const StragglerSummary& each : *summary.stragglers) {
      StragglerSummary& sum = sums[each.rank];
      sum.rank = each.rank;
      sum.steps += each.steps;
      sum.late += each.late;
      sum.receiving += each.receiving;
    }
  }
  std::vector<StragglerSummary> order;
  for (const auto& [rank, sum] : sums) order.push_back(sum);
  std::stable_sort(
      order.begin(), order.end(),
      [](const StragglerSummary& a, const StragglerSummary& b) { return a.late > b.late; });
  double steps = 0.0;  // Steps at one owner: in each, one worker is the last.
  for (const StragglerSummary& each : order) steps += static_cast<double>(each.steps) / owners;
  steps = std::max(1.0, steps);
  std::vector<Page::Row> rows;
  for (const StragglerSummary& each : order)
    rows.push_back({"rank " + std::to_string(each.rank),
                    share(static_cast<double>(each.steps) / owners, steps),
                    milliseconds(each.late / owners / steps),
                    milliseconds((each.late - each.receiving) / owners / steps),
                    milliseconds(each.receiving / owners / steps)});
  return rows;
}

}  // namespace

void add_waiting(Page& page, const RunData& run) {
  const auto waits = waits_of(run), stragglers = stragglers_of(run);
  if (waits.empty() && stragglers.empty()) return;
  page.heading(3, "Waiting, by cause", run.name + "-waiting");
  const std::string steps = run.exchange_step() + "s", a_step = run.per_exchange_step();
  if (!waits.empty()) {
    page.table(
        {"worker", "waited ms " + a_step, "for the wire ms", "of it", "for others ms", "of it"},
        waits);
    page.paragraph(
        "Means of the " + steps +
        (run.cut() ? ". For the wire: maps, weights or gradients of this worker were crossing "
                     "meanwhile. For others: nothing of its own crossed; another rank had not "
                     "computed the map that this one was to go on with, which leaves a bubble "
                     "in its schedule, or had not sent its gradients yet."
                   : ". For the wire: weights or gradients of this worker were crossing "
                     "meanwhile. For others: nothing of its own crossed; other workers had not "
                     "sent their gradients yet, or an owner was still updating."));
  }
  if (stragglers.empty()) return;
  page.table(
      {"waited for", "last in " + steps, "late ms " + a_step, "computing ms", "on the wire ms"},
      stragglers);
  page.paragraph(
      "Late: the time in which an owner of weights had everybody's gradients but this "
      "worker's, over all " +
      steps +
      " and in the mean of the owners. On the wire: "
      "gradients of this worker were coming in meanwhile; in the rest of the time it "
      "computed. " +
      (run.average > 0 ? "An averaging" : "A step") +
      " would be shorter by the time that the first of them is late, if it "
      "were as fast as the next.");
}

}  // namespace duplex::tools::reports
