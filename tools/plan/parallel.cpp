#include "tools/plan/parallel.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/error.h"

namespace duplex::tools {
namespace {

const char* on_off(bool on) {
  return on ? "on" : "off";
}

/// "3:2:1".
template <class Number>
std::string join(const std::vector<Number>& numbers) {
  std::string text;
  for (const Number number : numbers) text += (text.empty() ? "" : ":") + std::to_string(number);
  return text;
}

}  // namespace

const char* name_of(Factors factors) {
  return factors == Factors::off ? "off" : factors == Factors::on ? "on" : "auto";
}

Factors parse_factors(const std::string& text) {
  for (const Factors each : {Factors::off, Factors::on, Factors::automatic})
    if (text == name_of(each)) return each;
  throw Error("'" + text + "' is neither off, on nor auto", Exit::usage);
}

const std::vector<std::string>& cutting_strategies() {
  static const std::vector<std::string> names{"owt", "filter", "pipeline", "hybrid", "hypergraph"};
  return names;
}

int ParallelSpec::all_slots(int workers) const {
  int all = 0;
  for (int worker = 0; worker < workers; ++worker) all += slots_of(worker);
  return all;
}

datasets::Share ParallelSpec::share(std::int64_t batch, int worker, int workers) const {
  const int own = slots_of(worker), all_of_them = all_slots(workers);
  // The stages of a network that is cut share samples out themselves, and need not divide any.
  if (cuts() && splits() && batch < all_of_them) return {static_cast<std::uint64_t>(batch), 0, 1};
  if (shares.empty() || cuts()) {
    const auto of_slot = [&](int slot) {
      return splits() ? datasets::split_share(batch, slot, all_of_them)
                      : datasets::join_share(batch, slot, all_of_them);
    };
    const int first_slot = all_slots(worker);
    datasets::Share together = of_slot(first_slot);
    const datasets::Share last = of_slot(first_slot + own - 1);
    if (last.count != together.count)
      throw Error("the slots of worker " + std::to_string(worker) + " cannot have parts of " +
                      std::to_string(together.count) + " and " + std::to_string(last.count) +
                      " samples of a batch of " + std::to_string(batch) +
                      ": take a batch that is a multiple of the " + std::to_string(all_of_them) +
                      " slots",
                  Exit::usage);
    together.count *= own;
    return together;
  }
  // Shares count groups of samples, one for each slot, of which all workers have as many.
  if (splits() && batch % own != 0)
    throw Error("a batch of " + std::to_string(batch) + " cannot be shared out among machines of " +
                    std::to_string(own) + " slots: take a multiple of that",
                Exit::usage);
  const std::int64_t total = (splits() ? batch : batch * all_of_them) / own;
  const auto begin = shares.begin();
  const double all = std::accumulate(begin, begin + workers, 0.0);
  // A worker's share begins where the shares before it end, so that all of them are all samples.
  const auto end_of = [&](int number) {
    return std::llround(static_cast<double>(total) * std::accumulate(begin, begin + number, 0.0) /
                        all);
  };
  const std::int64_t first = end_of(worker), count = end_of(worker + 1) - first;
  if (count <= 0)
    throw Error("--share " + join(shares) + " leaves worker " + std::to_string(worker) +
                    " none of the " + std::to_string(total) +
                    " samples of a step: give it more, or leave its machine out",
                Exit::usage);
  return {static_cast<std::uint64_t>(total * own), static_cast<std::uint64_t>(first * own),
          count * own};
}

datasets::Share ParallelSpec::slot_share(std::int64_t batch, int worker, int slot,
                                         int workers) const {
  datasets::Share part = share(batch, worker, workers);
  part.count /= slots_of(worker);
  part.offset += static_cast<std::uint64_t>(slot * part.count);
  return part;
}

std::vector<std::int64_t> proportional_shares(const std::vector<double>& seconds,
                                              bool unless_alike) {
  constexpr double scale = 1000.0, alike = 1.05;
  const auto [fastest, slowest] = std::minmax_element(seconds.begin(), seconds.end());
  if (unless_alike && *slowest <= *fastest * alike) return {};
  std::vector<std::int64_t> shares;
  for (const double each : seconds)
    shares.push_back(std::max<std::int64_t>(std::llround(scale * *fastest / each), 1));
  return shares;
}

std::string ParallelSpec::share_text() const {
  return (shares.empty() ? "" : ", share " + join(shares)) +
         (slots.empty() ? "" : ", slots " + join(slots));
}

void ParallelSpec::check_shares(int workers, const std::string& command) const {
  if (!shares.empty() && shares.size() != static_cast<std::size_t>(workers))
    throw Error(command + ": --share " + join(shares) + " is for " + std::to_string(shares.size()) +
                    " workers, and there are " + std::to_string(workers),
                Exit::usage);
  if (slots.empty()) return;
  if (!takes_slots())
    throw Error(command +
                    ": slots go with --sync join and split, without --average, since their "
                    "gradients are added up: start a rank for each of them",
                Exit::usage);
  const bool differ =
      std::adjacent_find(slots.begin(), slots.end(), std::not_equal_to<>()) != slots.end();
  if (!differ || (shares.empty() && sharing == Sharing::given)) return;
  throw Error(command + ": --share goes with as many slots on each machine, not " + join(slots),
              Exit::usage);
}

std::vector<std::string> ParallelSpec::cut_flags() const {
  if (!cuts()) return {};
  std::vector<std::string> flags{"--strategy",      strategy,
                                 "--micro-batches", std::to_string(micro_batches),
                                 "--in-flight",     std::to_string(in_flight)};
  if (!stages.empty()) flags.insert(flags.end(), {"--stages", stages});
  if (factors != Factors::off) flags.insert(flags.end(), {"--factors", name_of(factors)});
  if (!shares.empty()) flags.insert(flags.end(), {"--share", join(shares)});
  return flags;
}

void ParallelSpec::check_cut(const std::string& command) const {
  if (!cuts()) return;
  const auto refuse = [&](bool given, const std::string& what) {
    if (given)
      throw Error(command + ": " + what + " does not go with --strategy " + strategy, Exit::usage);
  };
  refuse(sync == net::Sync::none, "--sync none");
  refuse(average > 0, "--average");
  refuse(!slots.empty(), "more than one slot on a machine");
  refuse(!overlap, "--overlap off");
}

std::string ParallelSpec::exchange_settings() const {
  return std::string("sync ") + net::name_of(sync) +
         (average > 0 ? ", average " + std::to_string(average) : "") + ", overlap " +
         on_off(overlap) + ", semaphore " + on_off(semaphore) + ", server " + net::name_of(server) +
         (server == net::ServerMode::central ? ""
                                             : std::string(", shards ") + net::name_of(shards)) +
         (wire == net::WireFormat() ? "" : ", wire " + wire.str()) +
         (factors == Factors::off ? "" : std::string(", factors ") + name_of(factors));
}

std::string ParallelSpec::cut_text() const {
  return (cuts() ? ", strategy " + strategy : "") + (stages.empty() ? "" : ", stages " + stages) +
         (micro_batches > 1 ? ", micro-batches " + std::to_string(micro_batches) : "") +
         (in_flight != usual_in_flight ? ", in flight " + std::to_string(in_flight) : "");
}

ParallelConfig ParallelSpec::config(const net::Topology& topology, std::int64_t batch) const {
  ParallelConfig config;
  config.ranks = topology.size;
  config.workers = static_cast<int>(topology.workers().size());
  config.server = server;
  config.sync = sync;
  config.shards = shards;
  config.overlap = overlap;
  config.semaphore = semaphore;
  config.average = average;
  config.wire = wire;
  if (factors != Factors::off) config.factors = name_of(factors);
  if (cuts() && !shares.empty())
    config.samples = shares;
  else if (!shares.empty()) {
    config.samples.emplace();
    for (int worker = 0; worker < config.workers; ++worker)
      config.samples->push_back(share(batch, worker, config.workers).count);
  }
  if (!slots.empty()) config.slots = slots;
  if (cuts()) config.strategy = strategy;
  if (cuts()) config.micro_batches = micro_batches;
  if (cuts()) config.in_flight = in_flight;
  if (!stages.empty()) config.stages = stages;
  return config;
}

}  // namespace duplex::tools
