#include "tools/report/overview.h"

#include <cmath>

#include "tools/prediction/payoff.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools::reports {
namespace {

std::string percent(double part) {
  return (part < 0 ? "-" : "+") + fixed(100.0 * std::abs(part), 1) + "%";
}

std::string mode_of(const RunData& run) {
  if (!run.parallel) return "one machine";
  const std::string sync =
      run.average > 0 ? "averaging" : std::string("sync ") + net::name_of(run.sync);
  const bool central = run.server == net::ServerMode::central;
  return sync + ", " +
         (run.cut() ? run.cut_text() + (central ? ", central" : "") : net::name_of(run.server)) +
         (run.overlap ? "" : ", strict order") + (run.semaphore ? ", semaphores" : "") +
         (run.wire == net::WireFormat() ? "" : ", " + run.wire.str() + " on the wire") +
         (run.factors == Factors::off ? "" : std::string(", factors ") + name_of(run.factors));
}

std::string kind_of(const RunData& run) {
  if (run.simulated) return "simulated";
  return run.replayed ? "replayed: nothing was computed" : run.device;
}

std::string payoff_of(const RunData& run, const Prediction& prediction) {
  const double part = run.batches_a_step() / run.all_slots();
  return text_of(Payoff{run.name, "one machine", prediction.measured, run.step.value_or(0.0),
                        run.grad.value_or(0.0), run.grad.value_or(0.0) / (part * prediction.grad)});
}

}  // namespace

void add_overview(Page& page, const std::vector<RunData>& runs, const Predictions& predictions) {
  page.heading(2, "What was run", "runs");
  std::vector<Page::Row> rows;
  for (const RunData& run : runs)
    rows.push_back(
        {run.name,
         run.title + ", input " + run.input + ", " + std::to_string(run.classes) + " classes",
         mode_of(run), kind_of(run), run.data.empty() ? "none" : run.data,
         std::to_string(run.all_slots()), std::to_string(run.batch),
         run.complete ? Cell(grouped(static_cast<std::int64_t>(run.steps)))
                      : Cell(grouped(static_cast<std::int64_t>(run.metrics.size())) +
                                 (run.goes_on ? " so far" : ", interrupted"),
                             Cell::Mark::bad)});
  page.table({"run", "network", "how", "computed by", "images", "N", "batch", "steps"}, rows, 5);
  for (const RunData& run : runs)
    if (!run.complete)
      page.paragraph(run.name + (run.goes_on ? " goes on" : " was interrupted") +
                     ": what follows of it is as far as it came.");

  rows.clear();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunData& run = runs[i];
    const auto& prediction = predictions[i];
    const auto told = [&](const std::optional<double>& value) {
      return value ? fixed(*value, 2) : std::string();
    };
    const auto error = [&](const std::optional<double>& predicted) {
      return predicted ? percent(*predicted / prediction->measured - 1.0) : std::string();
    };
    rows.push_back({run.name, run.grad ? duration_text(*run.grad) : "",
                    prediction && prediction->comm > 0.0 ? duration_text(prediction->comm) : "",
                    run.step ? duration_text(*run.step) : "",
                    prediction ? fixed(prediction->measured, 2) : (run.parallel ? "" : "1"),
                    prediction ? told(prediction->equation) : "",
                    prediction ? error(prediction->equation) : "",
                    prediction ? told(prediction->simulation) : "",
                    prediction ? error(prediction->simulation) : "",
                    run.accuracy ? fixed(100.0 * run.accuracy->top1, 2) + "%" : "",
                    run.accuracy ? fixed(100.0 * run.accuracy->top5, 2) + "%" : ""});
  }
  page.heading(2, "Did it pay, and was that foreseen?", "speedup");
  page.table({"run", "t_grad", "t_comm", "a step", "speedup", "by the equations", "error",
              "simulated", "error", "top-1", "top-5"},
             rows);
  page.paragraph(
      "t_grad: a worker's gradient of its batch, or of its part of one. t_comm: one transfer of "
      "all weights, as transport measured it where its directory is given, else by the run's own "
      "ledgers, of the rank that had most of its link. Speedup: over one machine (4.23). The "
      "equations (4.11), (4.12), (4.20), (4.21) are of the thesis's order, without overlap; the "
      "simulation has the run's own.");
  for (const RunData& run : runs)
    if (run.accuracy && run.accuracy->not_finite > 0)
      page.paragraph(run.name + ": " + not_finite_text(*run.accuracy) + ".");
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (predictions[i])
      page.paragraph(runs[i].name + ": one machine takes " + duration_text(predictions[i]->grad) +
                     " for a batch, by " + predictions[i]->alone + "." +
                     (predictions[i]->comm > 0.0 ? " t_comm of " + predictions[i]->comm_of + ": " +
                                                       duration_text(predictions[i]->comm) + "."
                                                 : ""));
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (predictions[i]) page.paragraph(payoff_of(runs[i], *predictions[i]));
}

void add_plans(Page& page, const std::vector<RunData>& runs) {
  std::vector<Page::Row> rows;
  for (const RunData& run : runs) {
    const std::optional<double> batches_a_second = run.throughput();
    if (!run.plan || !batches_a_second || !run.step || !run.grad || !run.await) continue;
    const PlanConfig& plan = *run.plan;
    const double image = 1.0 / (*batches_a_second * static_cast<double>(run.batch));
    const auto row = [&](const std::string& what, double predicted, double measured, bool time) {
      const auto text = [&](double value) { return time ? duration_text(value) : fixed(value, 2); };
      rows.push_back({run.name, plan.way, what, text(predicted), text(measured),
                      measured > 0.0 ? percent(predicted / measured - 1.0) : ""});
    };
    row("speedup over the plan's one machine", plan.speedup, plan.alone / image, false);
    row("an image", plan.image, image, true);
    row("a step", plan.step, *run.step, true);
    row("of it computing", plan.computing, *run.grad, true);
    row("of it waiting for weights", plan.awaiting, *run.await, true);
  }
  if (rows.empty()) return;
  page.heading(2, "What the plan foresaw", "plan");
  page.table({"run", "way", "what", "foreseen", "measured", "error"}, rows, 3);
  page.paragraph(
      "Foreseen are means of the simulated steps; measured are medians of the first worker's.");
}

}  // namespace duplex::tools::reports
