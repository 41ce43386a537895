#include "tools/training/loop.h"

#include <algorithm>

#include "core/clock.h"
#include "layers/exchange/timed_exchange.h"
#include "tools/display/progress_line.h"
#include "tools/training/divergence.h"

namespace duplex::tools {

void LayerComputation::run(Exchange& exchange, std::uint64_t step) {
  begin(step);
  exchange.begin(step);
  if (exchange.works_between_steps())
    run_whole(exchange);
  else
    run_by_layers(exchange);
  synchronize();
  exchange.end();
}

void LayerComputation::run_by_layers(Exchange& exchange) {
  for (std::size_t layer = 0; layer < layers(); ++layer) {
    for (const std::size_t p : parameters_of(layer)) exchange.await(p);
    forward(layer);
  }
  for (std::size_t layer = layers(); layer-- > 0;) {
    backward(layer);
    for (const std::size_t p : parameters_of(layer)) exchange.push(p);
  }
}

void LayerComputation::run_whole(Exchange& exchange) {
  for (std::size_t layer = 0; layer < layers(); ++layer)
    for (const std::size_t p : parameters_of(layer)) exchange.await(p);
  forward_all();
  backward_all();
  for (std::size_t layer = layers(); layer-- > 0;)
    for (const std::size_t p : parameters_of(layer)) exchange.push(p);
}

void LayerComputation::forward_all() {
  for (std::size_t layer = 0; layer < layers(); ++layer) forward(layer);
}

void LayerComputation::backward_all() {
  for (std::size_t layer = layers(); layer-- > 0;) backward(layer);
}

TrainingResult train(Computation& computation, Exchange& inner, const LoopSpec& spec,
                     Troubles& troubles) {
  TimedExchange exchange(inner);
  Metrics metrics(spec.schedule, spec.rate, spec.metrics_path, spec.first, troubles);
  ProgressLine progress(spec.schedule, spec.first, spec.batch, spec.display);
  std::int64_t start = clock_ns(), begin = start;  // Tests move `start` on.
  for (std::uint64_t step = spec.first; step < std::min(spec.schedule.steps, spec.end); ++step) {
    if (spec.beginning) spec.beginning(step);
    computation.run(exchange, step);
    const StepOutcome outcome = computation.outcome();
    const std::int64_t end = clock_ns();

    const StepMetrics row = metrics.add(step, {begin, end, exchange.times()}, outcome);
    if (spec.after_step) spec.after_step(row);
    require_finite_loss(step, outcome.loss);
    progress.show(step, outcome.loss, outcome.hits, seconds(end - start));
    begin = end;
    if (spec.test && step + 1 < spec.schedule.steps && spec.schedule.test_due(step + 1)) {
      exchange.await_all();
      progress.clear();
      const bool go_on = spec.test(step + 1);
      begin = clock_ns();
      start += begin - end;
      if (!go_on) break;
    }
    if (spec.checkpoint && (step + 1) % spec.schedule.steps_per_round == 0) {
      const bool go_on = spec.checkpoint(step + 1, [&] { exchange.await_all(); });
      start += clock_ns() - begin;
      begin = clock_ns();
      if (!go_on) break;
    }
  }
  progress.finish();
  return metrics.result(seconds(clock_ns() - start));
}

}  // namespace duplex::tools
