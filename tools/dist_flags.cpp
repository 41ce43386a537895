#include "tools/dist_flags.h"

#include <cstdlib>

#include "core/error.h"
#include "core/output_file.h"
#include "tools/command_line.h"
#include "tools/rank_source.h"
#include "tools/replay.h"

namespace duplex::tools {

void DistFlags::add_to(CLI::App& app) {
  training.add_to(app);
  app.add_option("--nodefile", nodefile,
                 "the machines, host or host:port a line; line I is rank I, from 0 (default: the "
                 "hosts of srun, or this machine; with a central server, rank 0 at MASTER_ADDR)");
  app.add_option("--index", index,
                 "this process's rank: its line in the nodefile, from 0 (default: what srun or "
                 "mpirun says, or RANK of WORLD_SIZE)")
      ->check(at_least(0));
  app.add_option("--sync", sync,
                 "join: one update by the mean gradient of every worker's batch (default); split: "
                 "the workers share one batch; none: every gradient is applied as it comes")
      ->check(CLI::IsMember({"join", "split", "none"}));
  app.add_option("--average", average,
                 "workers update weights of their own and go on with the mean of them after every "
                 "so many batches")
      ->check(between(1, 1 << 30));
  app.add_option("--overlap", overlap,
                 "on: gradients leave during the backward pass, weights come during the forward "
                 "pass (default); off: receive all, compute, send all")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--semaphore", semaphore,
                 "on: one worker at a time sends to a server, and a server sends to one worker at "
                 "a time, in the order of asking (default off)")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option(
         "--server", server,
         "distributed: every rank trains and holds a share of the weights (default); central: "
         "rank 0 holds all and does not train")
      ->check(CLI::IsMember({"central", "distributed"}));
  app.add_option("--shards", shards,
                 "distributed server: even shares (default) or whole tensors (Algorithm 3.7)")
      ->check(CLI::IsMember({"even", "tensors"}));
  app.add_option("--job", job, "name of the run; ranks of different jobs do not meet");
  app.add_flag(
      "--trace", trace,
      "write trace.json, the last steps of all ranks: computing, waiting, what crossed the "
      "wire (rank 0 writes it; ui.perfetto.dev shows it)");
  app.add_option("--trace-steps", trace_steps, "how many steps --trace is of (default 10)")
      ->check(between(1, 100));
  wire.add_to(app);
}

net::ExchangeSpec DistFlags::exchange() const {
  net::ExchangeSpec spec;
  spec.sync = net::parse_sync(sync);
  spec.shards = net::parse_shards(shards);
  spec.average = average > 0;
  spec.overlap = overlap == "on";
  spec.semaphore = semaphore == "on";
  spec.trace_steps = trace ? trace_steps : 0;
  spec.optimiser = training.spec;
  spec.rate = training.learning_rate();
  spec.timeout = wire.timeout();
  return spec;
}

std::string DistFlags::settings() const {
  return "sync " + sync + (average > 0 ? ", average " + std::to_string(average) : "") +
         ", overlap " + overlap + ", semaphore " + semaphore + ", server " + server +
         (server == "distributed" ? ", shards " + shards : "") + ", " + training.settings();
}

std::string DistFlags::settle() {
  training.settle();
  if (training.profile) {
    throw Error("dist: --profile belongs to local, where nothing but computing is timed",
                Exit::usage);
  }
  if (!training.save.empty()) const OutputFile writable(training.save);
  if (average > 0 && (sync != "join" || overlap == "off")) {
    throw Error("dist: --average goes with --sync join and --overlap on", Exit::usage);
  }
  if (average > 0 && !replay_source(training.computing.device).empty()) {
    throw Error("dist: --average needs weights that are trained; --device replay trains none",
                Exit::usage);
  }
  const RankSource source = find_rank({nodefile, index, server == "central"}, std::getenv);
  index = source.rank;
  addresses = source.addresses;
  return source.str();
}

}  // namespace duplex::tools
