#include "tools/flags/dist_flags.h"

#include <unistd.h>

#include <cstdlib>

#include "core/device.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "tools/flags/command_line.h"
#include "tools/launch/rank_source.h"
#include "tools/prediction/layer_times.h"

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
  parallel.add_to(app);
  app.add_option("--job", job, "name of the run; ranks of different jobs do not meet");
  app.add_flag(
      "--trace", trace,
      "write trace.json, the last steps of all ranks: computing, waiting, what crossed the "
      "wire (rank 0 writes it; ui.perfetto.dev shows it)");
  app.add_option("--trace-steps", trace_steps, "number of steps that --trace shows (default 10)")
      ->check(between(1, 100));
  wire.add_to(app);
}

net::ExchangeSpec DistFlags::exchange() const {
  net::ExchangeSpec spec;
  spec.sync = parallel.spec.sync;
  spec.shards = parallel.spec.shards;
  spec.average = parallel.spec.average > 0;
  spec.overlap = parallel.spec.overlap;
  spec.semaphore = parallel.spec.semaphore;
  spec.trace_steps = trace ? trace_steps : 0;
  spec.optimiser = training.spec;
  spec.rate = training.learning_rate();
  spec.timeout = wire.timeout();
  return spec;
}

std::string DistFlags::settings() const {
  return parallel.spec.settings() + ", " + training.settings();
}

std::string DistFlags::resolve() {
  training.resolve();
  if (training.profile) {
    throw Error("dist: --profile belongs to local, where nothing but computing is timed",
                Exit::usage);
  }
  if (!training.save.empty()) const OutputFile writable(training.save);
  parallel.resolve("dist");
  if (parallel.spec.average > 0 && training.replays()) {
    throw Error("dist: --average needs weights that are trained; --device replay trains none",
                Exit::usage);
  }
  const RankSource source = find_rank({nodefile, index, parallel.spec.central()}, std::getenv);
  index = source.rank;
  addresses = source.addresses;
  if (training.computing.threads == 0) {
    training.computing.threads =
        source.threads(usable_cores(), static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  }
  return source.str();
}

}  // namespace duplex::tools
