#include "tools/simulation/simulation.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tools/simulation/parts.h"
#include "tools/simulation/workers.h"

namespace duplex::tools::simulation {
namespace {

class Run {
 public:
  Run(const Spec& spec, Recorder* recorder)
      : spec_(spec),
        map_(spec.topology.shard_map(
            spec.counts, spec.shards, spec.chunk_bytes,
            spec.cut ? spec.cut->members : std::vector<std::vector<int>>())),
        processors_(spec),
        wire_(spec, map_, event_queue_, processors_, recorder, ends()),
        workers_(spec, map_, event_queue_, processors_, wire_, recorder),
        parts_(spec, map_, event_queue_, processors_, wire_, recorder),
        factors_(spec, map_, event_queue_, processors_, wire_, recorder,
                 [this](int worker, std::size_t layer) {
                   spec_.cut ? parts_.layer_here(worker, layer)
                             : workers_.layer_here(worker, layer);
                 }),
        servers_(spec, map_, event_queue_, processors_, wire_, recorder,
                 [this](int worker, std::size_t chunk) { weights_here(worker, chunk); }) {
    workers_.serve_by(servers_, factors_);
    parts_.serve_by(servers_, factors_);
    for (const Loss& loss : spec.losses)
      event_queue_.put(loss.at, EventQueue::Kind::loss, static_cast<std::uint32_t>(loss.rank));
  }

  Outcome run() {
    servers_.publish_initial();
    workers_.begin();
    parts_.begin();
    while (!(workers_.all_ended() && parts_.all_ended()) && !outcome_.failure) {
      wire_.flush();
      wire_.share();
      const double first = std::min(event_queue_.next(), wire_.next());
      if (!std::isfinite(first))
        throw Error("simulate: nothing moves any more after " + std::to_string(event_queue_.now()) +
                    " s; this is a fault of the simulation");
      // Events within the moment happen at their own times, but share the links after it.
      for (double next = first; next <= first + spec_.resolution && !outcome_.failure;
           next = std::min(event_queue_.next(), wire_.next())) {
        event_queue_.advance_to(next);
        if (wire_.next() <= event_queue_.next())
          wire_.step();
        else
          act_on(event_queue_.take());
        wire_.flush();
      }
    }
    outcome_.ended = event_queue_.now();
    outcome_.trained = std::max(servers_.last_update(), factors_.last_update());
    outcome_.staleness = servers_.staleness();
    outcome_.stragglers = servers_.stragglers();
    outcome_.frames = wire_.frames();
    outcome_.sharings = wire_.sharings();
    for (std::size_t worker = 0; worker < workers(); ++worker)
      outcome_.steps.push_back(spec_.cut ? parts_.steps(worker) : workers_.steps(worker));
    return std::move(outcome_);
  }

 private:
  std::size_t workers() const { return spec_.topology.workers().size(); }

  int worker_of(int rank) const { return spec_.topology.worker_number(rank); }

  Wire::Ends ends() {
    return {
        [this](int from, int to, const net::FrameHeader& header) { received(from, to, header); },
        [this](int from, int, const net::FrameHeader& header) {
          return servers_.room(chunk_of(header), worker_of(from));
        },
        [this](int, int to, const net::FrameHeader& header) {
          servers_.read(chunk_of(header), worker_of(to));
        }};
  }

  std::size_t chunk_of(const net::FrameHeader& header) const {
    return map_.find(header.parameter, header.chunk)->index;
  }

  void received(int from, int to, const net::FrameHeader& header) {
    if (header.kind == net::FrameKind::gradient)
      servers_.received(chunk_of(header), worker_of(from), header.step);
    else if (header.kind == net::FrameKind::weights)
      weights_here(worker_of(to), chunk_of(header));
    else if (net::is_map(header.kind))
      parts_.map_here(to, header);
    else if (header.kind == net::FrameKind::factors)
      factors_.received(from, to, header);
    else if (header.kind == net::FrameKind::lease)
      workers_.leased(worker_of(to), header.chunk);
    else
      servers_.done(to, worker_of(from), false);
  }

  void weights_here(int worker, std::size_t chunk) {
    if (spec_.cut)
      parts_.weights_here(worker, chunk);
    else
      workers_.weights_here(worker, chunk);
  }

  void act_on(const EventQueue::Event& event) {
    switch (event.kind) {
      case EventQueue::Kind::worker:
        if (spec_.cut)
          parts_.go_on(static_cast<int>(event.who));
        else
          workers_.go_on(static_cast<int>(event.who));
        break;
      case EventQueue::Kind::lane:
        wire_.look(event.who);
        break;
      case EventQueue::Kind::store:
        servers_.worked(event.who);
        break;
      case EventQueue::Kind::factors:
        factors_.worked(static_cast<int>(event.who));
        break;
      case EventQueue::Kind::sums:
        workers_.summed(static_cast<int>(event.who));
        break;
      case EventQueue::Kind::loss:
        lose(static_cast<int>(event.who));
        break;
    }
  }

  /// An asynchronous central server goes on without a worker, whose batches others train; every
  /// other run ends.
  void lose(int rank) {
    outcome_.lost.push_back(rank);
    if (spec_.sync != net::Sync::none || spec_.topology.is_owner(rank)) {
      outcome_.failure = "rank " + std::to_string(rank) + " is lost";
      return;
    }
    wire_.lose(rank);
    workers_.lose(worker_of(rank));
    servers_.done(spec_.topology.server, worker_of(rank), true);
  }

  const Spec& spec_;
  const net::ShardMap map_;
  EventQueue event_queue_;
  Processors processors_;
  Wire wire_;
  Workers workers_;  // Of networks that are not cut.
  Parts parts_;      // Of those that are.
  Factors factors_;
  Servers servers_;
  Outcome outcome_;
};

}  // namespace

Outcome simulate(const Spec& spec, Recorder* recorder) {
  return Run(spec, recorder).run();
}

}  // namespace duplex::tools::simulation
