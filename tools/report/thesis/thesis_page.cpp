#include "tools/report/thesis/thesis_page.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>

#include "core/error.h"
#include "tools/report/chart.h"
#include "tools/report/page.h"
#include "tools/report/thesis/accuracy.h"
#include "tools/report/thesis/networks.h"
#include "tools/report/thesis/sequence.h"
#include "tools/report/thesis/statements.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

using net::ServerMode;
using net::Sync;

std::string percent(double part) {
  return fixed(100.0 * part, 1) + "%";
}

std::string signed_percent(double part) {
  return (part < 0 ? "-" : "+") + fixed(100.0 * std::abs(part), 1) + "%";
}

std::string cell(const std::optional<double>& value, int digits = 2) {
  return value ? fixed(*value, digits) : "";
}

/// HTML: marked, with the numbers.
std::string outcome_of(const Verdict& verdict) {
  const char* type = verdict.outcome == Verdict::confirmed ? "good"
                     : verdict.outcome == Verdict::refuted ? "bad"
                                                           : "";
  return std::string("<strong class=\"") + type + "\">" + verdict.text() + "</strong>" +
         (verdict.found.empty() ? "" : ": " + escape(verdict.found));
}

// ---- Chapter 4.

struct Diagram {
  const char* number;
  const char* caption;
  bool central;
};

void add_diagrams(Page& page, const Thesis& thesis) {
  page.heading(2, "Chapter 4: what an iteration looks like", "chapter-4");
  page.paragraph(
      "Drawn from the ledgers of runs of three workers on the lab (GoogLeNet, 256 classes, t_grad "
      "0.4 s replayed, --overlap off). Best: workers take turns at the server's link (semaphores, "
      "7.2); worst: all use it at once.");
  constexpr int workers = 3;
  constexpr double grad = 0.4;
  for (const Diagram& each : {Diagram{"4.1", "synchronous, central server, best", true},
                              Diagram{"4.2", "synchronous, central server, worst", true},
                              Diagram{"4.3", "synchronous, distributed server", false},
                              Diagram{"4.4", "asynchronous, central server, best", true},
                              Diagram{"4.5", "asynchronous, central server, worst", true},
                              Diagram{"4.6", "asynchronous, distributed server", false}}) {
    const std::string number = each.number, id = "figure-" + number;
    page.heading(3, "Figure " + number + ": " + each.caption, id);
    const auto found = thesis.diagrams.find(number);
    if (found == thesis.diagrams.end()) {
      page.paragraph("This run has not been done yet.");
      continue;
    }
    const Iteration& iteration = found->second;
    const auto costs = thesis.costs.find("googlenet");
    std::string caption = fixed(iteration.seconds, 3) +
                          " s from the first weights that leave to "
                          "the last gradient that is there";
    if (costs != thesis.costs.end() && number < "4.4") {
      const Costs of{costs->second.comm_taken(), grad};
      const auto [equation, predicted] =
          number == "4.1"   ? std::pair{"(4.4)", sync_central_best(of, workers)}
          : number == "4.2" ? std::pair{"(4.7)", sync_central_worst(of, workers)}
                            : std::pair{"(4.12)", sync_distributed(of, workers)};
      caption += "; " + std::string(equation) + " says " + fixed(predicted, 3) + " s";
    }
    page.figure(sequence_diagram(iteration, each.central ? 0 : -1,
                                 "Iteration " + std::to_string(iteration.step)),
                caption + ".");
  }
}

// ---- Chapter 6.

