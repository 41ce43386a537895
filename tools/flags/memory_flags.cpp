#include "tools/flags/memory_flags.h"

#include "core/device_name.h"
#include "core/error.h"
#include "net/topology/topology.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/parallel_flags.h"
#include "tools/text/size.h"

namespace duplex::tools {

void add_optimiser_flags(CommandLine& app, std::string& kind, OptimiserSpec& spec,
                         const Flag* with) {
  const Flag options[] = {
      app.add_option("--optimizer", kind, "sgd or adam (default sgd)")
          .check(one_of({"sgd", "adam"})),
      app.add_option("--momentum", spec.momentum, "sgd (default 0)").check(between(0.0, 1.0))};
  for (const Flag& option : options)
    if (with != nullptr) option.needs(*with);
}

OptimiserSpec checked_optimiser(const std::string& command, const std::string& kind,
                                OptimiserSpec spec) {
  if (kind == "adam") spec.kind = OptimiserKind::adam;
  if (spec.kind == OptimiserKind::adam && spec.momentum != 0.0F)
    throw Error(command + ": --momentum belongs to sgd; adam has its own", Exit::usage);
  return spec;
}

void MemoryFlags::add_to(CommandLine& app) {
  MemorySpec& memory = spec.memory;
  const std::size_t before = app.flags().size();
  const Flag wants = app.add_flag(
      "--memory", wanted,
      "the memory that training takes: alone, on a worker, on one that owns weights, on a central "
      "server, or with --strategy on ranks that have a part each; without the data set's, where "
      "that lies in memory (IDX files)");
  app.add_option("--batch", memory.batch, "images a batch (default 32)")
      .check(between(1, most_images));
  add_optimiser_flags(app, optimiser_, memory.optimiser, &wants);
  app.add_option("--workers", memory.workers, "workers that train together (default 2)")
      .check(between(1, net::most_ranks - 1));
  app.add_option("--slots", slots_, "slots of each worker, as dist has them (default 1)")
      .check(between(1, 1024));
  app.add_flag("--accuracy", memory.tests, "the network is tested, too, on images of its own");
  app.add_flag("--checkpoints", memory.checkpoints,
               "checkpoints are written while the training goes on (--checkpoint-every of dist)");
  app.add_flag("--ema", memory.averages, "a moving average of the weights is kept");
  app.add_option("--fits", fits_,
                 "memory, such as 8GiB: of the GPU with --device cuda, else of the machine; which "
                 "is the largest batch that fits?");
  add_device_flags(app, memory.computing);
  add_parallel_flags(app, memory.parallel);
  add_cut_flags(app, memory.parallel);
  const auto options = app.flags();
  for (std::size_t i = before; i < options.size(); ++i)
    if (options[i] != wants) options[i].needs(wants);
}

void MemoryFlags::resolve(const CommandLine& app) {
  MemorySpec& memory = spec.memory;
  memory.optimiser = checked_optimiser("nets", optimiser_, memory.optimiser);
  check_parallel_flags(memory.parallel, "nets");
  check_cut_flags(memory.parallel, "nets");
  memory.parallel.check_cut("nets");
  if (memory.parallel.cuts() && memory.averages)
    throw Error("nets: --ema does not go with --strategy " + memory.parallel.strategy, Exit::usage);
  if (memory.parallel.cuts() && !fits_.empty())
    throw Error("nets: --fits does not go with --strategy " + memory.parallel.strategy +
                    ": plan --fits finds a cut that fits",
                Exit::usage);
  if (slots_ > 1) memory.parallel.slots.assign(static_cast<std::size_t>(memory.workers), slots_);
  memory.parallel.check_shares(memory.workers, "nets");
  if (memory.parallel.sharing != Sharing::given)
    throw Error("nets: --share: no speeds are measured here; write numbers, as in 3:2:1",
                Exit::usage);
  if (duplex::is_gpu(memory.computing.device)) gpu_of(memory.computing.device);  // It may throw.
  if (!fits_.empty()) spec.limit = parse_size(fits_);
  memory.gpu_bytes = spec.limit.value_or(0);
  spec.servers = {net::ServerMode::distributed, net::ServerMode::central};
  if (app.count("--server") > 0) spec.servers = {memory.parallel.server};
}

std::string MemoryFlags::text() const {
  const MemorySpec& memory = spec.memory;
  std::string text = memory.optimiser.kind == OptimiserKind::adam ? "adam"
                     : memory.optimiser.momentum != 0.0F          ? "sgd with momentum"
                                                                  : "sgd";
  text += ", " + std::to_string(memory.workers) + (memory.workers == 1 ? " worker" : " workers") +
          (slots_ > 1 ? " with " + std::to_string(slots_) + " slots" : "") + ", sync " +
          net::name_of(memory.parallel.sync);
  if (memory.parallel.average > 0) text += ", averaging";
  if (memory.averages) text += ", moving average";
  if (memory.parallel.factors != Factors::off)
    text += std::string(", factors ") + name_of(memory.parallel.factors);
  text += memory.parallel.cut_text();
  if (memory.parallel.cuts()) text += memory.parallel.share_text();
  return text;
}

}  // namespace duplex::tools
