#include "tools/planning/answer.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/size.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

std::string times(double factor) {
  return fixed(factor, factor < 10.0 ? 2 : 1) + " times";
}

std::string on_machines(const Strategy& strategy) {
  return "on " + std::to_string(strategy.machines.size()) + " machines" +
         (strategy.parallel.central() ? ", one of them the server," : "") + " with " +
         strategy.way();
}

/// "1.6 Gbit/s" or, where links differ, "links 2.00 times as fast"; "or with a batch of 40".
std::string threshold(const Situation& situation, const BreakEven& even) {
  const double factor = even.links;
  std::set<double> rates;
  for (const Machine& machine : situation.machines) rates.insert(machine.rate);
  const std::string link = rates.size() == 1 ? "links of " + rate_text(*rates.begin() * factor)
                           : factor > 1.0    ? "links " + times(factor) + " as fast"
                                             : "links " + times(1.0 / factor) + " slower";
  if (!even.batch) return link;
  const double batch = static_cast<double>(situation.scenario.batch) * factor;
  return link + ", or with a batch of " + grouped(static_cast<std::int64_t>(std::ceil(batch)));
}

std::string result_text(const Situation& situation, const Evaluation& evaluation) {
  const Strategy& strategy = evaluation.strategy;
  const std::string batch = strategy.result(situation.scenario.batch);
  if (!batch.empty() && evaluation.normalises_few())
    return batch + ", BN " + std::to_string(evaluation.normalised);
  if (!batch.empty()) return batch;
  if (strategy.parallel.average > 0) return "averaged";
  return strategy.parallel.sync == net::Sync::none ? "stale" : "rounded";
}

std::string list_of(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : i + 1 < numbers.size() ? ", " : " and ") + std::to_string(numbers[i]);
  return text;
}

std::string equations_text(const Evaluation& evaluation) {
  if (!evaluation.equations) return "";
  const auto [low, high] = *evaluation.equations;
  return fixed(low, 2) + (high > low * 1.005 ? "-" + fixed(high, 2) : "");
}

/// "but for rounding", and what else differs from the training on one machine.
std::string differences(const Evaluation& evaluation) {
  if (evaluation.normalised == 0) return "but for rounding";
  const ParallelSpec& parallel = evaluation.strategy.parallel;
  return "but for rounding and batch normalisation, which is over the " +
         grouped(evaluation.normalised) +
         (parallel.cuts()          ? " images of a micro-batch that a machine has"
          : parallel.slots.empty() ? " images of each worker"
                                   : " images of each slot");
}

/// The machines that the best strategy leaves out, and what all of them would come to.
std::string left_out(const Situation& situation, const SearchResult& found,
                     const Evaluation& best) {
  std::vector<int> out;
  for (int machine = 0; machine < static_cast<int>(situation.machines.size()); ++machine)
    if (std::find(best.strategy.machines.begin(), best.strategy.machines.end(), machine) ==
        best.strategy.machines.end())
      out.push_back(machine);
  if (out.empty()) return "";
  std::string text = (out.size() == 1 ? "Machine " : "Machines ") + list_of(out) +
                     (out.size() == 1 ? " stays" : " stay") + " out";
  const Evaluation* all = nullptr;
  for (const Evaluation& each : found.all)
    if (each.exact() && each.strategy.machines.size() == situation.machines.size() &&
        (all == nullptr || each.image < all->image))
      all = &each;
  return text + (all == nullptr ? "" : ": all of them come to " + times(all->speedup)) + ".\n";
}

std::string gain_of_shares(const SearchResult& found, const Evaluation& best) {
  if (best.strategy.parallel.shares.empty()) return "";
  const Evaluation* even = nullptr;
  for (const Evaluation& each : found.all)
    if (each.exact() && each.strategy.parallel.shares.empty() && !each.strategy.parallel.cuts() &&
        (even == nullptr || each.image < even->image))
      even = &each;
  return "Workers have shares of a step by their speed" +
         (even == nullptr ? std::string()
                          : "; with even shares it comes to " + times(even->speedup) + ", with " +
                                even->strategy.name()) +
         ".\n";
}

/// The ways that machines have too little memory for.
std::string too_large(const Situation& situation, const SearchResult& found) {
  std::string text;
  if (found.too_large_alone > 0)
    text += "One machine alone would need " + mebibytes(found.too_large_alone) +
            " MiB, which is too much: the speedups are over a training that does not fit.\n";
  if (found.too_large.empty()) return text;
  text += "Left out, since they need more than " +
          (situation.memory_limit > 0 ? mebibytes(situation.memory_limit) + " MiB: "
                                      : "one of their machines has: ");
  for (std::size_t i = 0; i < found.too_large.size(); ++i)
    text += (i > 0 ? ", " : "") + found.too_large[i].strategy.way() + " (" +
            mebibytes(found.too_large[i].bytes) + " with " +
            std::to_string(found.too_large[i].strategy.workers()) + " workers)";
  return text + ".\n";
}

/// The reason why a way has another result than one machine.
std::string difference_text(const Evaluation& evaluation) {
  const Strategy& strategy = evaluation.strategy;
  if (strategy.parallel.average > 0)
    return "between two averagings of the weights every worker goes its own way";
  std::string text;
  if (strategy.parallel.sync == net::Sync::none)
    text = "gradients are of older weights than those that they change";
  if (!strategy.parallel.wire.exact())
    text += std::string(text.empty() ? "" : ", and ") +
            "weights and gradients are rounded to 16 bits on the wire";
  if (evaluation.normalises_few())
    text += std::string(text.empty() ? "" : ", and ") +
            "batch normalisation is over few images, so that its statistics are not the data's";
  return text;
}

