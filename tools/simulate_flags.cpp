#include "tools/simulate_flags.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "tools/command_line.h"
#include "tools/rate.h"
#include "tools/run_files.h"
#include "tools/slowness.h"
#include "tools/statistics.h"
#include "tools/table.h"

namespace duplex::tools {
namespace {

/// From so many ranks on, the moments at which links are shared anew are so many that they are
/// taken together, within so much of t_grad.
constexpr int many_ranks = 32;
constexpr double coarse = 1e-3;

/// From so many on, shares are all alike.
constexpr int even_ranks = 128;

/// As the slowest and the fastest of eight workers differ in docs/results/wire.md.
constexpr double usual_unfairness = 0.08;

std::pair<std::string, std::string> halves(const std::string& text, const char* flag) {
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    throw Error(std::string("simulate: ") + flag + " '" + text + "' has no colon (see --help)",
                Exit::usage);
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// Bytes of all weights on the wire, with the headers of their frames.
double wire_bytes(const std::vector<std::size_t>& counts) {
  const net::ShardMap map = net::ShardMap::central(counts, 0);
  double bytes = 0.0;
  for (std::size_t i = 0; i < map.chunks(); ++i)
    bytes += static_cast<double>(map[i].bytes() + net::header_bytes);
  return bytes;
}

std::vector<std::size_t> counts_of(const Model& model) {
  std::vector<std::size_t> counts;
  for (const ParameterSpec& spec : model.trained())
    counts.push_back(static_cast<std::size_t>(spec.shape.elements()));
  return counts;
}

}  // namespace

void SimulateFlags::add_to(CLI::App& app) {
  model.add_to(app);
  app.add_option("--profile", profile, "layers' seconds: profile.json of local --profile");
  app.add_option("--t-grad", grad,
                 "instead: seconds for the gradient of a batch, shared out by multiply-adds")
      ->check(positive());
  app.add_option("--rate", rate, "of every rank's link, in each direction: 1Gbit/s");
  app.add_option("--t-comm", comm,
                 "instead: seconds for one transfer of all weights, as transport measures it")
      ->check(positive());
  app.add_option("--from", from,
                 "run directories of local, transport or dist: profile or t_grad, t_comm and the "
                 "owners' rate, as measured in the first that has them, unless given");
  app.add_option("--latency", latency, "seconds from one rank to another (default 0.00005)")
      ->check(between(0.0, 60.0));
  app.add_option("--link", links, "RANKS:RATE, links that differ; RANKS: 3, 0-7 or all");
  app.add_option("--workers", workers, "how many, N; csv: from 1 to N")
      ->required()
      ->check(between(1, 8192));
  app.add_option("--batches", batches, "of the whole training, D (default 128)")
      ->check(between(1, 1e9));
  app.add_option("--batch", batch, "pictures a batch, which split shares out (default 32)")
      ->check(between(1, 1e9));
  parallel.add_to(app);
  app.add_option("--slow", slow,
                 "RANKS:HOW, stragglers: 3:1.5, all:lognormal:0.1, 0-3:uniform:1:2 or "
                 "7:exponential:0.3, the factor that computing takes longer by, of every step");
  app.add_option("--lose", lose, "RANK:SECONDS, a rank that vanishes");
  app.add_option("--owner-rate", owner_rate,
                 "at which an owner adds a gradient, and updates: 4GB/s (default: as --from has "
                 "it of transport, else in no time)");
  app.add_option("--queue", queue,
                 "bytes that wait at a port of the switch while more comes than goes (default "
                 "1000000)")
      ->check(between(0.0, 1e9));
  app.add_option(
         "--unfair", unfair,
         "deviation of the logarithm of a connection's share of a switch's port, as TCP's differ "
         "(default 0.08; for more than 128 ranks 0: all alike)")
      ->check(between(0.0, 2.0));
  app.add_option("--seed", seed, "of what is drawn (default 1)");
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
  app.add_flag("--trace", trace, "write trace.json, as dist does");
  app.add_option("--trace-steps", trace_steps, "how many steps --trace is of (default 10)")
      ->check(between(1, 100));
}

void SimulateFlags::settle() const {
  if (grad && !profile.empty())
    throw Error("simulate: --t-grad and --profile say the same; give one of them", Exit::usage);
  if (comm && !rate.empty())
    throw Error("simulate: --t-comm and --rate say the same; give one of them", Exit::usage);
  parallel.settle("simulate");
  if (!parallel.splits() && workers > batches)
    throw Error("simulate: " + std::to_string(workers) + " workers for " + std::to_string(batches) +
                    " batches: some would have none",
                Exit::usage);
  if (parallel.splits() && workers > batch)
    throw Error("simulate: " + std::to_string(workers) + " workers for a batch of " +
                    std::to_string(batch) + ": some would have nothing of it",
                Exit::usage);
  if (output == "csv" && (writes() || !lose.empty()))
    throw Error(
        "simulate: --output csv is of many runs; it goes without --logdir, --trace and "
        "--lose",
        Exit::usage);
}

Situation situation_of(const SimulateFlags& flags) {
  Situation found{flags.model.build(), {}, 0.0, 0.0, {}, {}};
  std::optional<double> grad = flags.grad, comm = flags.comm;
  if (!flags.owner_rate.empty()) found.owner_rate = parse_rate(flags.owner_rate);
  std::string profile = flags.profile;
  const auto note = [&](const std::string& what, const std::string& from) {
    found.notes.push_back(what + " from " + from);
  };
  for (const std::string& directory : flags.from) {
    const MeasuredCosts measured = measured_costs(directory);
    const std::string from = directory + " (" + measured.what + ")";
    if (!grad && profile.empty() && std::filesystem::exists(directory + "/profile.json")) {
      profile = directory + "/profile.json";
      note("profile", from);
    }
    if (!grad && profile.empty() && measured.grad) {
      grad = measured.grad;
      note("t_grad " + duration_text(*grad), from);
    }
    if (!comm && flags.rate.empty() && measured.comm) {
      comm = measured.comm;
      note("t_comm " + duration_text(*comm), from);
    }
    if (found.owner_rate <= 0.0 && measured.owner_rate) {
      found.owner_rate = *measured.owner_rate;
      note("owners' " + fixed(found.owner_rate * 1e-9, 2) + " GB/s", from);
    }
  }
  if (!profile.empty())
    found.times = read_profile(profile, found.model);
  else if (grad)
    found.times = share_out(*grad, found.model);
  else
    throw Error("simulate: no times; give --profile, --t-grad, or --from a run of local",
                Exit::usage);
  if (!(found.times.sum() > 0.0)) throw Error("profile " + profile + ": no layer takes any time");

  const double bytes = wire_bytes(counts_of(found.model));
  if (comm)
    found.rate = bytes / *comm;
  else if (!flags.rate.empty())
    found.rate = parse_rate(flags.rate);
  else
    throw Error("simulate: no link; give --rate, --t-comm, or --from a run of transport",
                Exit::usage);
  found.costs = {bytes / found.rate, found.times.sum()};
  return found;
}

simulation::Spec spec_of(const SimulateFlags& flags, const Situation& situation, int workers) {
  simulation::Spec spec;
  const ParallelFlags& parallel = flags.parallel;
  const int servers = parallel.central() ? 1 : 0, ranks = workers + servers;
  spec.topology = parallel.topology(ranks);
  spec.sync = net::parse_sync(parallel.sync);
  spec.overlap = parallel.overlap == "on";
  spec.semaphore = parallel.semaphore == "on";
  spec.average = parallel.average;
  spec.shards = net::parse_shards(parallel.shards);
  spec.counts = counts_of(situation.model);
  std::uint32_t next = 0;
  for (std::size_t node = 0; node < situation.model.nodes().size(); ++node) {
    const Model::Entry& entry = situation.model.nodes()[node];
    simulation::Layer layer{situation.times.forward[node], situation.times.backward[node], {}};
    if (entry.layer)
      for (const ParameterSpec& parameter : situation.model.parameters(entry))
        if (parameter.trained) layer.parameters.push_back(next++);
    spec.layers.push_back(std::move(layer));
  }
  for (int worker = 0; worker < workers; ++worker) {
    const auto count = parallel.share(flags.batch, worker, workers).count;
    spec.part.push_back(static_cast<double>(count) / static_cast<double>(flags.batch));
  }
  const std::int64_t a_step = parallel.splits() ? 1 : workers;
  spec.steps = static_cast<std::uint64_t>((flags.batches + a_step - 1) / a_step);

  // Of fewer workers than N, what concerns the ranks that are missing is left out.
  const int all = flags.workers + servers;
  spec.rates.assign(static_cast<std::size_t>(all), situation.rate);
  for (const std::string& text : flags.links) {
    const auto [who, how] = halves(text, "--link");
    const Ranks these = parse_ranks(who, all, text);
    for (int rank = these.first; rank <= these.last; ++rank)
      spec.rates[static_cast<std::size_t>(rank)] = parse_rate(how);
  }
  spec.rates.resize(static_cast<std::size_t>(ranks));
  for (const std::string& text : flags.lose) {
    const auto [who, when] = halves(text, "--lose");
    const Ranks these = parse_ranks(who, all, text);
    double at = -1.0;
    if (!CLI::detail::lexical_cast(when, at) || !(at >= 0.0) || these.first != these.last)
      throw Error("simulate: --lose '" + text + "' is not RANK:SECONDS", Exit::usage);
    spec.losses.push_back({these.first, at});
  }
  std::vector<Slowness> slow;
  for (const std::string& text : flags.slow) slow.push_back(Slowness::parse(text, all));
  spec.slowness = slowness(slow, flags.seed);
  spec.latency = flags.latency;
  spec.owner_rate = situation.owner_rate;
  spec.queue = flags.queue;
  spec.unfairness = flags.unfair.value_or(ranks > even_ranks ? 0.0 : usual_unfairness);
  spec.seed = flags.seed;
  spec.resolution = flags.resolution.value_or(ranks > many_ranks ? coarse * situation.costs.grad
                                                                 : spec.resolution);
  return spec;
}

}  // namespace duplex::tools
