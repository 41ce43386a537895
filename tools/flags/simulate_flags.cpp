#include "tools/flags/simulate_flags.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "tools/flags/command_line.h"
#include "tools/flags/ledger_flag.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/parallel_flags.h"
#include "tools/run_directory/run_files.h"
#include "tools/scenario/stragglers.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

std::pair<std::string, std::string> halves(const std::string& text, const char* flag) {
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    throw Error(std::string("simulate: ") + flag + " '" + text + "' has no colon (see --help)",
                Exit::usage);
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

void SimulateFlags::add_to(CLI::App& app) {
  add_model_flags(app, model, false);
  app.add_option("--profile", profile, "layers' seconds: profile.json of local --profile");
  app.add_option("--t-grad", grad,
                 "instead of --profile: seconds for the gradient of a batch, shared out by "
                 "multiply-adds")
      ->transform(as_seconds())
      ->check(positive());
  app.add_option("--rate", rate, "rate of every rank's link in each direction, such as 1Gbit/s");
  app.add_option("--t-comm", comm,
                 "instead of --rate: seconds for one transfer of all weights, as transport "
                 "measures it")
      ->transform(as_seconds())
      ->check(positive());
  app.add_option(
      "--from", from,
      "run directories of local, transport or dist: network, profile or t_grad, t_comm and "
      "the owners' rate, of the first that has them, unless given");
  app.add_option("--latency", latency, "seconds from one rank to another (default 0.00005)")
      ->transform(as_seconds())
      ->check(between(0.0, 60.0));
  app.add_option("--link", links, "RANKS:RATE, links that differ; RANKS: 3, 0-7 or all");
  app.add_option("--workers", workers, "number of workers, N; csv: from 1 to N")
      ->required()
      ->check(between(1, 8192));
  app.add_option("--batches", batches, "batches of the whole training, D (default 128)")
      ->check(between(1, 1e9));
  app.add_option(
         "--batch", batch,
         "images a batch, which split shares out (default: those of --profile or --from, else 32)")
      ->check(between(1, 1e9));
  add_parallel_flags(app, parallel);
  app.add_option("--slow", slow,
                 "RANKS:HOW, stragglers: the factor that computing takes longer by in every step, "
                 "such as 3:1.5, all:lognormal:0.1, 0-3:uniform:1:2 or 7:exponential:0.3");
  app.add_option("--lose", lose, "RANK:SECONDS, a rank that vanishes");
  app.add_option("--owner-rate", owner_rate,
                 "rate at which an owner adds a gradient, and updates, such as 4GB/s (default: as "
                 "--from has it of transport, else in no time)");
  app.add_option(
      "--seal-rate", seal_rate,
      "frames are sealed, and all processors of a machine together seal or open so much, "
      "such as 9GB/s (default: as --from has it of transport, else frames are plain)");
  app.add_option("--queue", queue,
                 "bytes that wait at a port of the switch while more comes than goes (default "
                 "1000000)")
      ->check(between(0.0, 1e9));
  app.add_option("--unfair", unfair,
                 "standard deviation of the logarithm of a connection's share of a switch's port, "
                 "as TCP's differ "
                 "(default 0.08; for more than 128 ranks 0: all alike)")
      ->check(between(0.0, 2.0));
  app.add_option("--seed", seed, "seed of all that is drawn (default 1)");
  app.add_option("--resolution", resolution,
                 "seconds within which events count as one moment (default: a nanosecond; for "
                 "more than 32 ranks a thousandth of t_grad)")
      ->check(between(1e-12, 1e6));
  app.add_option("--output", output,
                 "report (default), or csv: the speedups of 1 to N workers, between semicolons")
      ->check(CLI::IsMember({"report", "csv"}));
  app.add_option("--logdir", logdir, "write the run directory that dist would");
  app.add_option("--records", records, "ranks whose ledgers and trace are kept (default 32)")
      ->check(between(1, 8192));
  add_ledger_flag(app, ledger);
  app.add_flag("--trace", trace, "write trace.json, as dist does");
  app.add_option("--trace-steps", trace_steps, "number of steps that --trace shows (default 10)")
      ->check(between(1, 100));
}

void SimulateFlags::resolve() {
  model.fill_from(from);
  if (model.net.empty())
    throw Error("simulate: no network; give --net, or --from a run of local or dist", Exit::usage);
  if (grad && !profile.empty())
    throw Error("simulate: --t-grad and --profile say the same; give one of them", Exit::usage);
  if (comm && !rate.empty())
    throw Error("simulate: --t-comm and --rate say the same; give one of them", Exit::usage);
  check_parallel_flags(parallel, "simulate");
  parallel.check_shares(workers, "simulate");
  if (!parallel.splits() && workers > batches)
    throw Error("simulate: " + std::to_string(workers) + " workers for " + std::to_string(batches) +
                    " batches: some would have none",
                Exit::usage);
  if (output == "csv" && (writes() || !lose.empty()))
    throw Error(
        "simulate: --output csv is of many runs; it goes without --logdir, --trace and "
        "--lose",
        Exit::usage);
}

SimulationRequest SimulateFlags::request() const {
  SimulationRequest request;
  request.parallel = parallel;
  request.workers = workers;
  request.batches = batches;
  request.seed = seed;
  request.latency = latency;
  request.queue = queue;
  request.unfairness = unfair;
  request.resolution = resolution;
  const int ranks = workers + (parallel.central() ? 1 : 0);
  for (const std::string& text : links) {
    const auto [who, how] = halves(text, "--link");
    request.links.emplace_back(parse_ranks(who, ranks, "simulate: --link '" + text + "'"),
                               parse_rate(how));
  }
  for (const std::string& text : lose) {
    const auto [who, when] = halves(text, "--lose");
    const Ranks these = parse_ranks(who, ranks, "simulate: --lose '" + text + "'");
    double at = -1.0;
    if (!CLI::detail::lexical_cast(when, at) || !(at >= 0.0) || these.first != these.last)
      throw Error("simulate: --lose '" + text + "' is not RANK:SECONDS", Exit::usage);
    request.losses.push_back({these.first, at});
  }
  for (const std::string& text : slow) request.stragglers.push_back(Straggler::parse(text, ranks));
  return request;
}

RunConfig SimulateFlags::config(const Scenario& scenario, const net::Topology& topology) const {
  RunConfig config = model.config(scenario.model);
  config.command = "simulate";
  config.settings = parallel.settings() + parallel.share_text();
  config.batch = scenario.batch;
  config.seed = seed;
  config.device = "none: simulated";
  config.replayed = config.simulated = true;
  config.parallel = parallel.config(topology, scenario.batch);
  SimulationConfig& given = config.simulation.emplace();
  given.batches = static_cast<std::uint64_t>(batches);
  given.grad = scenario.costs.grad;
  given.comm = scenario.costs.comm;
  given.rate = scenario.rate;
  given.owner_rate = scenario.owner_rate;
  given.seal_rate = scenario.seal_rate;
  given.latency = latency;
  given.slow = slow;
  given.links = links;
  given.lose = lose;
  return config;
}

Scenario scenario_of(const SimulateFlags& flags, std::vector<std::string>& notes) {
  const Model model = flags.model.build();
  std::optional<double> grad = flags.grad, comm = flags.comm;
  double owner_rate = flags.owner_rate.empty() ? 0.0 : parse_rate(flags.owner_rate);
  double seal_rate = flags.seal_rate.empty() ? 0.0 : parse_rate(flags.seal_rate);
  std::string profile = flags.profile;
  std::optional<double> run_grad;  // t_grad of the whole run that the profile is of.
  std::optional<std::int64_t> batch = flags.batch;
  const auto note = [&](const std::string& what, const std::string& from) {
    notes.push_back(what + " from " + from);
  };
  for (const std::string& directory : flags.from) {
    const MeasuredCosts measured = measured_costs(directory);
    const std::string from = directory + " (" + measured.what + ")";
    if (!grad && profile.empty() && std::filesystem::exists(directory + "/" + profile_file)) {
      profile = directory + "/" + profile_file;
      run_grad = measured.grad;
      note("profile", from);
    }
    if (!grad && profile.empty() && measured.grad) {
      grad = measured.grad;
      if (batch && measured.batch && *batch != *measured.batch)
        throw Error("simulate: " + from + " has not measured batches of " + std::to_string(*batch) +
                        ": leave --batch out, or give a run of that batch",
                    Exit::usage);
      batch = measured.batch;
      note("t_grad " + duration_text(*grad), from);
    }
    if (!comm && flags.rate.empty() && measured.comm) {
      comm = measured.comm;
      note("t_comm " + duration_text(*comm), from);
    }
    if (owner_rate <= 0.0 && measured.owner_rate) {
      owner_rate = *measured.owner_rate;
      note("owners' " + fixed(owner_rate * 1e-9, 2) + " GB/s", from);
    }
    if (seal_rate <= 0.0 && measured.seal_rate) {
      seal_rate = *measured.seal_rate;
      note("sealing at " + fixed(seal_rate * 1e-9, 2) + " GB/s", from);
    }
  }
  if (profile.empty() && !grad)
    throw Error("simulate: no times; give --profile, --t-grad, or --from a run of local",
                Exit::usage);
  LayerTimes times =
      profile.empty() ? share_out(*grad, model) : read_profile(profile, model, batch);
  if (!(times.sum() > 0.0)) throw Error("profile " + profile + ": no layer takes any time");
  if (!times.batch) times.batch = batch;
  if (run_grad) {
    // If the machine is disturbed, the layers' medians add up to less than the median step, which
    // is what estimate takes of the same run.
    notes.push_back("its layers add up to " + duration_text(times.sum()) +
                    " and are scaled to the run's t_grad, " + duration_text(*run_grad));
    times.scale(*run_grad / times.sum());
  }
  if (!comm && flags.rate.empty())
    throw Error("simulate: no link; give --rate, --t-comm, or --from a run of transport",
                Exit::usage);
  Scenario found = comm ? Scenario::with_comm(model, times, *comm, seal_rate)
                        : Scenario::with_rate(model, times, parse_rate(flags.rate), seal_rate);
  found.owner_rate = owner_rate;
  if (flags.parallel.splits() && flags.workers > found.batch)
    throw Error("simulate: " + std::to_string(flags.workers) + " workers for a batch of " +
                    std::to_string(found.batch) + ": some would have nothing of it",
                Exit::usage);
  return found;
}

}  // namespace duplex::tools
