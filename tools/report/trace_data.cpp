#include "tools/report/trace_data.h"

#include <algorithm>
#include <iterator>

#include "tools/run_directory/trace_file.h"

namespace duplex::tools::reports {
namespace {

void add(TraceData& trace, const TraceFileEvent& event) {
  const TraceFileDetails details = event.details.value_or(TraceFileDetails{});
  const int row = event.row.value_or(0);
  if (event.phase == "M") {
    const std::string name = details.name.value_or("");
    if (event.name == trace_names_rank) trace.ranks[event.rank] = name;
    if (event.name == trace_names_row) trace.rows[{event.rank, row}] = name;
  } else if (event.phase == "X") {
    trace.spans.push_back({event.rank, row, event.name, event.category.value_or(""),
                           details.waits_for.value_or(""),
                           static_cast<std::int64_t>(details.step.value_or(0)),
                           event.begin.value_or(0.0), event.takes.value_or(0.0)});
  }
}

bool computes(const TraceSpan& span) {
  return span.category == "forward" || span.category == "backward";
}

}  // namespace

TraceData TraceData::last(int steps) const {
  std::map<int, std::int64_t> computed;  // By rank.
  std::int64_t furthest = 0;
  for (const TraceSpan& span : spans) {
    if (!computes(span)) continue;
    std::int64_t& newest = computed[span.rank];
    newest = std::max(newest, span.step);
    furthest = std::max(furthest, span.step);
  }
  TraceData part{ranks, rows, {}};
  std::copy_if(
      spans.begin(), spans.end(), std::back_inserter(part.spans), [&](const TraceSpan& span) {
        const auto own = computed.find(span.rank);
        // Weights are for the step behind the one that makes them.
        const std::int64_t step =
            span.category == "weights" ? std::max<std::int64_t>(span.step - 1, 0) : span.step;
        return step + steps > (own == computed.end() ? furthest : own->second);
      });
  return part;
}

std::vector<LayerSeconds> TraceData::layers(int rank, std::uint64_t micro_batches) const {
  std::vector<LayerSeconds> layers;
  std::map<std::string, std::size_t> numbers;
  std::map<std::string, std::uint64_t> passes;  // Forward passes of each layer.
  std::uint64_t most = 1;
  for (const TraceSpan& span : spans) {
    if (span.rank != rank || !computes(span)) continue;
    const auto [found, added] = numbers.emplace(span.name, layers.size());
    if (added) layers.push_back({span.name});
    LayerSeconds& layer = layers[found->second];
    (span.category == "forward" ? layer.forward : layer.backward) += span.takes * 1e-6;
    if (span.category == "forward") most = std::max(most, ++passes[span.name]);
  }
  const double batches = static_cast<double>(most) / static_cast<double>(micro_batches);
  for (LayerSeconds& layer : layers) {
    layer.forward /= batches;
    layer.backward /= batches;
  }
  return layers;
}

TraceData read_trace(const std::string& path) {
  TraceData trace;
  for (const TraceFileEvent& event : read_trace_file(path).events) add(trace, event);
  std::stable_sort(trace.spans.begin(), trace.spans.end(),
                   [](const TraceSpan& a, const TraceSpan& b) { return a.begin < b.begin; });
  return trace;
}

}  // namespace duplex::tools::reports
