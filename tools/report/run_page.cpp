#include "tools/report/run_page.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "models/registry.h"
#include "tools/drawing/network_drawing.h"
#include "tools/parts/part_drawing.h"
#include "tools/report/chart.h"
#include "tools/report/evaluation.h"
#include "tools/report/overview.h"
#include "tools/report/page.h"
#include "tools/report/tensors.h"
#include "tools/report/timeline.h"
#include "tools/report/waiting.h"
#include "tools/run_directory/run_files.h"
#include "tools/run_directory/time_to_accuracy.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

constexpr int timeline_steps = 3;
constexpr std::size_t bars_at_most = 24, machines_at_most = 16;

std::string megabytes(double bytes) {
  return fixed(bytes * 1e-6, 3);
}
std::string megabytes(std::uint64_t bytes) {
  return megabytes(static_cast<double>(bytes));
}

/// The first six runs are told apart by their colours and dashes, the same on every chart.
Series series_of(const std::vector<RunData>& runs, std::size_t number) {
  return {runs[number].name,
          {},
          number % 2 == 0 ? Series::Style::line : Series::Style::dashed,
          static_cast<int>(number)};
}

/// Returns where the tests of a run stand on a chart's axis: after so many steps.
std::vector<double> by_steps(const RunData& run) {
  std::vector<double> steps;
  for (const AccuracyRow& row : run.tests) steps.push_back(static_cast<double>(row.step));
  return steps;
}

/// The same by another value; empty where the files do not tell it of every test.
std::vector<double> by(const RunData& run, std::optional<double> (*at)(const TimeToAccuracy&)) {
  std::vector<double> positions;
  const std::vector<net::StepTraffic> traffic = run.step_traffic();
  for (const TimeToAccuracy& time : times_of_tests(
           run.tests, run.metrics, run.parallel ? &traffic : nullptr, run.row_meaning())) {
    if (!at(time)) return {};
    positions.push_back(*at(time));
  }
  return positions;
}
std::vector<double> by_seconds(const RunData& run) {
  return by(run, [](const TimeToAccuracy& time) { return time.seconds; });
}
std::vector<double> by_megabytes(const RunData& run) {
  return by(run, [](const TimeToAccuracy& time) {
    return time.bytes ? std::optional(1e-6 * static_cast<double>(*time.bytes)) : std::nullopt;
  });
}

LineChart accuracy_chart(const std::vector<RunData>& runs, const char* title, const char* x,
                         double AccuracyRow::*value,
                         std::vector<double> (*positions_of)(const RunData&)) {
  LineChart chart;
  chart.title = title;
  chart.x = x;
  chart.y = "%";
  chart.from_zero = false;
  chart.percent = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Series series = series_of(runs, i);
    const std::vector<double> positions = positions_of(runs[i]);
    for (std::size_t test = 0; test < positions.size(); ++test)
      series.points.emplace_back(positions[test], 100.0 * runs[i].tests[test].*value);
    if (series.points.size() == 1) series.style = Series::Style::marks;
    if (!series.points.empty()) chart.series.push_back(std::move(series));
  }
  return chart;
}

LineChart loss_chart(const std::vector<RunData>& runs) {
  LineChart loss;
  loss.title = "Loss";
  loss.x = "step";
  loss.from_zero = false;
  for (std::size_t number = 0; number < runs.size(); ++number) {
    const RunData& run = runs[number];
    Series series = series_of(runs, number);
    // Means of as many stretches as a chart shows.
    const std::size_t stretch = std::max<std::size_t>(1, run.metrics.size() / 200);
    for (std::size_t from = 0; from + stretch <= run.metrics.size(); from += stretch) {
      double sum = 0.0;
      bool all = true;
      for (std::size_t i = from; i < from + stretch; ++i) {
        all = all && run.metrics[i].loss;
        sum += run.metrics[i].loss.value_or(0.0);
      }
      if (all)
        series.points.emplace_back(static_cast<double>(run.metrics[from].step),
                                   sum / static_cast<double>(stretch));
    }
    if (!series.points.empty()) loss.series.push_back(std::move(series));
  }
  return loss;
}