/// The fastest ways that are faster than the best exact one.
std::string faster_ways(const SearchResult& found, const Evaluation& best) {
  constexpr double clearly = 1.02;
  std::string text;
  std::set<std::string> told;
  for (const Evaluation& each : found.ways) {
    if (each.image * clearly >= best.image) break;
    if (each.exact()) continue;
    const std::string difference = difference_text(each);
    if (!told.insert(difference).second) continue;
    text += each.strategy.name() + " comes to " + times(each.speedup) +
            ", but trains something else: " + difference + ". Try what it does to the accuracy.\n";
  }
  return text;
}

/// Whether it is clearly slower than a way that differs only in overlap, semaphore and shards, or
/// as fast as the usual one of these.
bool is_a_lesser_variant(const SearchResult& found, const Evaluation& evaluation) {
  constexpr double alike = 0.99;
  const ParallelSpec& own = evaluation.strategy.parallel;
  const bool usual = own.is_usual();
  return std::any_of(found.ways.begin(), found.ways.end(), [&](const Evaluation& other) {
    const ParallelSpec& its = other.strategy.parallel;
    return &other != &evaluation && its.is_variant_of(own) &&
           (usual ? other.image < evaluation.image * alike
                  : its.is_usual() && other.image * alike <= evaluation.image);
  });
}

}  // namespace

std::string verdict(const Situation& situation, const SearchResult& found,
                    const std::optional<BreakEven>& break_even) {
  const Evaluation* best = found.best_exact();
  if (best == nullptr && !found.too_large.empty())
    return "Does not pay: no machine has the memory for a way whose result is that of one.\n";
  if (best == nullptr) return "Does not pay: no way has an image for every worker in each step.\n";
  if (found.pays())
    return "Pays: " + times(best->speedup) + " as fast " + on_machines(best->strategy) + ".\n";
  return "Does not pay: the best, " + best->strategy.name() + ", comes to " + times(best->speedup) +
         " one machine, bound by " + binding(situation, *best) + "; " +
         (break_even ? "it would pay from " + threshold(situation, *break_even) + " on.\n"
                     : "no link would be fast enough.\n");
}

std::string remarks(const Situation& situation, const SearchResult& found,
                    const std::optional<BreakEven>& break_even) {
  const Evaluation* best = found.best_exact();
  std::string text = too_large(situation, found);
  if (best == nullptr) return text;
  if (found.pays()) {
    text += "Its result is that of one machine with " +
            best->strategy.result(situation.scenario.batch) + ", " + differences(*best) + ".\n";
    if (break_even) text += "It pays down to " + threshold(situation, *break_even) + ".\n";
  }
  return text + gain_of_shares(found, *best) + left_out(situation, found, *best) +
         faster_ways(found, *best);
}

namespace {

/// A way of the table, and the thing that binds it.
struct Row {
  const Evaluation& way;
  std::string bound;
};

std::vector<Row> rows_of(const Situation& situation, const SearchResult& found, bool every) {
  std::vector<Evaluation> shown;
  std::vector<Row> rows;
  for (const Evaluation& each : found.ways) {
    if (!every && is_a_lesser_variant(found, each)) continue;
    shown.push_back(each);
    rows.push_back({each, ""});
  }
  const std::vector<std::string> bound = bindings(situation, shown);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].bound = bound[i];
  return rows;
}

std::string table_text(const Situation& situation, const std::vector<Row>& rows, bool equations) {
  std::vector<std::pair<std::string, Table::Align>> columns{{"way", Table::Align::left},
                                                            {"N", Table::Align::right},
                                                            {"ms/img", Table::Align::right},
                                                            {"S", Table::Align::right}};
  if (equations) columns.emplace_back("equations", Table::Align::right);
  if (situation.memory) columns.emplace_back("MiB", Table::Align::right);
  columns.emplace_back("result", Table::Align::left);
  columns.emplace_back("bound by", Table::Align::left);
  Table table(columns);
  for (const auto& [each, binding] : rows) {
    std::string bound = binding;
    if (bound.rfind("the ", 0) == 0) bound.erase(0, 4);
    if (const std::size_t of = bound.find("'s "); of != std::string::npos) bound.erase(of, 2);
    std::vector<std::string> cells{each.strategy.way(), std::to_string(each.strategy.workers()),
                                   fixed(each.image * 1e3, 3), fixed(each.speedup, 2)};
    if (equations) cells.push_back(equations_text(each));
    if (situation.memory)
      cells.push_back(grouped(static_cast<std::int64_t>(situation.memory(each.strategy) >> 20U)));
    cells.push_back(result_text(situation, each));
    cells.push_back(bound);
    table.row(cells);
  }
  return table.str();
}

}  // namespace

std::string table_of(const Situation& situation, const SearchResult& found, bool every) {
  constexpr std::size_t terminal = 80;
  const std::vector<Row> rows = rows_of(situation, found, every);
  std::string text = table_text(situation, rows, true);
  const std::size_t rule = text.find('\n') + 1;  // It is as wide as the widest row.
  if (text.find('\n', rule) - rule <= terminal) return text;
  return table_text(situation, rows, false);
}

}  // namespace duplex::tools
