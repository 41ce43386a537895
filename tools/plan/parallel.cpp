#include "tools/plan/parallel.h"

#include <nlohmann/json.hpp>

namespace duplex::tools {
namespace {

const char* on_off(bool on) {
  return on ? "on" : "off";
}

}  // namespace

datasets::Share ParallelSpec::share(std::int64_t batch, int worker, int workers) const {
  return splits() ? datasets::split_share(batch, worker, workers)
                  : datasets::join_share(batch, worker, workers);
}

std::string ParallelSpec::settings() const {
  return std::string("sync ") + net::name_of(sync) +
         (average > 0 ? ", average " + std::to_string(average) : "") + ", overlap " +
         on_off(overlap) + ", semaphore " + on_off(semaphore) + ", server " + net::name_of(server) +
         (central() ? "" : std::string(", shards ") + net::name_of(shards));
}

void ParallelSpec::describe(nlohmann::ordered_json& config, const net::Topology& topology) const {
  config["ranks"] = topology.size;
  config["workers"] = topology.workers().size();
  config["server"] = net::name_of(server);
  config["sync"] = net::name_of(sync);
  config["shards"] = net::name_of(shards);
  config["overlap"] = on_off(overlap);
  config["semaphore"] = on_off(semaphore);
  config["average"] = average;
}

}  // namespace duplex::tools
