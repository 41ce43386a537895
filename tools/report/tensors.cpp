#include "tools/report/tensors.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "models/registry.h"
#include "tools/report/chart.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

constexpr std::size_t bars_at_most = 24;

std::vector<std::string> parameter_names(const RunData& run) {
  std::vector<std::string> names;
  for (const ParameterSpec& spec : models::build(run.network, run.options()).trained())
    names.push_back(spec.name);
  return names;
}

std::string name_in(const std::vector<std::string>& names, std::uint32_t parameter) {
  return parameter < names.size() ? names[parameter] : std::to_string(parameter);
}

/// The cost of moving a parameter once: bytes, and the time in which some frame of it crossed, a
/// step and a transfer.
void add_costs(Page& page, const RunData& run, const Ledgers& ledgers,
               const std::vector<std::string>& names) {
  struct Tensor {
    double bytes = 0.0, seconds = 0.0;
  };
  std::map<std::uint32_t, Tensor> tensors;
  // Weights as workers receive them, but for the first ones. A ledger has whole steps, if not all.
  std::size_t transfers_here = 0;
  for (const auto& [rank, ledger] : ledgers) {
    std::set<std::uint64_t> steps;
    for (const LedgerFrame& frame : ledger) {
      if (!frame.weights || frame.sent || frame.step == 0) continue;
      Tensor& tensor = tensors[frame.parameter];
      tensor.bytes += static_cast<double>(frame.bytes);
      tensor.seconds += frame.last - frame.first;
      steps.insert(frame.step);
    }
    transfers_here += steps.size();
  }
  if (tensors.empty()) return;
  const auto transfers = static_cast<double>(transfers_here);
  std::vector<std::pair<double, std::uint32_t>> order;
  std::vector<Page::Row> rows;
  for (const auto& [parameter, tensor] : tensors) {
    rows.push_back({name_in(names, parameter), fixed(tensor.bytes / transfers * 1e-6, 3),
                    fixed(tensor.seconds / transfers * 1e3, 3),
                    tensor.seconds > 0.0 ? fixed(tensor.bytes / tensor.seconds * 8e-6, 0) : ""});
    order.emplace_back(tensor.seconds / transfers, parameter);
  }
  std::sort(order.rbegin(), order.rend());
  BarChart chart;
  const std::string a_step = run.per_exchange_step();
  chart.title = "t_comm by tensor: weights to a worker, " + a_step;
  chart.unit = "ms";
  chart.parts = {"receiving"};
  for (std::size_t i = 0; i < std::min(bars_at_most, order.size()); ++i)
    chart.bars.push_back({name_in(names, order[i].second), {order[i].first * 1e3}});
  page.figure(svg(chart),
              "Sums over its frames, from a frame's header to its last byte; frames of several "
              "connections share a link, so this is no time that the link was theirs alone.");
  page.begin_fold("All tensors");
  page.table({"tensor", "MB " + a_step, "ms " + a_step, "Mbit/s"}, rows);
  page.end_fold();
}

/// Coded counts the bytes on the wire, and those that float32 would have had.
struct Coded {
  double bytes = 0.0, float32 = 0.0;

  void add(const LedgerFrame& frame) {
    bytes += static_cast<double>(frame.bytes);
    float32 += static_cast<double>(frame.bytes) + static_cast<double>(frame.saved);
  }
  double percent() const { return 100.0 * bytes / float32; }
  std::string text() const { return float32 > 0.0 ? fixed(percent(), 1) + "%" : ""; }
};

struct BothCoded {
  Coded weights, gradients;

  void add(const LedgerFrame& frame) { (frame.weights ? weights : gradients).add(frame); }
};

Series share_of_steps(const std::map<std::uint64_t, BothCoded>& steps, const char* name, int colour,
                      Coded BothCoded::*what) {
  Series series{name, {}, Series::Style::line, colour};
  for (const auto& [step, both] : steps)
    if ((both.*what).float32 > 0.0)
      series.points.emplace_back(static_cast<double>(step), (both.*what).percent());
  if (series.points.size() == 1) series.style = Series::Style::marks;
  return series;
}

