#include "tools/flags/plan_flags.h"

#include "tools/flags/command_line.h"
#include "tools/launch/nodefile.h"
#include "tools/text/version.h"

namespace duplex::tools {

void PlanFlags::add_to(CLI::App& app) {
  scenario.add_to(app, "plan", "machines");
  app.add_option("--machines,--workers", machines,
                 "number of machines; a central server takes one of them (default: those of "
                 "--nodefile)")
      ->check(between(2, 128));
  app.add_option("--nodefile", nodefile,
                 "the machines, host, host:port or host slots=N a line, for --file; they are "
                 "numbered from 0");
  app.add_option("--file", file,
                 "write the best way there, plan.json, for launch --plan and dist --plan");
  app.add_option("--way", way,
                 "write this way instead, such as average8-distributed or join-central@3")
      ->needs("--file");
  app.add_option("--output", output,
                 "report (default): the verdict and the best ways; csv, json: all of every way")
      ->check(CLI::IsMember({"report", "csv", "json"}));
  app.add_flag("--all", all, "list every way, also those that a variant makes slower");
  app.add_option("--why", why,
                 "two ways, such as join-distributed split-central@3, to compare term by term")
      ->expected(2);
}

void PlanFlags::resolve() {
  scenario.resolve();
  if (!nodefile.empty()) nodes_ = read_nodefile(nodefile);
  const int lines = static_cast<int>(nodes_.size());
  if (machines == 0 && lines == 0)
    throw Error("plan: how many machines? Give --machines or --nodefile", Exit::usage);
  if (lines > 0 && machines > 0 && machines != lines)
    throw Error("plan: --machines " + std::to_string(machines) + ", but " + nodefile + " has " +
                    std::to_string(lines),
                Exit::usage);
  if (lines > 0) machines = lines;
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
  plan.batch = situation.scenario.batch;
  plan.parallel = strategy.parallel.config(strategy.parallel.topology(ranks), plan.batch);
  plan.machines = strategy.machines;
  if (!nodes_.empty()) {
    plan.addresses.emplace();
    for (const int machine : strategy.machines)
      plan.addresses->push_back(nodes_[static_cast<std::size_t>(machine)].str());
  }
  plan.predicted = {strategy.name(),  chosen.speedup,  chosen.image, chosen.step,
                    chosen.computing, chosen.awaiting, alone};
  return plan;
}

Situation PlanFlags::situation(std::vector<std::string>& notes) const {
  return Situation::of(scenario.scenario(notes), scenario.request(machines), machines);
}

}  // namespace duplex::tools
