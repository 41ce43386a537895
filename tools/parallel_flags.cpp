#include "tools/parallel_flags.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tools/command_line.h"

namespace duplex::tools {

void ParallelFlags::add_to(CLI::App& app) {
  app.add_option(
         "--sync", sync,
         "join: one update by the mean gradient of every worker's batch (default); split: "
         "the workers share one batch (batch normalisation is over each worker's part); none: "
         "every gradient is applied as it comes")
      ->check(CLI::IsMember({"join", "split", "none"}));
  app.add_option("--average", average,
                 "workers update weights of their own and go on with the mean of them after every "
                 "so many batches")
      ->check(between(1, 1 << 30));
  app.add_option("--overlap", overlap,
                 "on: gradients leave during the backward pass, weights come during the forward "
                 "pass (default); off: receive all, compute, send all")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--semaphore", semaphore,
                 "on: one worker at a time sends to a server, and a server sends to one worker at "
                 "a time, in the order of asking (default off)")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option(
         "--server", server,
         "distributed: every rank trains and holds a share of the weights (default); central: "
         "rank 0 holds all and does not train")
      ->check(CLI::IsMember({"central", "distributed"}));
  app.add_option("--shards", shards,
                 "distributed server: even shares (default) or whole tensors (Algorithm 3.7)")
      ->check(CLI::IsMember({"even", "tensors"}));
}

void ParallelFlags::settle(const std::string& command) const {
  if (average > 0 && (sync != "join" || overlap == "off"))
    throw Error(command + ": --average goes with --sync join and --overlap on", Exit::usage);
}

datasets::Share ParallelFlags::share(std::int64_t batch, int worker, int workers) const {
  return splits() ? datasets::split_share(batch, worker, workers)
                  : datasets::join_share(batch, worker, workers);
}

net::Topology ParallelFlags::topology(int ranks) const {
  return {net::parse_server_mode(server), ranks, 0};
}

std::string ParallelFlags::settings() const {
  return "sync " + sync + (average > 0 ? ", average " + std::to_string(average) : "") +
         ", overlap " + overlap + ", semaphore " + semaphore + ", server " + server +
         (central() ? "" : ", shards " + shards);
}

void ParallelFlags::describe(nlohmann::ordered_json& config, const net::Topology& topology) const {
  config["ranks"] = topology.size;
  config["workers"] = topology.workers().size();
  config["server"] = server;
  config["sync"] = sync;
  config["shards"] = shards;
  config["overlap"] = overlap;
  config["semaphore"] = semaphore;
  config["average"] = average;
}

}  // namespace duplex::tools