/// The part of float32's bytes that the codings of a run have left, over the training and by
/// tensor.
void add_codings(Page& page, const RunData& run, const Ledgers& ledgers,
                 const std::vector<std::string>& names) {
  std::map<std::uint64_t, BothCoded> steps;
  std::map<std::uint32_t, BothCoded> tensors;
  // Each frame is in two ledgers; the first weights, of step 0, are float32.
  for (const auto& [rank, ledger] : ledgers)
    for (const LedgerFrame& frame : ledger) {
      if (!frame.sent || (frame.weights && frame.step == 0)) continue;
      steps[frame.step].add(frame);
      tensors[frame.parameter].add(frame);
    }
  if (tensors.empty()) return;
  LineChart chart;
  chart.title = "Bytes on the wire, of those of float32";
  chart.x = run.exchange_step();
  chart.y = "%";
  chart.series = {share_of_steps(steps, "weights", 0, &BothCoded::weights),
                  share_of_steps(steps, "gradients", 1, &BothCoded::gradients)};
  page.figure(svg(chart), "Frames of all ranks, with their headers: " + run.wire.str() + ".");
  std::vector<Page::Row> rows;
  for (const auto& [parameter, both] : tensors)
    rows.push_back({name_in(names, parameter), both.weights.text(), both.gradients.text()});
  page.begin_fold("Bytes on the wire by tensor, of those of float32");
  page.table({"tensor", "weights", "gradients"}, rows);
  page.end_fold();
}

/// Adds a table of the bytes that each rank sends in a step, by kind of frame, where the network is
/// cut: rows of tensors cross then, and maps.
void add_kinds(Page& page, const Ledgers& ledgers) {
  enum Kind { maps, map_gradients, gradients, weights, kinds };
  std::vector<Page::Row> rows;
  for (const auto& [rank, ledger] : ledgers) {
    double bytes[kinds] = {};
    std::set<std::uint64_t> steps;
    std::uint64_t last = 0;
    for (const LedgerFrame& frame : ledger) last = std::max(last, frame.step);
    for (const LedgerFrame& frame : ledger) {
      // The first weights, and the last ones, are of no step: they also go where nobody trains
      // them.
      const bool of_step = frame.map || !frame.weights || (frame.step > 0 && frame.step < last);
      if (!frame.sent || !of_step) continue;
      const Kind kind = frame.map ? (frame.weights ? maps : map_gradients)
                                  : (frame.weights ? weights : gradients);
      bytes[kind] += static_cast<double>(frame.bytes);
      if (frame.map || !frame.weights) steps.insert(frame.step);
    }
    if (steps.empty()) continue;
    Page::Row row{"rank " + std::to_string(rank)};
    for (int kind = 0; kind < kinds; ++kind) {
      // Weights answer the gradients of all steps but the last one.
      const std::size_t count = kind == weights ? steps.size() - 1 : steps.size();
      row.push_back(
          fixed(bytes[kind] * 1e-6 / static_cast<double>(std::max<std::size_t>(count, 1)), 2));
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty()) return;
  page.heading(3, "What crosses where the network is cut");
  page.table({"MB a step, sent by", "maps", "gradients of maps", "gradients, factors", "weights"},
             rows);
}

}  // namespace

void add_tensors(Page& page, const RunData& run) {
  const Ledgers ledgers = run.ledgers();
  const std::string missing = missing_ledgers(ledgers, run.ranks);
  if (!missing.empty()) page.paragraph(missing);
  if (run.cut()) return add_kinds(page, ledgers);
  const std::vector<std::string> names = parameter_names(run);
  add_costs(page, run, ledgers, names);
  if (!(run.wire == net::WireFormat())) add_codings(page, run, ledgers, names);
}

}  // namespace duplex::tools::reports