void add_table_6_1(Page& page, const Thesis& thesis) {
  page.heading(2, "Chapter 6: what was measured", "chapter-6");
  page.heading(3, "Table 6.1: t_grad and t_comm", "table-6.1");
  std::vector<Page::Row> rows;
  for (const ThesisNetwork& network : table_6_1()) {
    const auto found = thesis.costs.find(network.name);
    const CostsHere here = found == thesis.costs.end() ? CostsHere{} : found->second;
    const double line = here.bytes * 8e-6 / thesis.mbit;
    rows.push_back({network.title, fixed(network.costs.grad, 3),
                    here.grad_cpu ? fixed(*here.grad_cpu, 3) : "", cell(here.grad_gpu, 3),
                    here.grad_batch > 0 ? std::to_string(here.grad_batch) : "",
                    fixed(network.costs.comm, 3), cell(here.comm, 3), cell(here.comm_both, 3),
                    here.bytes > 0 ? fixed(line, 3) : "",
                    here.comm ? signed_percent(*here.comm / network.costs.comm - 1.0) : ""});
  }
  page.table(
      {"network", "t_grad, GTX 970", "t_grad, this CPU", "this GPU", "images", "t_comm, thesis",
       "t_comm, lab", "both ways at once", "bytes / rate", "lab to thesis"},
      rows);
  page.paragraph(
      "Seconds. t_comm: by transport between two hosts of the lab, 256 classes. t_grad of this "
      "machine is a step, with its update, of the number of images beside it; the thesis does "
      "not say "
      "how many its batches had. Estimates, simulations and runs below take the thesis's t_grad "
      "and the "
      "lab's t_comm.");
}

Series series_of(const std::string& name, int colour, Series::Style style, int most,
                 const std::function<std::optional<double>(int)>& value) {
  Series series{name, {}, style, colour};
  for (int n = 1; n <= most; ++n)
    if (const auto y = value(n)) series.points.emplace_back(n, *y);
  return series;
}

/// The band between worst case and best; without a point where the thesis has no such cases.
Series band_of(const Thesis& thesis, const ThesisFigure& figure, ServerMode server) {
  Series band{figure.sync == Sync::none ? "worst to best, (4.19)" : "worst to best, (4.10)",
              {},
              Series::Style::band,
              5,
              {}};
  for (int n = 1; n <= figure.most; ++n) {
    const auto between = estimated_between(thesis, figure, server, n);
    if (!between) continue;
    band.points.emplace_back(n, between->high);
    band.lower.emplace_back(n, between->low);
  }
  return band;
}

std::string sync_title(Sync sync) {
  return sync == Sync::none ? "asynchronous" : sync == Sync::split ? "sync split" : "sync join";
}

