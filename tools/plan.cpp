// duplex plan finds the best way to train a network on several machines, by simulating every way
// that there is, and says whether it pays.
#include <cstdio>

#include "core/files/output_file.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/plan_flags.h"
#include "tools/planning/answer.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/size.h"
#include "tools/text/table.h"
#include "tools/text/wrap.h"

namespace duplex::tools {
namespace {

/// The error for a way that is not there. `name` is empty where the best one was wanted.
Error no_way(const std::string& flag, const std::string& name, const SearchResult& found) {
  if (name.empty())
    return Error("plan: --file: there is no way to write whose result is that of one machine");
  for (const TooLarge& each : found.too_large)
    if (each.strategy.way() == name.substr(0, name.find('@')))
      return Error("plan: " + flag + ": " + name + " is left out, since it needs " +
                       mebibytes(each.bytes) + " MiB with " +
                       std::to_string(each.strategy.workers()) + " workers",
                   Exit::usage);
  return Error("plan: " + flag + ": there is no way '" + name + "' (plan --all lists them)",
               Exit::usage);
}

/// Writes plan.json and, where its machines are not the nodefile's in their order, a nodefile of
/// them. Returns lines for the user.
std::string write_plan(const PlanFlags& flags, const Situation& situation,
                       const SearchResult& found) {
  const Evaluation* chosen = flags.way.empty() ? found.best_exact() : found.find(flags.way);
  if (chosen == nullptr) throw no_way("--way", flags.way, found);
  const PlanFile plan = flags.plan_of(situation, *chosen, found.image_alone);
  OutputFile file(flags.file);
  file.write(text_of(plan));
  file.commit();
  std::string nodefile = flags.nodefile.empty() ? "NODEFILE" : flags.nodefile;
  bool same = static_cast<int>(plan.machines.size()) == flags.machines;
  for (std::size_t i = 0; same && i < plan.machines.size(); ++i)
    same = plan.machines[i] == static_cast<int>(i);
  // A central server is one rank, whatever its machine has.
  const auto& parallel = chosen->strategy.parallel;
  const std::size_t servers = parallel.central() ? 1 : 0;
  same = same && !flags.gives_slots() &&
         !(parallel.central() && flags.slots_of(plan.machines.front()) > 1);
  if (!same && plan.addresses) {
    nodefile = flags.nodes_path();
    OutputFile nodes(nodefile);
    for (std::size_t rank = 0; rank < plan.addresses->size(); ++rank) {
      const int slots = rank < servers ? 1 : parallel.slots_of(static_cast<int>(rank - servers));
      nodes.write((*plan.addresses)[rank] +
                  (slots > 1 ? " slots=" + std::to_string(slots) : std::string()) + "\n");
    }
    nodes.commit();
  }
  return "plan     " + flags.file + ": " + chosen->strategy.name() + "; duplex launch --plan " +
         flags.file + " --nodefile " + nodefile + " -- --datadir DIR ...\n";
}

}  // namespace

int plan(int argc, const char* const* argv) {
  CommandLine app{
      "Finds the best way to train a network on several machines: simulates every way that dist "
      "knows, and says whether it pays, and why.",
      "duplex plan"};
  PlanFlags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  flags.resolve();
  std::vector<std::string> notes;
  const Situation situation = flags.situation(notes);
  for (const std::string& note : notes) std::fprintf(stderr, "%s\n", note.c_str());

  const SearchResult found = search(situation);
  if (!flags.why.empty()) {
    const Evaluation *a = found.find(flags.why[0]), *b = found.find(flags.why[1]);
    for (const auto& [evaluation, name] : {std::pair(a, flags.why[0]), std::pair(b, flags.why[1])})
      if (evaluation == nullptr) throw no_way("--why", name, found);
    std::fputs(comparison(situation, *a, *b).c_str(), stdout);
    return 0;
  }
  const std::string written = flags.file.empty() ? "" : write_plan(flags, situation, found);
  const std::optional<BreakEven> from = break_even(situation, found);
  if (flags.output == "csv") {
    std::fputs(csv_of(situation, found).c_str(), stdout);
  } else if (flags.output == "json") {
    std::fputs(json_of(situation, found, from).c_str(), stdout);
  } else {
    std::printf(
        "%s\n%s, batch %s: t_grad %s on machine %d; t_comm %s at %s\n\n%s",
        wrap(verdict(situation, found, from) + remarks(situation, found, from)).c_str(),
        situation.scenario.model.title().c_str(), grouped(situation.scenario.batch).c_str(),
        duration_text(found.image_alone * static_cast<double>(situation.scenario.batch)).c_str(),
        found.alone, duration_text(situation.scenario.costs.comm).c_str(),
        rate_text(situation.scenario.rate).c_str(), table_of(situation, found, flags.all).c_str());
  }
  std::fputs(written.c_str(), flags.output == "report" ? stdout : stderr);
  return 0;
}

}  // namespace duplex::tools
