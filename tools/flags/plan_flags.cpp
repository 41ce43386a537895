#include "tools/flags/plan_flags.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/device_name.h"
#include "core/files/own_files.h"
#include "datasets/dataset.h"
#include "tools/deploy/deploy.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/memory_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/launch/lost_machines.h"
#include "tools/memory/network_memory.h"
#include "tools/plan/machines_file.h"
#include "tools/run_directory/run_directory.h"
#include "tools/scenario/measured_scenario.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/size.h"
#include "tools/text/table.h"
#include "tools/text/version.h"

namespace duplex::tools {
namespace {

constexpr const char* machines_file = "machines.json";

/// Takes device, precision, layout and the links' bound over from the measurement. A flag that says
/// something else is refused.
void take_settings(const CommandLine& app, DeviceSpec& computing, WireFlags& wire,
                   const MachinesFile& file, const std::string& path) {
  const auto take = [&](const std::string& flag, std::string& own,
                        const std::optional<std::string>& measured) {
    if (!measured) return;
    if (app.count(flag) > 0 && own != *measured)
      throw Error("plan: " + path + " was measured with " + flag + " " + *measured + ": leave " +
                      flag + " " + own + " out, or measure again",
                  Exit::usage);
    own = *measured;
  };
  take("--device", computing.device, file.device);
  take("--precision", computing.precision, file.precision);
  take("--layout", computing.layout, file.layout);
  take("--link-rate", wire.link_rate, file.link_rate);
}

}  // namespace

void PlanFlags::add_to(CommandLine& app) {
  app_ = &app;
  scenario.add_to(app, "plan", "machines");
  app.add_option("--machines,--workers", machines,
                 "number of machines; a central server takes one of them (default: those of "
                 "--nodefile)")
      .check(between(2, 128));
  app.add_option(
      "--nodefile", nodefile,
      "the machines, host or host:port a line, slots=N behind it, numbered from 0; without "
      "figures of computing and links they are measured first, this one among them");
  app.add_option(
         "--slots", slots_,
         "slots of each machine: GPUs, or parts of its cores; --t-grad and --profile are of "
         "one of them (default: what the nodefile says, or 1)")
      .check(between(1, 1024));
  app.add_option("--without", without, "machines of the nodefile that are left out, as in 2 or 2,3")
      .delimiter(',')
      .check(at_least(0))
      .needs(app.flag("--nodefile"));
  app.add_option("--seconds", seconds, "seconds of computing that are measured (default 10)")
      .transform(as_seconds())
      .check(between(0.01, 3600.0));
  app.add_option("--datadir", datadir,
                 "the data set that will be trained with: what reading its images takes is "
                 "measured, too")
      .needs(app.flag("--nodefile"))
      .excludes(app.flag("--measured"));
  app.add_option("--logdir", logdir,
                 "directory for what is measured (default: runs/, named by command, net and time)");
  app.add_option("--ssh", ssh, "the program that reaches other machines (default ssh)");
  app.add_option("--deployed", deployed,
                 "the folder that launch --deploy has put this program in, on every machine "
                 "(default: machines have the same folders as this one)")
      .needs(app.flag("--nodefile"));
  app.add_option("--deployed-data", deployed_data,
                 "where the other machines have the data set (default: where --datadir says)")
      .needs(app.flag("--datadir"));
  app.add_option("--fits", fits,
                 "memory of each machine, such as 8GiB; of its GPU with --device cuda: ways that "
                 "need more are left out (default: what was measured of the one that has least)");
  add_optimiser_flags(app, optimiser, memory.optimiser, nullptr);
  add_device_flags(app, computing);
  wire.add_to(app);
  app.add_option("--file", file,
                 "write the best way there, plan.json, for launch --plan and dist --plan");
  app.add_option("--way", way,
                 "write this way instead, such as average8-distributed or join-central@3")
      .needs(app.flag("--file"));
  app.add_option("--output", output,
                 "report (default): the verdict and the best ways; csv, json: all of every way")
      .check(one_of({"report", "csv", "json"}));
  app.add_flag("--all", all, "list every way, also those that a variant makes slower");
  app.add_option("--why", why,
                 "two ways, such as join-distributed split-central@3, to compare term by term")
      .expected(2)
      .excludes(app.flag("--file"))
      .excludes(app.flag("--output"))
      .excludes(app.flag("--all"));
}

void PlanFlags::resolve() {
  scenario.resolve();
  if (const auto& file = scenario.machines()) {
    take_settings(*app_, computing, wire, *file, scenario.measured);
    nodes_.clear();
    for (const MeasuredMachine& machine : file->machines)
      nodes_.push_back(
          {net::Address::parse(machine.address, default_port), machine.slots.value_or(1)});
  }
  require_own_files("plan",
                    {{"--net", scenario.model.path()},
                     {"--nodefile", nodefile},
                     {"--profile", scenario.profile},
                     {"--measured", scenario.measured},
                     {"--datadir", datadir}},
                    {{"--file", file}, {"the nodefile of --file", nodes_path()}});
  if (!datadir.empty() && scenario.has_figures())
    throw Error(
        "plan: --datadir is for machines that are measured: leave it out, or the figures of "
        "computing and links",
        Exit::usage);
  if (!wire.link_rate.empty() && (!scenario.rate.empty() || scenario.comm))
    throw Error(
        "plan: --link-rate bounds the links, and --rate or --t-comm says what they have: "
        "give one of them",
        Exit::usage);
  if (!wire.link_rate.empty() && scenario.has_figures()) scenario.bound_links(wire.rate());
  // The network that is planned for is the one that dist will train.
  if (!datadir.empty() && scenario.model.options.classes == 0)
    scenario.model.options.classes =
        static_cast<std::int64_t>(datasets::open_dataset(datadir)->classes().size());
  if (computing.threads > 0) scenario.threads = computing.threads;
  if (measures()) scenario.refuse_measured("plan --nodefile measures");
  if (!nodefile.empty())
    nodes_ = tools::without(read_nodes(nodefile), without, "nodefile " + nodefile);
  if (slots_ > 0)
    for (Node& node : nodes_) {
      if (node.slots > 1)
        throw Error("plan: --slots " + std::to_string(slots_) + " and the slots of " +
                        (nodefile.empty() ? scenario.measured : nodefile) +
                        " say the same: leave one of them out",
                    Exit::usage);
      if (std::count_if(nodes_.begin(), nodes_.end(), [&](const Node& other) {
            return other.address.host == node.address.host;
          }) > 1)
        throw Error("plan: --slots: " + node.address.host +
                        " is in the nodefile several times: name it once, with slots=N behind it",
                    Exit::usage);
      node.slots = slots_;
    }
  const int lines = static_cast<int>(nodes_.size());
  if (machines == 0 && lines == 0)
    throw Error("plan: how many machines? Give --machines or --nodefile", Exit::usage);
  if (lines > 0 && machines > 0 && machines != lines)
    throw Error("plan: --machines " + std::to_string(machines) + ", but there are " +
                    std::to_string(lines) + " in " +
                    (nodefile.empty() ? scenario.measured : nodefile),
                Exit::usage);
  if (lines > 0) machines = lines;
  if (machines < 2)
    throw Error("plan: " + (nodefile.empty() ? scenario.measured : nodefile) +
                    " has one machine: a plan is for two at least",
                Exit::usage);
}

int PlanFlags::slots_of(int machine) const {
  return nodes_.empty() ? std::max(slots_, 1) : nodes_[static_cast<std::size_t>(machine)].slots;
}

PlanFile PlanFlags::plan_of(const Situation& situation, const Evaluation& chosen,
                            double alone) const {
  const RunConfig model = scenario.model.config(situation.scenario.model);
  const Strategy& strategy = chosen.strategy;
  const int ranks = static_cast<int>(strategy.machines.size());
  PlanFile plan;
  plan.program = program_version;
  plan.network = model.network;
  plan.title = model.title;
  plan.input = model.input;
  plan.classes = model.classes;
  plan.parameters = model.parameters;
  plan.auxiliary = model.auxiliary;
  plan.pad_shortcuts = model.pad_shortcuts;
  plan.network_file = model.network_file;
  plan.batch = situation.scenario.batch;
  plan.parallel = strategy.parallel.config(strategy.parallel.topology(ranks), plan.batch);
  plan.machines = strategy.machines;
  if (!wire.link_rate.empty()) plan.link_rate = wire.link_rate;
  take_computing(plan);
  if (!nodes_.empty()) {
    plan.addresses.emplace();
    for (const int machine : strategy.machines)
      plan.addresses->push_back(nodes_[static_cast<std::size_t>(machine)].address.str());
  }
  plan.predicted = {strategy.name(),  chosen.speedup,  chosen.image, chosen.step,
                    chosen.computing, chosen.awaiting, alone};
  return plan;
}

/// Gives the plan what computes, where that was measured or the user has said it.
void PlanFlags::take_computing(PlanFile& plan) const {
  const bool measured = measures() || scenario.machines();
  const auto known = [&](const char* flag) { return measured || app_->count(flag) > 0; };
  if (known("--device") && computing.device != "auto") plan.device = computing.device;
  if (known("--precision")) plan.precision = computing.precision;
  if (known("--layout") && computing.layout != "measured") plan.layout = computing.layout;
  if (computing.threads > 0) plan.threads = computing.threads;
}

bool PlanFlags::measures() const {
  return !nodefile.empty() && scenario.measured.empty() && !scenario.has_figures();
}

std::vector<std::string> PlanFlags::addresses() const {
  std::vector<std::string> addresses;
  for (const Node& node : nodes_) addresses.push_back(node.address.str());
  return addresses;
}

/// Gives the machines that have the program by launch --deploy the nodefile and the key.
void PlanFlags::deploy_files(ProbeSpec& spec) const {
  const Deployed target = deployed_in("--deployed", deployed);
  Cargo cargo;
  cargo.texts.push_back(deployed_file(spec.nodefile));
  if (!wire.key.empty()) cargo.texts.push_back(deployed_file(wire.key));
  Machines others{ssh, {}};
  for (const Node& node : nodes_) {
    const std::string& host = node.address.host;
    if (std::find(others.hosts.begin(), others.hosts.end(), host) == others.hosts.end() &&
        !is_here(host))
      others.hosts.push_back(host);
  }
  deploy(target, others, cargo);
  for (const DeployedFile& file : cargo.texts) spec.there[file.path] = target.path_of(file);
  spec.place = target.place();
}

/// Runs probe on all machines; returns the path of machines.json.
std::string PlanFlags::measure() const {
  RunDirectory directory(logdir, "plan", scenario.model.net, {machines_file});
  ProbeSpec spec;
  spec.nodes = addresses_of(nodes_);
  spec.nodefile = directory.path() + "/nodes";
  std::string lines;
  for (const Node& node : nodes_)
    lines += node.address.str() +
             (node.slots > 1 ? " slots=" + std::to_string(node.slots) : std::string()) + "\n";
  directory.write("nodes", lines);
  spec.nodefile = std::filesystem::absolute(spec.nodefile).string();
  spec.ssh = ssh;
  spec.has_key = !wire.key.empty();
  spec.output = directory.file(machines_file);
  spec.words = {"--net", scenario.model.net, "--seconds", std::to_string(seconds)};
  for (const std::string& word : carried(scenario.model)) spec.words.push_back(word);
  for (const char* flag :
       {"--classes", "--input", "--batch", "--device", "--threads", "--precision", "--layout",
        "--key", "--secure", "--checksum", "--congestion", "--link-rate", "--timeout"})
    if (app_->count(flag) > 0) spec.words.insert(spec.words.end(), {flag, app_->text_of(flag)});
  if (app_->count("--classes") == 0 && scenario.model.options.classes > 0)
    spec.words.insert(spec.words.end(),
                      {"--classes", std::to_string(scenario.model.options.classes)});
  for (const char* flag : {"--auxiliary", "--pad-shortcuts"})
    if (app_->count(flag) > 0) spec.words.emplace_back(flag);
  if (!datadir.empty()) {
    const std::string path = std::filesystem::absolute(datadir).string();
    spec.words.insert(spec.words.end(), {"--datadir", path});
    if (!deployed_data.empty()) spec.there[path] = deployed_data;
  }
  spec.place = same_place();
  if (!deployed.empty()) deploy_files(spec);
  probe_machines(spec);
  return spec.output;
}

Situation PlanFlags::measured_situation(const MachinesFile& file, const std::string& path,
                                        std::vector<std::string>& notes) const {
  const auto count = file.machines.size();
  for (std::size_t i = 0; i < count; ++i)
    if (file.machines[i].slots.value_or(1) != nodes_[i].slots)
      throw Error("plan: " + path + " was measured with " +
                      std::to_string(file.machines[i].slots.value_or(1)) + " slots on " +
                      file.machines[i].address + ", which has " + std::to_string(nodes_[i].slots) +
                      " here: measure again",
                  Exit::usage);
  SimulationRequest request = scenario.request(static_cast<int>(count));
  if (app_->count("--latency") == 0) request.latency = measured_latency(file);
  if (file.link_rate && app_->count("--burst") == 0) request.burst = net::TokenBucket::burst;
  Situation situation = Situation::of(measured_scenario(file, path, scenario.model.build()),
                                      std::move(request), static_cast<int>(count));
  const std::vector<int> hosts = hosts_of(file);
  const double fastest = fastest_of(file).grad;
  for (std::size_t i = 0; i < count; ++i) {
    const MeasuredMachine& machine = file.machines[i];
    const auto beside =
        std::count_if(file.machines.begin(), file.machines.end(),
                      [&](const MeasuredMachine& other) { return other.is_beside(machine); });
    situation.machines[i] = {machine.rate(), fastest / machine.grad, hosts[i],
                             is_gpu(computing)
                                 ? 0  // It is the host's.
                                 : static_cast<std::size_t>(machine.memory_bytes / beside),
                             machine.slots.value_or(1)};
  }
  situation.take_links();
  for (std::size_t i = 0; i < count; ++i) {
    const MeasuredMachine& machine = file.machines[i];
    notes.push_back("machine " + std::to_string(i) + " (" + machine.address + ", " + machine.host +
                    "): " + (machine.computes_on ? *machine.computes_on + ", " : "") + "t_grad " +
                    duration_text(machine.grad) +
                    (machine.slots ? " on each of " + std::to_string(*machine.slots) + " slots"
                                   : std::string()) +
                    ", link " + rate_text(situation.machines[i].rate) + ", owner " +
                    fixed(machine.owner_rate * 1e-9, 2) + " GB/s" +
                    (machine.sample_processor
                         ? ", reading " + duration_text(*machine.sample_processor) + " an image"
                         : std::string()));
  }
  return situation;
}

/// Has the situation tell what memory a strategy needs.
void PlanFlags::ask_for_memory(Situation& situation) const {
  if (!fits.empty()) situation.memory_limit = parse_size(fits);
  MemorySpec spec = memory;
  spec.optimiser = checked_optimiser("plan", optimiser, spec.optimiser);
  spec.computing = computing;
  if (duplex::is_gpu(computing.device))
    gpu_of(computing.device);  // It throws where that names none.
  if (spec.computing.threads == 0) spec.computing.threads = situation.scenario.threads;
  spec.batch = situation.scenario.batch;
  spec.gpu_bytes = situation.memory_limit;
  const auto training = std::make_shared<TrainingMemory>(situation.scenario.model, spec);
  // A machine with slots trains alone as a single rank does.
  ParallelSpec alone;
  int most = 1;
  for (const Machine& machine : situation.machines) most = std::max(most, machine.slots);
  if (most > 1) alone.slots = {most};
  situation.memory = [training, alone, batch = spec.batch](const Strategy& strategy) {
    if (strategy.machines.empty() && alone.slots.empty())
      return training->alone(batch).tight().sum();
    if (strategy.machines.empty()) return training->most(alone, 1);
    return training->most(strategy.parallel, strategy.workers());
  };
}

Situation PlanFlags::situation(std::vector<std::string>& notes) {
  const std::string path = measures() ? measure() : scenario.measured;
  Situation situation =
      path.empty() ? Situation::of(scenario.scenario(notes), scenario.request(machines), machines)
                   : measured_situation(machines_at(scenario.machines() ? *scenario.machines()
                                                                        : read_machines(path),
                                                    path, addresses()),
                                        path, notes);
  for (int machine = 0; machine < machines; ++machine)
    situation.machines[static_cast<std::size_t>(machine)].slots = slots_of(machine);
  if (!fits.empty() || situation.memory_of({}) > 0)
    ask_for_memory(situation);
  else if (app_->count("--optimizer") + app_->count("--momentum") > 0)
    throw Error("plan: --optimizer and --momentum count for memory: give --fits, too", Exit::usage);
  return situation;
}

}  // namespace duplex::tools
