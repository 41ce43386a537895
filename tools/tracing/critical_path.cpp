#include "tools/tracing/critical_path.h"

#include <algorithm>
#include <iterator>

#include "tools/text/quartiles.h"

namespace duplex::tools {
namespace {

using net::FrameKind;
using net::TraceEvent;
using Kind = TraceEvent::Kind;

/// Walks back in time from the end of a wait, as far as the wait reaches: the time between a moment
/// and the one before it goes to a cause.
class Walk {
 public:
  Walk(WaitCauses& causes, const TraceEvent& wait)
      : causes_(causes), begin_(wait.from), at_(wait.to) {}

  void back_to(std::int64_t moment, const Cause& cause) {
    moment = std::max(moment, begin_);
    if (moment >= at_) return;
    causes_[cause] += at_ - moment;
    at_ = moment;
  }
  void rest(const Cause& cause) { back_to(begin_, cause); }

 private:
  WaitCauses& causes_;
  const std::int64_t begin_;
  std::int64_t at_;
};

}  // namespace

std::string Cause::str() const {
  const std::string by = "rank " + std::to_string(rank), other = "rank " + std::to_string(to);
  switch (kind) {
    case computing:
      return by + " computing";
    case queue:
      return "queue of " + by + " for " + other;
    case wire:
      return "wire from " + by + " to " + other;
    case server:
      return by + " updating";
    case unknown:
      break;
  }
  return "before the trace";
}

std::string text_of(const WaitCauses& causes, std::size_t parts, double steps) {
  std::vector<std::pair<std::int64_t, Cause>> order;
  for (const auto& [cause, time] : causes) order.emplace_back(time, cause);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return b.first < a.first; });
  std::string text;
  for (std::size_t i = 0; i < std::min(parts, order.size()); ++i) {
    const double time = static_cast<double>(order[i].first) * 1e-9 / steps;
    text += (text.empty() ? "" : ", ") + order[i].second.str() + " " + duration_text(time);
  }
  return text;
}

CriticalPath::Key CriticalPath::key(int rank, const TraceEvent& event) {
  return {rank, event.kind, event.frame, event.parameter, event.chunk, event.step};
}

CriticalPath::CriticalPath(const std::vector<const std::vector<TraceEvent>*>& ranks) {
  maps_.resize(ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const TraceEvent& event : *ranks[rank]) {
      if (event.kind == Kind::forward || event.kind == Kind::backward || event.kind == Kind::wait)
        continue;
      events_[key(static_cast<int>(rank), event)].push_back(&event);
      if (is_map(event.frame)) {
        if (event.kind == Kind::received) maps_[rank].push_back(&event);
        continue;
      }
      std::uint32_t& chunks = chunks_[event.parameter];
      chunks = std::max(chunks, event.chunk + 1);
    }
  }
  for (Events& came : maps_)
    std::stable_sort(came.begin(), came.end(),
                     [](const TraceEvent* a, const TraceEvent* b) { return a->to < b->to; });
}

const CriticalPath::Events& CriticalPath::find(int rank, Kind kind, FrameKind frame,
                                               std::uint32_t parameter, std::uint32_t chunk,
                                               std::uint64_t step) const {
  static const Events none;
  const auto found = events_.find({rank, kind, frame, parameter, chunk, step});
  return found == events_.end() ? none : found->second;
}

/// The sent end of a frame that rank `to` received from rank `from`; null if it is not known.
const TraceEvent* CriticalPath::sent(int from, int to, const TraceEvent& received) const {
  for (const TraceEvent* event :
       find(from, Kind::sent, received.frame, received.parameter, received.chunk, received.step)) {
    if (event->peer == to) return event;
  }
  return nullptr;
}

