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

}  // namespace duplex::tools
