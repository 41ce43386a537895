// How a rank begins from a checkpoint, and ends with one.
#include "core/error.h"
#include "layers/checkpoint.h"
#include "net/rendezvous/link_watch.h"
#include "net/rendezvous/resume.h"
#include "tools/checkpoint/statistics_report.h"
#include "tools/checkpoint/stop_signals.h"
#include "tools/dist/rank.h"
#include "tools/dist/rank_copies.h"
#include "tools/run_directory/run_files.h"

namespace duplex::tools {

/// A checkpoint belongs to a training of the same settings, from the same weights.
void Rank::prepare_checkpoints() {
  const net::Topology& topology = spec_.mesh.topology;
  const std::string settings =
      resumable_settings(spec_.training, setup_,
                         ", " + spec_.parallel.exchange_settings() + ", start " +
                             net::short_hex(spec_.mesh.identity.start.digest));
  // In an asynchronous training no rank knows which checkpoints all others have.
  const bool async = spec_.parallel.sync == net::Sync::none;
  CheckpointFiles files(directory_->path(), spec_.rank(), topology.size, settings,
                        async ? std::vector<int>() : kept_by(spec_, spec_.rank()),
                        async ? CheckpointFiles::Removes::own : CheckpointFiles::Removes::all);
  checkpoints_ = make_checkpoints(spec_, std::move(files), host_, state_spans(), troubles_);
  if (network_) checkpoints_->add(statistics_of(*network_));
  if (cut_) checkpoints_->add(cut_->statistics_of(*part_networks_.front()));
  if (average_) checkpoints_->add(average_->state());
  if (own_updates_) checkpoints_->add(own_updates_->state());
  if (spec_.resumes()) offer_ = checkpoints_->offer();
  offer_.resumes = spec_.resumes();
  if (spec_.reshare > 0 && !spec_.resumes() && !checkpoints_->offer().points.empty())
    throw Error("dist: --reshare: " + directory_->path() +
                    " has checkpoints of another training; --resume goes on from them, or remove "
                    "them, or take another --logdir",
                Exit::usage);
}

StateSpans Rank::state_spans() {
  StateSpans spans;
  if (!cut_) {
    spans = StateSpans::of(host_);
    if (spec_.workers_keep_state() || spec_.training.ema > 0.0 ||
        statistics_count(setup_.model) > 0)
      for (const int worker : spec_.mesh.topology.workers()) spans.with_more.insert(worker);
    return spans;
  }
  const std::vector<std::size_t> statistics = cut_->statistics_by_rank();
  for (std::size_t rank = 0; rank < statistics.size(); ++rank)
    if (statistics[rank] > 0) spans.with_more.insert(static_cast<int>(rank));
  spans.spans = cut_->exchange(host_).spans();
  for (const PartSpan& each : cut_->spans()) {
    spans.places.push_back({each.whole_name(), each.first});
    spans.members.push_back(each.members);
  }
  return spans;
}

/// Begins with all other ranks, from a checkpoint that all can go on from, if there is one. Returns
/// what was trained before it.
net::ResumePoint Rank::go_on(net::Mesh& mesh, net::ExchangeSpec& exchange) {
  std::optional<net::FileSharing> sharing;
  if (checkpoints_ && spec_.resumes())
    sharing = checkpoints_->sharing(statistics_count(setup_.model) > 0 || spec_.training.ema > 0.0);
  const auto found =
      net::agree_to_begin(mesh, offer_, spec_.mesh.timeout, sharing ? &*sharing : nullptr);
  if (found && found->late) return go_on_from(*found, mesh, exchange);
  try {
    if (!spec_.resumes()) directory_->require_unused();
    if (!spec_.resumes() && events_) events_->require_new();
  } catch (...) {
    net::end_links(mesh.links(), net::reason_of(std::current_exception()));
    throw;
  }
  if (!found && checkpoints_) checkpoints_->note_begin();
  if (!spec_.resumes()) return {};
  if (!found) {
    spec_.mesh.log("there is no checkpoint yet: the training begins");
    checkpoints_->begin_anew();
    set_ledger_aside();
    forget_end();
    if (trains() && leads())
      for (const char* file : files_of_the_first_worker) directory_->set_aside(file);
    return {};
  }
  return go_on_from(*found, mesh, exchange);
}

/// The same from what the ranks have agreed on.
net::ResumePoint Rank::go_on_from(const net::ResumePoint& point, net::Mesh& mesh,
                                  net::ExchangeSpec& exchange) {
  net::ResumePoint from;
  try {
    if (checkpoints_) {
      from = checkpoints_->go_on_from(point, exchange);
    } else {
      const int number = spec_.mesh.topology.worker_number(spec_.rank());
      from = point;
      from.steps = exchange.first_step = point.positions.at(static_cast<std::size_t>(number));
    }
  } catch (...) {
    net::end_links(mesh.links(), net::reason_of(std::current_exception()));
    throw;
  }
  spec_.mesh.log(std::string(point.late ? "comes back, and " : "") + "goes on after " +
                 (checkpoints_ ? checkpoints_->extent() : std::to_string(from.steps) + " steps"));
  set_ledger_aside();
  forget_end();
  return from;
}

/// The run has not ended any more.
void Rank::forget_end() const {
  directory_->remove(rank_file(spec_.rank()));
  if (trains() && leads()) directory_->remove(summary_file);
}

void Rank::set_ledger_aside() const {
  directory_->set_aside(ledger_file(spec_.rank()));
  directory_->set_aside(traffic_file(spec_.rank()));
}

/// A signal has ended the training with a checkpoint, or a pause. Returns the exit code.
int Rank::stopped() {
  checkpoints_->flush();
  const net::CheckpointCall& call = *checkpoints_->stopped();
  if (pauses()) {
    spec_.mesh.log("pauses after " + checkpoints_->extent() + ", to share a step out anew");
    paused_ = true;
    return 0;
  }
  spec_.mesh.log("stopped by " + std::string(signal_name(call.signal)) + " after " +
                 checkpoints_->extent() + "; the same command with --resume --logdir " +
                 directory_->path() + " goes on");
  return 128 + call.signal;
}

bool Rank::pauses() const {
  return checkpoints_ && checkpoints_->stopped() &&
         checkpoints_->stopped()->signal == net::pause_mark;
}

/// The training is over, and nobody has to go on from a pause any more.
void Rank::end_checkpoints() {
  if (!checkpoints_) return;
  checkpoints_->flush();
  if (spec_.paused_after > 0 && !checkpoints_->wanted()) checkpoints_->begin_anew();
}

DistSpec Rank::after_pause() const {
  DistSpec spec = spec_;
  spec.training.logdir = directory_->path();
  spec.paused_after = checkpoints_->stopped()->steps;
  spec.trouble = troubles_.first();
  return spec;
}

}  // namespace duplex::tools
