#include "tools/planning/strategy.h"

namespace duplex::tools {

namespace {

/// "pipeline-4:2:1:1-m32-lossless": without the layers with which stages begin.
std::string way_of_cut(const ParallelSpec& parallel) {
  std::string text = parallel.strategy;
  bool name = false;  // Of a layer.
  for (const char c : parallel.stages.empty() ? parallel.stages : "-" + parallel.stages) {
    name = c != ':' && (name || c == '@');
    if (!name) text += c;
  }
  if (parallel.micro_batches > 1) text += "-m" + std::to_string(parallel.micro_batches);
  if (parallel.in_flight != usual_in_flight) text += "-f" + std::to_string(parallel.in_flight);
  return text + (parallel.wire == net::WireFormat() ? "" : "-" + parallel.wire.str()) +
         (parallel.factors == Factors::off ? "" : "-factors") +
         (parallel.shares.empty() ? "" : "-shared");
}

}  // namespace

std::string Strategy::way() const {
  if (parallel.cuts()) return way_of_cut(parallel);
  std::string text = parallel.average > 0 ? "average" + std::to_string(parallel.average)
                                          : std::string(net::name_of(parallel.sync));
  text += std::string("-") + net::name_of(parallel.server);
  if (!parallel.central() && parallel.shards != net::Shards::even)
    text += std::string("-") + net::name_of(parallel.shards);
  if (!parallel.overlap) text += "-strict";
  if (parallel.semaphore) text += "-semaphore";
  if (!(parallel.wire == net::WireFormat())) text += "-" + parallel.wire.str();
  if (parallel.factors != Factors::off) text += "-factors";
  if (!parallel.shares.empty()) text += "-shared";
  return text;
}

std::string Strategy::name() const {
  return way() + "@" + std::to_string(workers());
}

std::string Strategy::result(std::int64_t batch) const {
  if (!exact()) return "";
  const std::int64_t images = batch * parallel.batches_a_step(workers());
  return "batch " + std::to_string(images);
}

bool is_named(const Strategy& strategy, const std::string& name) {
  return name == strategy.name() || name == strategy.way();
}

}  // namespace duplex::tools