/// A rank waits for maps until one has come. Its sender had computed until it handed it over.
WaitCauses CriticalPath::of_maps(int rank, const TraceEvent& wait) const {
  WaitCauses causes;
  Walk walk(causes, wait);
  const Events& came = maps_[static_cast<std::size_t>(rank)];
  const auto behind =
      std::upper_bound(came.begin(), came.end(), wait.to,
                       [](std::int64_t time, const TraceEvent* event) { return time < event->to; });
  if (behind == came.begin() || (*std::prev(behind))->to < wait.from) {
    walk.rest({});
    return causes;
  }
  const TraceEvent& last = **std::prev(behind);
  const TraceEvent* frame = sent(last.peer, rank, last);
  if (frame == nullptr) {
    walk.rest({Cause::wire, last.peer, rank});
    return causes;
  }
  walk.back_to(frame->from, {Cause::wire, last.peer, rank});
  walk.back_to(frame->queued, {Cause::queue, last.peer, rank});
  walk.rest({Cause::computing, last.peer, -1});
  return causes;
}

WaitCauses CriticalPath::of(int rank, const TraceEvent& wait) const {
  if (is_map(wait.frame)) return of_maps(rank, wait);
  WaitCauses causes;
  Walk walk(causes, wait);
  const std::uint32_t p = wait.parameter;
  const auto known = chunks_.find(p);
  const std::uint32_t chunks = known == chunks_.end() ? 0 : known->second;

  // Find the chunk that came last, from an owner elsewhere or here.
  const TraceEvent* last = nullptr;
  const auto consider = [&](const TraceEvent* event) {
    if (last == nullptr || event->to > last->to) last = event;
  };
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    for (const auto* event : find(rank, Kind::received, FrameKind::weights, p, chunk, wait.step))
      consider(event);
    if (wait.step == 0) continue;
    for (const auto* event :
         find(rank, Kind::update, FrameKind::weights, p, chunk, wait.step - 1)) {
      if (event->peer < 0 || event->peer == rank) consider(event);
    }
  }
  if (last == nullptr) {
    walk.rest({});
    return causes;
  }

  const std::uint32_t chunk = last->chunk;
  int owner = rank;
  const TraceEvent* update = last;
  if (last->kind == Kind::received) {
    owner = last->peer;
    update = nullptr;
    const TraceEvent* frame = sent(owner, rank, *last);
    if (frame == nullptr) {
      walk.rest({Cause::wire, owner, rank});
      return causes;
    }
    walk.back_to(frame->from, {Cause::wire, owner, rank});
    walk.back_to(frame->queued, {Cause::queue, owner, rank});
    if (wait.step == 0) {
      walk.rest({});
      return causes;
    }
    for (const auto* event :
         find(owner, Kind::update, FrameKind::weights, p, chunk, wait.step - 1)) {
      if (event->peer < 0 || event->peer == rank) update = event;
    }
  }
  if (update == nullptr) {
    walk.rest({});
    return causes;
  }

  // Find the gradient that came last, from elsewhere or from the owner's own worker.
  const TraceEvent* gradient = nullptr;
  const auto consider_gradient = [&](const TraceEvent* event, int worker) {
    const bool counts = update->peer < 0 || update->peer == worker;
    if (counts && (gradient == nullptr || event->to > gradient->to)) gradient = event;
  };
  for (const auto* event :
       find(owner, Kind::received, FrameKind::gradient, p, chunk, wait.step - 1))
    consider_gradient(event, event->peer);
  // A layer that every rank updates by itself waits for the factors of all.
  for (std::uint32_t piece = 0; piece < chunks; ++piece)
    for (const auto* event :
         find(owner, Kind::received, FrameKind::factors, p, piece, wait.step - 1))
      consider_gradient(event, event->peer);
  for (const auto* event : find(owner, Kind::pushed, FrameKind::weights, p, chunk, wait.step - 1))
    consider_gradient(event, owner);
  if (gradient == nullptr) {
    walk.rest({});
    return causes;
  }
  walk.back_to(gradient->to, {Cause::server, owner, -1});
  if (gradient->kind == Kind::pushed) {
    walk.rest({Cause::computing, owner, -1});
    return causes;
  }
  const int worker = gradient->peer;
  if (const TraceEvent* frame = sent(worker, owner, *gradient)) {
    walk.back_to(frame->from, {Cause::wire, worker, owner});
    walk.back_to(frame->queued, {Cause::queue, worker, owner});
    walk.rest({Cause::computing, worker, -1});
  } else {
    walk.rest({Cause::wire, worker, owner});
  }
  return causes;
}

}  // namespace duplex::tools
