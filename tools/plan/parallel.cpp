#include "tools/plan/parallel.h"

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

ParallelConfig ParallelSpec::config(const net::Topology& topology) const {
  ParallelConfig config;
  config.ranks = topology.size;
  config.workers = static_cast<int>(topology.workers().size());
  config.server = server;
  config.sync = sync;
  config.shards = shards;
  config.overlap = overlap;
  config.semaphore = semaphore;
  config.average = average;
  return config;
}

}  // namespace duplex::tools
