#include "tools/plan/plan_file.h"

#include <algorithm>

#include "core/error.h"
#include "layers/model.h"
#include "tools/plan/stage_list.h"
#include "tools/run_directory/json_file.h"
#include "tools/run_directory/schema.h"

namespace duplex::tools {
namespace {

template <class Fields>
void describe(Fields& f, PlanFile& p) {
  f.version();
  f.field("program", p.program);
  f.field("network", p.network);
  f.field("title", p.title);
  f.field("input", p.input);
  f.field("classes", p.classes, Range::not_negative);
  f.field("parameters", p.parameters, Range::not_negative);
  f.field("auxiliary", p.auxiliary);
  f.field("pad_shortcuts", p.pad_shortcuts);
  f.optional("network_file", p.network_file);
  f.field("batch", p.batch, Range::not_negative);
  describe(f, p.parallel);
  f.field("machines", p.machines);
  f.optional("addresses", p.addresses);
  f.optional("link_rate", p.link_rate);
  f.optional("device", p.device);
  f.optional("precision", p.precision);
  f.optional("layout", p.layout);
  f.optional("threads", p.threads);
  describe(f, p.predicted);
}

void check(const PlanFile& plan) {
  const ParallelConfig& parallel = plan.parallel;
  const bool serves = parallel.server == net::ServerMode::central && !parallel.strategy;
  const int servers = serves ? 1 : 0;
  const auto ranks = static_cast<std::size_t>(parallel.ranks);
  if (parallel.workers < 1 || parallel.ranks != parallel.workers + servers)
    throw Error("is damaged: ranks and workers do not fit");
  if (plan.machines.size() != ranks) throw Error("is damaged: machines are not one a rank");
  if (plan.addresses && plan.addresses->size() != ranks)
    throw Error("is damaged: addresses are not one a rank");
  if (parallel.samples && parallel.samples->size() != static_cast<std::size_t>(parallel.workers))
    throw Error("is damaged: samples are not one a worker");
  if (parallel.samples)
    for (const std::int64_t samples : *parallel.samples)
      if (samples < 1 || samples > most_images)
        throw Error("is damaged: a worker has no such samples");
  if (parallel.slots && parallel.slots->size() != static_cast<std::size_t>(parallel.workers))
    throw Error("is damaged: slots are not one number a worker");
  if (parallel.slots)
    for (const int slots : *parallel.slots)
      if (slots < 1 || slots > 1024) throw Error("is damaged: a worker has no such slots");
  if (parallel.factors) parse_factors(*parallel.factors);
  const std::vector<std::string>& known = cutting_strategies();
  if (parallel.strategy && std::count(known.begin(), known.end(), *parallel.strategy) == 0)
    throw Error("is damaged: there is no strategy " + *parallel.strategy);
  if (parallel.stages) check_stages(*parallel.stages);
  if (parallel.micro_batches.value_or(1) < 1 || parallel.in_flight.value_or(1) < 1)
    throw Error("is damaged: micro-batches are less than one");
  if (plan.threads.value_or(1) < 1) throw Error("is damaged: threads are less than one");
  if (plan.batch < 1 || plan.batch > most_images)
    throw Error("is damaged: batch is no number of images");
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

ParallelSpec PlanFile::parallel_spec() const {
  ParallelSpec spec;
  spec.sync = parallel.sync;
  spec.server = parallel.server;
  spec.shards = parallel.shards;
  spec.overlap = parallel.overlap;
  spec.semaphore = parallel.semaphore;
  spec.average = parallel.average;
  spec.wire = parallel.wire;
  spec.factors = parse_factors(parallel.factors.value_or("off"));
  if (parallel.samples) spec.shares = *parallel.samples;
  if (parallel.slots) spec.slots = *parallel.slots;
  spec.strategy = parallel.strategy.value_or("");
  spec.stages = parallel.stages.value_or("");
  spec.micro_batches = parallel.micro_batches.value_or(1);
  spec.in_flight = parallel.in_flight.value_or(usual_in_flight);
  return spec;
}

std::vector<std::pair<std::string, std::string>> PlanFile::flags() const {
  std::vector<std::pair<std::string, std::string>> flags{
      {"--net", network},
      {"--classes", std::to_string(classes)},
      {"--batch", std::to_string(batch)},
      {"--sync", net::name_of(parallel.sync)},
      {"--server", net::name_of(parallel.server)},
      {"--overlap", parallel.overlap ? "on" : "off"},
      {"--semaphore", parallel.semaphore ? "on" : "off"},
      {"--shards", net::name_of(parallel.shards)},
      {"--wire", parallel.wire.str()},
      {"--factors", parallel.factors.value_or("off")}};
  if (link_rate) flags.emplace_back("--link-rate", *link_rate);
  if (device) flags.emplace_back("--device", *device);
  if (precision) flags.emplace_back("--precision", *precision);
  if (layout) flags.emplace_back("--layout", *layout);
  if (threads) flags.emplace_back("--threads", std::to_string(*threads));
  if (parallel.average > 0) flags.emplace_back("--average", std::to_string(parallel.average));
  flags.emplace_back("--strategy", parallel.strategy.value_or("data"));
  if (parallel.stages) flags.emplace_back("--stages", *parallel.stages);
  if (parallel.micro_batches)
    flags.emplace_back("--micro-batches", std::to_string(*parallel.micro_batches));
  if (parallel.in_flight) flags.emplace_back("--in-flight", std::to_string(*parallel.in_flight));
  return flags;
}

std::string text_of(PlanFile plan) {
  JsonWriter writer;
  describe(writer, plan);
  return writer.take().dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

PlanFile read_plan(const std::string& path) {
  const nlohmann::json json = read_json_file(path);
  PlanFile plan;
  try {
    JsonReader reader(json);
    describe(reader, plan);
    check(plan);
  } catch (const Error& error) {
    throw Error(path + " " + error.what());
  }
  return plan;
}

void check_machines(const PlanFile& plan, const std::string& path,
                    const std::vector<std::string>& addresses, const std::string& command) {
  if (static_cast<std::size_t>(plan.parallel.ranks) != addresses.size())
    throw Error(command + ": the plan " + path + " is for " + std::to_string(plan.parallel.ranks) +
                    " ranks, and there are " + std::to_string(addresses.size()) +
                    ": make a plan for these, or give the machines that it is for",
                Exit::usage);
  if (plan.addresses && *plan.addresses != addresses)
    throw Error(command + ": the plan " + path + " is for the machines " + listed(*plan.addresses) +
                    ", in this order, and the nodefile has " + listed(addresses),
                Exit::usage);
}

}  // namespace duplex::tools