/// Returns the accuracy at which runs are compared: that at which one was to end, else the whole
/// per cent that the best test of each of them reached; none: there are no tests.
std::optional<AccuracyTarget> target_of(const std::vector<RunData>& runs) {
  std::optional<AccuracyTarget> reached;
  for (const RunData& run : runs) {
    if (run.until) return run.until;
    double best = 0.0;
    for (const AccuracyRow& row : run.tests) best = std::max(best, row.top1);
    best = std::floor(100.0 * best + 1e-9) / 100.0;
    if (run.tests.empty() || best <= 0.0) continue;
    if (!reached || best < reached->fraction) reached = AccuracyTarget{false, best};
  }
  return reached;
}

void add_time_to_accuracy(Page& page, const std::vector<RunData>& runs) {
  const std::optional<AccuracyTarget> target = target_of(runs);
  if (!target) return;
  std::vector<Page::Row> rows;
  for (const RunData& run : runs) {
    if (run.tests.empty()) continue;
    const std::vector<net::StepTraffic> traffic = run.step_traffic();
    const auto time = time_to_accuracy(*target, run.tests, run.metrics,
                                       run.parallel ? &traffic : nullptr, run.row_meaning());
    if (time)
      rows.push_back({run.name, grouped(static_cast<std::int64_t>(time->steps)),
                      fixed(static_cast<double>(time->steps) * run.batches_a_step(), 0),
                      time->seconds ? fixed(*time->seconds, 1) : "",
                      time->bytes ? megabytes(*time->bytes) : ""});
    else
      rows.push_back({run.name, "not reached", "", "", ""});
  }
  page.paragraph("To a " + std::string(target->top5 ? "top-5" : "top-1") + " accuracy of " +
                 fixed(100.0 * target->fraction, 1) + "%, by the first test that reached it:");
  page.table({"run", "steps", "batches", "s", "MB"}, rows);
}

void add_curves(Page& page, const std::vector<RunData>& runs) {
  const LineChart loss = loss_chart(runs);
  const LineChart top1 =
      accuracy_chart(runs, "Top-1 accuracy", "step", &AccuracyRow::top1, by_steps);
  const LineChart top5 =
      accuracy_chart(runs, "Top-5 accuracy", "step", &AccuracyRow::top5, by_steps);
  if (loss.series.empty() && top1.series.empty()) return;
  page.heading(2, "Learning", "learning");
  if (!loss.series.empty())
    page.figure(svg(loss),
                "The loss of the first worker's batches, by its steps; each point is the mean of a "
                "stretch.");
  if (top1.series.empty()) return;
  page.html("<div class=\"pair\">");
  page.figure(svg(top1),
              "The share of test images that are classified rightly, by the first worker's steps.");
  page.figure(svg(top5), "The share of them whose class is among the five likeliest.");
  page.html("</div>");
  const LineChart time = accuracy_chart(runs, "Top-1 by time", "s", &AccuracyRow::top1, by_seconds);
  const LineChart bytes =
      accuracy_chart(runs, "Top-1 by bytes", "MB", &AccuracyRow::top1, by_megabytes);
  if (time.series.empty()) return;
  page.html("<div class=\"pair\">");
  page.figure(svg(time),
              "Top-1 by seconds of training, without tests, unless others train meanwhile.");
  const auto talks = [](const RunData& run) { return run.parallel; };
  if (std::any_of(runs.begin(), runs.end(), talks))
    page.figure(svg(bytes), "Top-1 by what the first worker sent and took.");
  page.html("</div>");
  add_time_to_accuracy(page, runs);
}

void add_steps(Page& page, const RunData& run) {
  if (run.metrics.empty()) {
    page.paragraph("No step was finished.");
    return;
  }
  LineChart chart;
  chart.title = "Where the steps' time went";
  chart.x = "step";
  chart.y = "s";
  const auto line = [&](const char* name, int colour, Series::Style style,
                        double StepMetrics::*value) {
    Series series{name, {}, style, colour};
    const std::size_t every = std::max<std::size_t>(1, run.metrics.size() / 400);
    for (std::size_t i = 0; i < run.metrics.size(); i += every)
      series.points.emplace_back(static_cast<double>(run.metrics[i].step), run.metrics[i].*value);
    chart.series.push_back(std::move(series));
  };
  line("whole step", 5, Series::Style::line, &StepMetrics::total);
  line("gradient", 2, Series::Style::dashed, &StepMetrics::gradient);
  if (run.parallel)
    line(run.cut() ? "awaiting weights and maps" : "awaiting weights", 0, Series::Style::dotted,
         &StepMetrics::await);
  line("waiting for images", 3, Series::Style::dotted, &StepMetrics::data);
  page.figure(svg(chart), "The steps of the first worker.");
}

