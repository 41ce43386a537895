#include "tools/flags/simulate_flags.h"

#include <algorithm>

#include "core/error.h"
#include "tools/flags/command_line.h"
#include "tools/flags/ledger_flag.h"
#include "tools/flags/parallel_flags.h"

namespace duplex::tools {

void SimulateFlags::add_to(CommandLine& app) {
  scenario.add_to(app, "simulate", "ranks");
  app.add_option("--workers", workers, "number of workers, N; csv: from 1 to N")
      .required()
      .check(between(1, 8192));
  app.add_option("--batches", batches, "batches of the whole training, D (default 128)")
      .check(between(1, 1e9));
  add_parallel_flags(app, parallel);
  add_cut_flags(app, parallel);
  app.add_option_function(
      "--slots", [this](const std::string& text) { slots = parse_slots(text); },
      "slots of each worker, as dist has them, or A:B:C, by worker (default 1)");
  app.add_option("--threads", scenario.threads,
                 "threads that compute on a slot (default: as --from has it of local)")
      .check(between(1, 1024));
  app.add_option("--together", together, "ranks that share a machine (default 1)")
      .check(between(1, 8192));
  app.add_option("--lose", lose, "RANK:SECONDS, a rank that vanishes");
  app.add_option("--output", output,
                 "report (default), or csv: the speedups of 1 to N workers, between semicolons")
      .check(one_of({"report", "csv"}));
  app.add_option("--logdir", logdir, "write the run directory that dist would");
  app.add_option("--records", records, "ranks whose ledgers and trace are kept (default 32)")
      .check(between(1, 8192));
  add_ledger_flag(app, ledger);
  app.add_flag("--trace", trace, "write trace.json, as dist does");
  app.add_option("--trace-steps", trace_steps,
                 "steps that --trace shows; with --average, averagings (default 10)")
      .check(between(1, 100));
}

void SimulateFlags::resolve() {
  scenario.resolve();
  if (scenario.machines() && together > 1)
    throw Error("simulate: " + scenario.measured + " says which machines ranks share: leave " +
                    "--together out",
                Exit::usage);
  if (scenario.machines() && scenario.threads)
    throw Error(
        "simulate: " + scenario.measured + " was measured with its threads: leave --threads out",
        Exit::usage);
  check_parallel_flags(parallel, "simulate");
  check_cut_flags(parallel, "simulate");
  take_slots();
  parallel.check_shares(workers, "simulate");
  parallel.check_cut("simulate");
  if (parallel.batches_a_step(workers) > batches)
    throw Error("simulate: " + std::to_string(parallel.all_slots(workers)) +
                    (parallel.slots.empty() ? " workers for " : " slots for ") +
                    std::to_string(batches) + " batches: some would have none",
                Exit::usage);
  if (output == "csv" && (writes() || !lose.empty()))
    throw Error(
        "simulate: --output csv is of many runs; it goes without --logdir, --trace and "
        "--lose",
        Exit::usage);
}

void SimulateFlags::take_slots() {
  if (slots.size() == 1) slots.resize(static_cast<std::size_t>(workers), slots.front());
  if (!slots.empty() && slots.size() != static_cast<std::size_t>(workers))
    throw Error("simulate: --slots is for " + std::to_string(slots.size()) +
                    " workers, and there are " + std::to_string(workers),
                Exit::usage);
  if (std::any_of(slots.begin(), slots.end(), [](int each) { return each > 1; }))
    parallel.slots = slots;
}

namespace {

/// The shares that dist would find.
std::vector<std::int64_t> shares_by_speed(const SimulationRequest& request) {
  const auto factor = straggler_factor(request.stragglers, request.seed);
  std::vector<double> seconds;
  const int servers = request.parallel.central() ? 1 : 0;
  for (int rank = servers; rank < request.workers + servers; ++rank)
    seconds.push_back(factor ? mean_factor(factor, rank) : 1.0);
  return proportional_shares(seconds, request.parallel.sharing == Sharing::by_speed_if_uneven);
}

}  // namespace

SimulationRequest SimulateFlags::request() const {
  const int ranks = workers + (parallel.central() ? 1 : 0);
  SimulationRequest request = scenario.request(ranks);
  scenario.add_machines(request, ranks);
  request.parallel = parallel;
  request.workers = workers;
  if (parallel.sharing != Sharing::given) request.parallel.shares = shares_by_speed(request);
  request.batches = batches;
  if (request.machine_of.empty())
    for (int rank = 0; rank < ranks; ++rank) request.machine_of.push_back(rank / together);
  for (const std::string& text : lose) {
    const auto [who, when] = at_colon(text, "simulate: --lose");
    const Ranks these = parse_ranks(who, ranks, "simulate: --lose '" + text + "'");
    double at = -1.0;
    if (!read_number(when, at) || !(at >= 0.0) || these.first != these.last)
      throw Error("simulate: --lose '" + text + "' is not RANK:SECONDS", Exit::usage);
    request.losses.push_back({these.first, at});
  }
  return request;
}

RunConfig SimulateFlags::config(const Scenario& found, const net::Topology& topology) const {
  RunConfig config = scenario.model.config(found.model);
  config.command = "simulate";
  config.settings = parallel.settings() + request().parallel.share_text();
  config.batch = found.batch;
  config.seed = scenario.seed;
  config.device = "none: simulated";
  config.replayed = config.simulated = true;
  config.parallel = request().parallel.config(topology, found.batch);
  SimulationConfig& given = config.simulation.emplace();
  given.batches = static_cast<std::uint64_t>(batches);
  given.grad = found.costs.grad;
  given.comm = found.costs.comm;
  given.rate = found.rate;
  given.owner_rate = found.owner_rate;
  given.seal_rate = found.seal_rate;
  given.send_processor = found.moving.send * 1e9;
  given.receive_processor = found.moving.receive * 1e9;
  given.frame_processor = found.moving.frame;
  given.cores = found.cores;
  given.threads = found.threads;
  given.together = together;
  given.latency = request().latency;
  if (!scenario.measured.empty()) given.measured = scenario.measured;
  given.slow = scenario.slow;
  given.links = scenario.links;
  given.lose = lose;
  return config;
}

Scenario scenario_of(const SimulateFlags& flags, std::vector<std::string>& notes) {
  const Scenario found = flags.scenario.scenario(notes);
  if (flags.parallel.splits() && !flags.parallel.cuts() && flags.workers > found.batch)
    throw Error("simulate: " + std::to_string(flags.workers) + " workers for a batch of " +
                    std::to_string(found.batch) + ": some would have nothing of it",
                Exit::usage);
  const std::vector<int>& slots = flags.parallel.slots;
  const int most = slots.empty() ? 1 : *std::max_element(slots.begin(), slots.end());
  if (flags.together * most * found.threads > found.cores && found.cores > 0)
    throw Error("simulate: " + std::to_string(flags.together * most) +
                    (most > 1 ? " slots with " : " ranks with ") + std::to_string(found.threads) +
                    " threads each on " + std::to_string(found.cores) +
                    " cores: they would wait for each other; measure local with fewer --threads",
                Exit::usage);
  return found;
}

}  // namespace duplex::tools