void add_figure(Page& page, const Thesis& thesis, const ThesisFigure& figure,
                const std::vector<Verdict>& all) {
  const ThesisNetwork& network = thesis_network(figure.network);
  page.heading(3,
               std::string("Figure ") + figure.number + ": " + network.title + ", " +
                   sync_title(figure.sync),
               std::string("figure-") + figure.number);
  for (const Verdict& verdict : all)
    if (verdict.is_of(figure.number))
      page.html("<p>The thesis (" + escape(verdict.where) + "): " + escape(verdict.statement) +
                ". " + outcome_of(verdict) + ".</p>");
  page.html("<div class=\"pair\">");
  for (const ServerMode server : {ServerMode::central, ServerMode::distributed}) {
    const auto of = [&](auto&& get) {
      return [&thesis, &figure, server, get](int n) -> std::optional<double> {
        const ThesisPoint* point = thesis.point(figure.number, server, n);
        return point == nullptr ? std::nullopt : get(*point);
      };
    };
    using Result = std::optional<double>;
    const auto lab = [](const std::optional<LabResult>& result) -> Result {
      return result ? Result(result->speedup) : Result();
    };
    LineChart chart;
    chart.title = std::string(net::name_of(server)) + " server";
    chart.x = "workers";
    chart.y = "speedup";
    chart.whole_x = true;
    chart.x_from_zero = false;
    chart.series = {series_of("equation", 5, Series::Style::dotted, figure.most,
                              [&](int n) { return Result(estimated(thesis, figure, server, n)); }),
                    series_of("simulated", 0, Series::Style::line, figure.most,
                              of([](const ThesisPoint& p) { return p.simulated; })),
                    series_of("lab", 0, Series::Style::marks, figure.most,
                              of([&](const ThesisPoint& p) { return lab(p.lab); })),
                    series_of("simulated, overlap", 1, Series::Style::dashed, figure.most,
                              of([](const ThesisPoint& p) { return p.simulated_overlap; })),
                    series_of("lab, overlap", 1, Series::Style::marks, figure.most,
                              of([&](const ThesisPoint& p) { return lab(p.lab_overlap); }))};
    const auto add = [&](const char* name, Series::Style style,
                         const std::function<Result(int)>& get) {
      Series exact = series_of(name, 2, style, figure.most, get);
      if (!exact.points.empty()) chart.series.push_back(std::move(exact));
    };
    add("simulated, fewer bytes", Series::Style::dashed,
        of([](const ThesisPoint& p) { return p.simulated_exact; }));
    add("lab, fewer bytes", Series::Style::marks,
        of([&](const ThesisPoint& p) { return lab(p.lab_exact); }));
    Series band = band_of(thesis, figure, server);
    if (!band.points.empty()) chart.series.insert(chart.series.begin(), std::move(band));
    page.figure(svg(chart), "");
  }
  page.html("</div>");

  std::vector<Page::Row> rows;
  const auto told = [](const std::optional<LabResult>& lab) {
    return lab ? fixed(lab->speedup, 2) + (lab->disturbed ? " ~" : "") : std::string();
  };
  const auto error = [](const std::optional<double>& simulated,
                        const std::optional<LabResult>& lab) {
    return simulated && lab ? signed_percent(*simulated / lab->speedup - 1.0) : std::string();
  };
  for (const ServerMode server : {ServerMode::central, ServerMode::distributed}) {
    for (int n = 1; n <= figure.most; ++n) {
      const ThesisPoint* point = thesis.point(figure.number, server, n);
      const ThesisPoint none, &p = point != nullptr ? *point : none;
      const auto between = estimated_between(thesis, figure, server, n);
      rows.push_back(
          {net::name_of(server), std::to_string(n), fixed(estimated(thesis, figure, server, n), 2),
           between ? fixed(between->low, 2) + " to " + fixed(between->high, 2) : "",
           cell(p.simulated), told(p.lab), error(p.simulated, p.lab), cell(p.simulated_overlap),
           told(p.lab_overlap), error(p.simulated_overlap, p.lab_overlap)});
      if (figure.sync == Sync::join) {
        rows.back().push_back(cell(p.simulated_exact));
        rows.back().push_back(told(p.lab_exact));
      }
    }
  }
  page.begin_fold("The values of figure " + std::string(figure.number));
  std::vector<std::string> names{"server",    "N",    "equation", "worst to best",
                                 "simulated", "lab",  "error",    "overlap: simulated",
                                 "lab",       "error"};
  if (figure.sync == Sync::join) names.insert(names.end(), {"fewer bytes: simulated", "lab"});
  page.table(names, rows);
  page.paragraph(
      std::string("~: others disturbed the machine in every try.") +
      (figure.sync == Sync::join
           ? " Fewer bytes: overlap with --wire lossless --factors auto, batch 16, whose result is "
             "the same; the thesis had nothing of the kind."
           : ""));
  page.end_fold();
}

void add_accuracy(Page& page, const Thesis& thesis) {
  page.heading(3, "How right the predictions are", "accuracy");
  std::vector<Page::Row> rows;
  const auto row = [&](const std::string& what, const PredictionError& of) {
    if (of.points == 0) return;
    rows.push_back({what, std::to_string(of.points), percent(of.median), percent(of.worst),
                    std::to_string(of.high), of.worst_at});
  };
  const std::vector<Order> both{Order::strict, Order::overlap};
  row("simulation, the thesis's order", prediction_error(thesis, {Order::strict}));
  row("simulation, overlap", prediction_error(thesis, {Order::overlap}));
  row("simulation, all", prediction_error(thesis, both));
  row("simulation, all that nothing disturbed", prediction_error(thesis, both, Runs::undisturbed));
  const std::vector<Sync> modes{Sync::join, Sync::split, Sync::none};
  for (const Sync sync : modes)
    for (const ServerMode server : {ServerMode::central, ServerMode::distributed})
      row("equation, " + sync_title(sync) + ", " + net::name_of(server) + ", the thesis's order",
          estimate_error(thesis, server, sync));
  for (const Sync sync : modes)
    row("the same, distributed, with the parts of Algorithm 3.7, " + sync_title(sync),
        estimate_error(thesis, ServerMode::distributed, sync, Parts::dealt));
  if (rows.empty()) {
    page.paragraph("Nothing has been run on the lab yet.");
    return;
  }
  page.paragraph(
      "Against the speedups on the lab, of all points that were run there. A run is disturbed "
      "where "
      "others on the machine slowed it down to two thirds, or had a tenth of a core of it, in "
      "every "
      "try: the lab is slower then than its links.");
  page.table({"prediction", "points", "median error", "worst", "too high", "worst at"}, rows);
  page.paragraph(
      "A finding of ours, of which the thesis says nothing: most estimates for a distributed "
      "server "
      "are too high since Algorithm 3.7 makes unequal parts, where (4.12) and (4.21) suppose equal "
      "ones. The rows with the parts of Algorithm 3.7 show how much of the error that explains: "
      "they take, in place of (N - 1) / N, what the busiest owner's link moves of all weights.");
}