void add_layers(Page& page, std::vector<LayerSeconds> layers, const std::string& from) {
  if (layers.empty()) return;
  BarChart chart;
  chart.title = "t_grad by layer";
  chart.unit = "ms";
  chart.parts = {"forward", "backward"};
  std::vector<Page::Row> rows;
  for (const LayerSeconds& layer : layers)
    rows.push_back({layer.name, fixed(layer.forward * 1e3, 3), fixed(layer.backward * 1e3, 3)});
  std::stable_sort(layers.begin(), layers.end(), [](const LayerSeconds& a, const LayerSeconds& b) {
    return a.forward + a.backward > b.forward + b.backward;
  });
  for (std::size_t i = 0; i < std::min(bars_at_most, layers.size()); ++i)
    chart.bars.push_back({layers[i].name, {layers[i].forward * 1e3, layers[i].backward * 1e3}});
  page.figure(svg(chart), "The layers that take longest, " + from + ".");
  page.begin_fold("All layers");
  page.table({"layer", "forward ms", "backward ms"}, rows);
  page.end_fold();
}

void add_bytes(Page& page, const RunData& run) {
  if (run.rank_summaries.empty()) return;
  std::vector<Page::Row> rows;
  bool counted = false;
  for (const auto& [rank, summary] : run.rank_summaries) {
    const net::TrafficSummary& traffic = summary.traffic;
    std::uint64_t sent = 0, received = 0, again = 0;
    std::uint64_t ledger_sent = 0, ledger_received = 0;  // The connections' bytes.
    bool known = !summary.connections.empty();
    for (const net::ConnectionBytes& connection : summary.connections) {
      known = known && connection.counted;
      ledger_sent += connection.sent;
      ledger_received += connection.received;
      sent += connection.kernel_sent;
      received += connection.kernel_received;
      again += connection.kernel_sent_again;
    }
    counted = counted || known;
    const auto verdict = [&](std::uint64_t kernel, std::uint64_t ledger) {
      if (!known) return Cell("");
      return Cell(megabytes(kernel), kernel == ledger ? Cell::Mark::good : Cell::Mark::bad);
    };
    rows.push_back({"rank " + std::to_string(rank), megabytes(traffic.bytes_sent),
                    verdict(sent, ledger_sent), known ? megabytes(again) : std::string(),
                    megabytes(traffic.bytes_received), verdict(received, ledger_received),
                    fixed(traffic.wire_seconds * 1e3, 2), fixed(traffic.exposed_seconds * 1e3, 2),
                    traffic.wire_seconds > 0.0
                        ? fixed(100.0 * traffic.exposed_seconds / traffic.wire_seconds, 0) + "%"
                        : ""});
  }
  page.heading(3, "Bytes, and communication that nothing hid", run.name + "-bytes");
  page.table({"rank", "MB sent", "kernel", "again", "MB received", "kernel",
              "wire ms " + run.per_exchange_step(), "exposed ms", "exposed"},
             rows);
  if (!(run.wire == net::WireFormat())) {
    double sent = 0.0, float32 = 0.0;
    for (const auto& [rank, summary] : run.rank_summaries) {
      sent += static_cast<double>(summary.traffic.bytes_sent);
      float32 += static_cast<double>(summary.traffic.saved_sent);
    }
    float32 += sent;
    page.paragraph("On the wire weights and gradients are " + run.wire.str() + ": " +
                   fixed(100.0 * sent / float32, 1) + "% of the bytes that float32 takes.");
  }
  const std::set<int> lost = run.lost();
  if (!lost.empty())
    page.paragraph("The run went on without " + ranks_text({lost.begin(), lost.end()}) +
                   (lost.size() == 1 ? ", which was" : ", which were") +
                   " lost: connections to there are not among those that the kernel counted.");
  page.paragraph(std::string("Exposed: the part of the wire's time in which the worker waited. ") +
                 (counted ? "The kernel's counters (TCP_INFO) are of the same connections; "
                            "again: what TCP took for lost and sent once more, as a switch drops "
                            "what its buffers do not hold."
                          : "There are no counters of a kernel beside this run's ledgers."));
}

/// Where the ledgers do not have every frame, says what they have.
void add_traffic(Page& page, const RunData& run) {
  const std::vector<net::StepTraffic> steps = run.step_traffic();
  if (!steps.empty())
    page.figure(
        svg(traffic_chart(steps, run.exchange_step())),
        "Of the first worker: wire, while some frame of weights, gradients or maps was on "
        "its way; exposed, the part of it in which the worker waited. Each point is the mean "
        "of a stretch.");
  std::map<int, std::optional<net::FramesKept>> kept;
  for (const auto& [rank, summary] : run.rank_summaries) kept[rank] = summary.frames;
  const std::string left_out = frames_left_out(kept, run.exchange_step());
  if (!left_out.empty()) page.paragraph(left_out);
}

