#include "tools/flags/dist_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/device.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/own_files.h"
#include "tools/flags/command_line.h"
#include "tools/flags/ledger_flag.h"
#include "tools/flags/parallel_flags.h"
#include "tools/plan/plan_file.h"
#include "tools/slots/slot_places.h"
#include "tools/text/say.h"

namespace duplex::tools {
namespace {

/// Throws Error(Exit::usage) for what cannot be done right by ranks that train in this way.
void check_recipe(const TrainingSpec& training, const ParallelSpec& parallel) {
  const auto refuse = [](const std::string& why) { throw Error("dist: " + why, Exit::usage); };
  if (training.optimiser.clip_norm > 0.0F)
    refuse(
        "--clip-norm needs the mean gradient of all weights before the first is updated, and "
        "owners update each share as it comes: use --clip-value, or duplex local --accumulate");
  if (training.ema == 0.0) return;
  if (parallel.sync == net::Sync::none)
    refuse(
        "--ema averages the weights after every update, and with --sync none no worker gets them "
        "after each: use --sync join or split");
  if (parallel.average > 0)
    refuse(
        "--ema averages the weights after every update, and with --average each worker has its own "
        "until the next mean: leave one of them out");
  if (!net::is_exact(parallel.wire.weights))
    refuse(
        "--ema would average weights that --wire rounds: use --wire lossless, or round gradients "
        "alone, as in gradients:bf16");
}

}  // namespace

void DistFlags::add_to(CommandLine& app) {
  app_ = &app;
  training.add_to(app);
  app.flag("--net").required(false);
  app.add_option("--plan", plan,
                 "plan.json of duplex plan: network, batch and how the workers train together are "
                 "its own; the nodefile has its machines in its order");
  app.add_option(
      "--nodefile", nodefile,
      "the machines, host or host:port a line, slots=N behind it, in the order of the ranks "
      "(default: the "
      "hosts of srun, or this machine; with a central server, rank 0 at MASTER_ADDR)");
  app.add_option("--index", index,
                 "this process's rank: its line in the nodefile, from 0 (default: what srun or "
                 "mpirun says, or RANK of WORLD_SIZE)")
      .check(at_least(0));
  app.add_option("--slots", slots,
                 "GPUs, or parts of its cores, on which each worker trains a batch of its own; "
                 "their gradients are added up before any leaves the machine (default: what the "
                 "nodefile says, or 1)")
      .check(between(1, 1024));
  app.add_option(
         "--without", without,
         "ranks of the nodefile that are left out, as in 2 or 2,3, since their machines are "
         "lost; --index counts the others")
      .delimiter(',')
      .check(at_least(0));
  add_parallel_flags(app, parallel);
  add_cut_flags(app, parallel);
  app.add_option("--reshare", reshare,
                 "with --share speeds or auto: after every so many epochs the ranks pause with a "
                 "checkpoint and share the samples of a step out anew, by how fast they have been")
      .check(between(1, 1 << 30));
  app.add_option("--job", job, "name of the run; ranks of different jobs do not meet");
  app.add_flag(
      "--trace", trace,
      "write trace.json, the last steps of all ranks: computing, waiting, what crossed the "
      "wire (rank 0 writes it; ui.perfetto.dev shows it)");
  app.add_option("--factor-rate", factor_rate,
                 "GFLOP/s at which a replay with --factors waits for the multiplications (default: "
                 "what --threads have, as measured at the start)")
      .check(between(0.0, 1e9));
  app.add_option("--trace-steps", trace_steps,
                 "steps that --trace shows; with --average, averagings (default 10)")
      .check(between(1, 100));
  add_ledger_flag(app, ledger);
  app.add_option("--launch-display", launch_display, "the terminal that launch has").hidden();
  app.add_option("--launch-nodefile", launch_nodefile,
                 "the nodefile that launch was given, where its plan made another one of it")
      .hidden();
  wire.add_to(app);
}

/// What the plan says counts. A flag may say the same, and nothing else.
void DistFlags::take_plan() {
  const PlanFile file = read_plan(plan);
  for (const auto& [flag, value] : file.flags()) {
    if (app_->count(flag) == 0) continue;
    const std::string given = app_->text_of(flag);
    if (given != value)
      throw Error("dist: " + flag + " " + given + " contradicts the plan " + plan + ", which has " +
                      value + ": leave the flag out, or make another plan",
                  Exit::usage);
  }
  for (const char* flag : {"--share", "--auxiliary", "--pad-shortcuts", "--input"})
    if (app_->count(flag) > 0)
      throw Error("dist: " + std::string(flag) + " is given by the plan " + plan, Exit::usage);
  for (const auto& [flag, has] : {std::pair("--average", file.parallel.average > 0),
                                  std::pair("--stages", file.parallel.stages.has_value()),
                                  std::pair("--micro-batches", file.parallel.strategy.has_value()),
                                  std::pair("--in-flight", file.parallel.strategy.has_value())})
    if (app_->count(flag) > 0 && !has)
      throw Error(
          "dist: " + std::string(flag) + " contradicts the plan " + plan + ", which has none",
          Exit::usage);
  ModelSpec& model = training.spec.model;
  model.take_kept(file.network, file.network_file, plan);
  model.options.classes = file.classes;
  model.set_input(file.input);
  model.options.auxiliary = file.auxiliary;
  model.options.zero_padded_shortcuts = file.pad_shortcuts;
  training.spec.batch = file.batch;
  parallel = file.parallel_spec();
  if (file.link_rate) wire.link_rate = *file.link_rate;
  DeviceSpec& computing = training.spec.computing;
  if (file.device) computing.device = *file.device;
  if (file.precision) computing.precision = *file.precision;
  if (file.layout) computing.layout = *file.layout;
  if (file.threads) computing.threads = *file.threads;
  predicted_ = file.predicted;
  planned_ = {plan, file.title, file.input, file.parameters};
}

std::string DistFlags::resolve() {
  if (!plan.empty()) take_plan();
  if (training.spec.model.net.empty())
    throw Error("dist: --net is required, or --plan", Exit::usage);
  training.resolve();
  if (launched() && !training.spec.quiet) training.spec.display = Display::launched(launch_display);
  check_parallel_flags(parallel, "dist");
  check_cut_flags(parallel, "dist");
  check_recipe(training.spec, parallel);
  if (reshare > 0 && parallel.cuts())
    throw Error("dist: --reshare does not go with --strategy " + parallel.strategy, Exit::usage);
  if (reshare > 0 && parallel.sharing == Sharing::given)
    throw Error("dist: --reshare goes with --share speeds or auto", Exit::usage);
  if (factor_rate > 0.0 && !training.spec.replays())
    throw Error("dist: --factor-rate is for --device replay; what computes takes the time it takes",
                Exit::usage);
  if (reshare > 0 && training.spec.replays())
    throw Error(
        "dist: --reshare needs computing; --device replay has none to speed up or slow down",
        Exit::usage);
  if (parallel.average > 0 && training.spec.replays()) {
    throw Error("dist: --average needs weights that are trained; --device replay trains none",
                Exit::usage);
  }
  const RankSource source =
      find_rank({nodefile, index, parallel.central(), without, takes_slots(), slots}, std::getenv);
  index = source.rank;
  addresses = source.addresses;
  // A machine that is left out makes another run than the plan was for.
  if (!plan.empty() && without.empty()) {
    std::vector<std::string> all;
    for (const net::Address& address : addresses) all.push_back(address.str());
    check_machines(read_plan(plan), plan, all, "dist");
  }
  const int servers = parallel.central() ? 1 : 0;
  take_slots(source);
  // Shares are those of the nodefile's workers.
  parallel.check_shares(static_cast<int>(addresses.size() + without.size()) - servers, "dist");
  std::sort(without.rbegin(), without.rend());
  if (!parallel.shares.empty())
    for (const int rank : without)  // Without the server, the first worker takes its place.
      parallel.shares.erase(parallel.shares.begin() + std::max(rank - servers, 0));
  require_own_files("dist", {{"--plan", plan}, {"--nodefile", nodefile}, {"--key", wire.key}},
                    {{"--save", training.spec.save}});
  const bool leads =
      parallel.topology(static_cast<int>(addresses.size())).worker_number(index) == 0;
  if (leads && !training.spec.save.empty()) const OutputFile writable(training.spec.save);
  if (training.spec.computing.threads == 0) {
    training.spec.computing.threads =
        source.threads(usable_cores(), static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  }
  return source.str();
}

bool DistFlags::takes_slots() const {
  return plan.empty() ? parallel.takes_slots() : read_plan(plan).parallel.slots.has_value();
}

/// Takes the slots of the workers, and for this rank's the GPUs behind those of other ranks.
void DistFlags::take_slots(const RankSource& source) {
  std::vector<int> found;
  if (std::any_of(source.slots.begin(), source.slots.end(), [](int each) { return each > 1; }))
    found.assign(source.slots.begin() + (parallel.central() ? 1 : 0), source.slots.end());
  if (!plan.empty() && without.empty() && found != parallel.slots)
    throw Error("dist: the plan " + plan +
                    " is for workers with other slots than these machines "
                    "have: make a plan for these, or give the nodefile that it is for",
                Exit::usage);
  parallel.slots = found;
  slots_here_ = source.computing_here;
  slots_before_ = source.computing_before;
  // A launcher may have given this process cores of its own.
  if (source.has_own_cores(usable_cores(), static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)))) {
    slots_here_ = source.slots[static_cast<std::size_t>(source.rank)];
    slots_before_ = 0;
  }
  std::string& device = training.spec.computing.device;
  device = device_behind(device, source.computing_before);
}

DistSpec DistFlags::spec() const {
  DistSpec spec;
  spec.training = training.spec;
  spec.parallel = parallel;
  spec.trace_steps = trace ? trace_steps : 0;
  spec.ledger = ledger;
  spec.reshare = reshare;
  spec.factor_rate = factor_rate * 1e9;
  spec.slots_here = slots_here_;
  spec.slots_before = slots_before_;
  if (without.empty()) spec.predicted = predicted_;
  spec.planned = planned_;
  net::MeshSpec& mesh = spec.mesh;
  mesh.addresses = addresses;
  mesh.topology = parallel.topology(static_cast<int>(addresses.size()));
  if (parallel.central() && addresses.size() < 2)
    throw Error("--server central takes two ranks at least: the server and a worker", Exit::usage);
  mesh.rank = index;
  mesh.identity.job = job;
  wire.apply_to(mesh);
  mesh.warning = [rank = index](const std::string& line) {
    say("rank " + std::to_string(rank) + ": " + line);
  };
  mesh.log = training.spec.quiet ? [](const std::string&) {} : mesh.warning;
  return spec;
}

}  // namespace duplex::tools
