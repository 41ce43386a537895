#include "tools/planning/situation.h"

#include <algorithm>

namespace duplex::tools {
namespace {

/// Machines whose speeds differ by less are taken for equal.
constexpr double alike = 0.02;

}  // namespace

Situation Situation::of(Scenario scenario, SimulationRequest request, int machines) {
  Situation situation{std::move(scenario), std::move(request), {}, {}, false, {}, 0};
  for (int machine = 0; machine < machines; ++machine)
    situation.machines.push_back({situation.scenario.rate, 1.0, machine});
  situation.take_links();
  situation.straggler = straggler_factor(situation.request.stragglers, situation.request.seed);
  situation.varies =
      std::any_of(situation.request.stragglers.begin(), situation.request.stragglers.end(),
                  [](const Straggler& each) { return each.varies(); });
  return situation;
}

void Situation::take_links() {
  for (const auto& [these, rate] : request.links)
    for (int machine = these.first; machine <= these.last; ++machine)
      machines[static_cast<std::size_t>(machine)].rate = rate;
}

std::size_t Situation::memory_of(const Strategy& strategy) const {
  if (memory_limit > 0) return memory_limit;
  std::size_t least = 0, most = 0;
  for (const Machine& machine : machines) most = std::max(most, machine.memory);
  for (const int number : strategy.machines) {
    const std::size_t its = machines[static_cast<std::size_t>(number)].memory;
    if (its > 0 && (least == 0 || its < least)) least = its;
  }
  return strategy.machines.empty() ? most : least;
}

std::size_t Situation::lacking(const Strategy& strategy) const {
  if (!memory) return 0;
  const std::size_t needs = memory(strategy), has = memory_of(strategy);
  return has > 0 && needs > has ? needs - has : 0;
}

double Situation::slowness(int machine) const {
  const double speed = machines[static_cast<std::size_t>(machine)].speed;
  if (!straggler) return 1.0 / speed;
  return (varies ? mean_factor(straggler, machine) : straggler(machine, 0)) / speed;
}

bool Situation::is_uneven() const {
  const auto differ = [](double a, double b) {
    return a > b * (1.0 + alike) || b > a * (1.0 + alike);
  };
  for (std::size_t i = 1; i < machines.size(); ++i)
    if (differ(machines[i].rate, machines[0].rate) ||
        differ(slowness(static_cast<int>(i)), slowness(0)) ||
        machines[i].slots != machines[0].slots)
      return true;
  return false;
}

std::optional<ParallelSpec> Situation::on(ParallelSpec parallel,
                                          const std::vector<int>& ranks) const {
  std::vector<int> slots;
  for (std::size_t rank = parallel.central() ? 1 : 0; rank < ranks.size(); ++rank)
    slots.push_back(machines[static_cast<std::size_t>(ranks[rank])].slots);
  if (std::all_of(slots.begin(), slots.end(), [](int each) { return each == 1; })) return parallel;
  if (!parallel.takes_slots()) return std::nullopt;
  parallel.slots = std::move(slots);
  return parallel;
}

simulation::Spec Situation::spec_of(const Strategy& strategy, std::uint64_t steps) const {
  SimulationRequest own = request;
  own.parallel = strategy.parallel;
  own.workers = strategy.workers();
  own.links.clear();
  own.stragglers.clear();
  own.batches = static_cast<std::int64_t>(steps) * own.parallel.batches_a_step(own.workers);
  simulation::Spec spec = tools::spec_of(own, scenario, own.workers, cuts.get());
  if (!spec.cores.empty()) {
    int hosts = 0;
    for (std::size_t rank = 0; rank < strategy.machines.size(); ++rank) {
      spec.machine_of[rank] = machines[static_cast<std::size_t>(strategy.machines[rank])].host;
      hosts = std::max(hosts, spec.machine_of[rank] + 1);
    }
    spec.cores.assign(static_cast<std::size_t>(hosts), scenario.cores);
  }
  bool uniform = !straggler;
  for (std::size_t rank = 0; rank < strategy.machines.size(); ++rank) {
    const Machine& machine = machines[static_cast<std::size_t>(strategy.machines[rank])];
    spec.rates[rank] = machine.rate;
    uniform = uniform && machine.speed == 1.0;
  }
  if (!uniform)
    spec.straggler_factor = [this, ranks = strategy.machines](int rank, std::uint64_t step) {
      const int machine = ranks[static_cast<std::size_t>(rank)];
      const double factor = straggler ? straggler(machine, step) : 1.0;
      return factor / machines[static_cast<std::size_t>(machine)].speed;
    };
  return spec;
}

}  // namespace duplex::tools