std::string drawing_of(const RunData& run) {
  const Model model = models::build(run.network, run.options());
  if (!run.cut()) return svg_of(model);
  CutPartSpec spec;
  spec.strategy = run.strategy;
  spec.stages = run.stages;
  spec.micro_batches = run.micro_batches;
  spec.step_samples =
      static_cast<std::uint64_t>(static_cast<double>(run.batch) * run.batches_a_step());
  spec.speeds.assign(run.samples.begin(), run.samples.end());
  spec.ranks = run.ranks;
  return svg_of(CutPart(spec, model), run.micro_batches);
}

/// Draws each network of the runs once, in each of its forms, and in each way in which it is cut.
/// One that this version of the program cannot build has no drawing.
void add_drawings(Page& page, const std::vector<RunData>& runs) {
  std::set<std::string> drawn;
  for (const RunData& run : runs) {
    std::string drawing;
    try {
      drawing = drawing_of(run);
    } catch (const Error&) {
      continue;
    }
    if (!drawn.insert(drawing).second) continue;
    page.begin_fold("The layers of " + run.title + (run.cut() ? ", cut by " + run.cut_text() : ""));
    page.figure(drawing,
                "The network" +
                    (run.network_file.empty() ? std::string() : " of the file " + run.network) +
                    ", and the sizes of its maps for one image." +
                    (run.cut() ? " Each layer has the colours of the ranks that compute it; lines "
                                 "are as thick as what crosses of its output and the gradient."
                               : ""));
    page.end_fold();
  }
}

void add_run(Page& page, const RunData& run) {
  page.heading(2, run.name, run.name);
  std::string machines;
  for (std::size_t i = 0; i < std::min(machines_at_most, run.machines.size()); ++i)
    machines += (machines.empty() ? "On " : ", ") + run.machines[i];
  if (run.machines.size() > machines_at_most)
    machines += " and " + std::to_string(run.machines.size() - machines_at_most) + " more";
  if (!machines.empty()) page.paragraph(machines + ".");
  if (!run.settings.empty()) page.paragraph(run.settings);
  add_steps(page, run);
  if (!run.parallel) {
    add_layers(page, run.layers, "in the median of the steps");
    return;
  }
  TraceData trace;
  if (run.has_trace()) trace = run.trace();
  if (run.layers.empty())
    add_layers(page, trace.layers(run.first_worker(), run.micro_batches),
               "of the first worker, in the mean of the steps that were traced");
  else
    add_layers(page, run.layers, "of the first worker, in the median of the steps");
  add_bytes(page, run);
  add_traffic(page, run);
  add_waiting(page, run);
  add_tensors(page, run);
  if (run.has_trace()) {
    page.heading(3, "The last " + run.exchange_step() + "s of all ranks", run.name + "-timeline");
    add_timeline(page, trace.last(timeline_steps), run.exchange_step(), run.name + "-canvas");
  } else {
    page.paragraph(std::string("There is no timeline") +
                   (run.layers.empty()
                        ? ", and no t_grad by layer: dist and simulate keep both with --trace, "
                          "dist the layers alone with --profile."
                        : ": dist and simulate keep one with --trace."));
  }
}

}  // namespace

std::string run_page(const std::vector<RunData>& runs, const std::vector<LinkData>& links,
                     double reload) {
  std::string title = runs.front().title;
  for (const RunData& run : runs)
    if (title.find(run.title) == std::string::npos) title += ", " + run.title;
  Page page(title + ": " + std::to_string(runs.size()) + (runs.size() == 1 ? " run" : " runs"));
  page.reload_every(reload);
  page.heading(1, title + (runs.size() == 1 ? ": " + runs.front().name : ""));
  Predictions predictions;
  for (const RunData& run : runs) predictions.push_back(prediction_of(run, runs, links));
  add_overview(page, runs, predictions);
  add_plans(page, runs);
  add_curves(page, runs);
  for (const RunData& run : runs) add_evaluation(page, run);
  add_drawings(page, runs);
  for (const RunData& run : runs) add_run(page, run);
  return page.str();
}

}  // namespace duplex::tools::reports