void add_summary(Page& page, const Thesis& thesis, const std::vector<Verdict>& all) {
  page.heading(1, "The thesis, reproduced");
  std::size_t lab = 0, simulated = 0;
  for (const auto& [key, point] : thesis.points) {
    lab += (point.lab ? 1U : 0U) + (point.lab_overlap ? 1U : 0U) + (point.lab_exact ? 1U : 0U);
    simulated += (point.simulated ? 1U : 0U) + (point.simulated_overlap ? 1U : 0U) +
                 (point.simulated_exact ? 1U : 0U);
  }
  page.paragraph(
      "Parallel Deep Learning (FIT VUT Brno, 2017) asked whether it pays to train a network on "
      "several machines. Its tables and figures follow in its order, each as Duplex finds it: by "
      "the equations, by simulation, and on a lab of network namespaces joined at " +
      fixed(thesis.mbit, 0) + " Mbit/s (" + thesis.congestion +
      "), with Table 6.1's t_grad replayed: nothing is computed there, every byte is real. Once in "
      "the thesis's order (receive all, compute, send all; whole tensors, Algorithm 3.7), once "
      "with overlap and even shares; and sync join on a distributed server a third time, with "
      "fewer "
      "bytes for the same result.");
  std::string commits;
  for (const std::string& commit : thesis.commits)
    commits += (commits.empty() ? " " : ", ") + commit;
  page.paragraph(std::to_string(thesis.cores) + " cores, " + thesis.processor + ", Linux " +
                 thesis.kernel + ". " + std::to_string(simulated) + " points simulated, " +
                 std::to_string(lab) + " run on the lab, by the program of" + commits +
                 ". `make thesis` does it again, `make thesis FULL=1` with every point on the "
                 "lab.");
  page.heading(2, "What the thesis states", "statements");
  std::string list = "<dl>";
  for (const Verdict& verdict : all)
    list += "<dt>" + escape(verdict.statement) + " <span class=\"told\">(" +
            escape(verdict.place()) + ")</span></dt><dd>" + outcome_of(verdict) + "</dd>\n";
  page.html(list + "</dl>");
  page.paragraph(
      "Computed from the points of this page. A stated number, and what the thesis calls accurate, "
      "alike or slight without one, counts as confirmed within 10%; speedups of which the smaller "
      "is at least 99% of the greater count as equal. The thesis's network was its own: "
      "its t_comm (Table 6.1) is not the lab's. Where a simulation with that t_comm reaches more, "
      "too, something else than moving bytes in this order took the thesis's time. The estimate "
      "for a central server (4.11) is the mean of best and worst; here all workers send at once, "
      "which is the worst (4.7).");
}

}  // namespace

std::string thesis_page(const Thesis& thesis) {
  Page page("The thesis, reproduced");
  const std::vector<Verdict> all = verdicts(thesis);
  add_summary(page, thesis, all);
  add_networks(page);
  add_diagrams(page, thesis);
  add_table_6_1(page, thesis);
  for (const ThesisFigure& figure : chapter_6()) add_figure(page, thesis, figure, all);
  add_accuracy(page, thesis);
  return page.str();
}

}  // namespace duplex::tools::reports
