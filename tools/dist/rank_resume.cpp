// How a rank begins from a checkpoint, and ends with one.
#include "core/error.h"
#include "layers/checkpoint.h"
#include "net/rendezvous/link_watch.h"
#include "net/rendezvous/resume.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/dist/rank.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/table.h"

namespace duplex::tools {

/// A checkpoint belongs to a training of the same settings, from the same weights, on as many
/// ranks.
void Rank::prepare_checkpoints() {
  const net::Topology& topology = spec_.mesh.topology;
  const std::string settings = resumable_settings(
      spec_.training, setup_,
      ", " + spec_.parallel.settings() + ", ranks " + std::to_string(topology.size) + ", start " +
          net::short_hex(spec_.mesh.identity.start.digest));
  checkpoints_.emplace(spec_, CheckpointFiles(directory_->path(), spec_.rank(), settings), host_,
                       troubles_);
  if (network_) checkpoints_->add(statistics_of(*network_));
  if (own_updates_) checkpoints_->add(own_updates_->state());
  if (spec_.training.resume) offer_ = checkpoints_->offer();
}

/// Begins with all other ranks, from a checkpoint that all have, if there is one. Returns the steps
/// that were trained before it; 0: there is none.
std::uint64_t Rank::go_on(net::Mesh& mesh, net::ExchangeSpec& exchange) {
  const auto found = net::agree_to_begin(mesh, offer_, spec_.mesh.timeout);
  if (!found && checkpoints_) checkpoints_->note_begin();
  if (!spec_.training.resume) return 0;
  if (!found) {
    spec_.mesh.log("there is no checkpoint yet: the training begins");
    checkpoints_->begin_anew();
    directory_->set_aside(ledger_file(spec_.rank()));
    if (trains() && leads())
      for (const char* file : {metrics_file, accuracy_file}) directory_->set_aside(file);
    return 0;
  }
  try {
    checkpoints_->go_on_from(*found, exchange);
  } catch (...) {
    net::end_links(mesh.links(), net::reason_of(std::current_exception()));
    throw;
  }
  spec_.mesh.log("goes on after " + grouped(static_cast<std::int64_t>(*found)) + " steps");
  directory_->set_aside(ledger_file(spec_.rank()));
  directory_->remove(rank_file(spec_.rank()));  // The run has not ended any more.
  if (trains() && leads()) directory_->remove(summary_file);
  return *found;
}

/// A signal has ended the training with a checkpoint. Returns the exit code.
int Rank::stopped() {
  checkpoints_->settle();
  const net::CheckpointCall& call = *checkpoints_->stopped();
  spec_.mesh.log("stopped by " + std::string(signal_name(call.signal)) + " after " +
                 grouped(static_cast<std::int64_t>(call.steps)) +
                 " steps; the same command with --resume --logdir " + directory_->path() +
                 " goes on");
  return 128 + call.signal;
}

}  // namespace duplex::tools
