#include "tools/flags/parallel_flags.h"

#include "core/error.h"
#include "tools/flags/command_line.h"

namespace duplex::tools {

void add_parallel_flags(CLI::App& app, ParallelSpec& spec) {
  add_choice(app, "--sync", {"join", "split", "none"},
             "join: one update by the mean gradient of every worker's batch (default); split: the "
             "workers share one batch (batch normalisation is over each worker's part); none: "
             "every gradient is applied as it comes",
             [&spec](const std::string& word) { spec.sync = net::parse_sync(word); });
  app.add_option("--average", spec.average,
                 "workers update weights of their own and go on with the mean of them after every "
                 "so many batches")
      ->check(between(1, 1 << 30));
  add_choice(app, "--overlap", {"on", "off"},
             "on: gradients leave during the backward pass, weights come during the forward pass "
             "(default); off: receive all, compute, send all",
             [&spec](const std::string& word) { spec.overlap = word == "on"; });
  add_choice(app, "--semaphore", {"on", "off"},
             "on: one worker at a time sends to a server, and a server sends to one worker at a "
             "time, in the order of asking (default off)",
             [&spec](const std::string& word) { spec.semaphore = word == "on"; });
  add_choice(app, "--server", {"central", "distributed"},
             "distributed: every rank trains and holds a share of the weights (default); central: "
             "rank 0 holds all and does not train",
             [&spec](const std::string& word) { spec.server = net::parse_server_mode(word); });
  add_choice(app, "--shards", {"even", "tensors"},
             "distributed server: even shares (default) or whole tensors (Algorithm 3.7)",
             [&spec](const std::string& word) { spec.shards = net::parse_shards(word); });
}

void check_parallel_flags(const ParallelSpec& spec, const std::string& command) {
  if (spec.average > 0 && (spec.sync != net::Sync::join || !spec.overlap))
    throw Error(command + ": --average goes with --sync join and --overlap on", Exit::usage);
}

}  // namespace duplex::tools
