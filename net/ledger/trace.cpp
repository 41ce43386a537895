#include "net/ledger/trace.h"

#include <algorithm>

namespace duplex::net {
namespace {

template <class Fields, class Event>
void describe(Fields& f, Event& e) {
  f.number(e.kind);
  f.number(e.frame);
  f.number(e.peer);
  f.number(e.parameter);
  f.number(e.chunk);
  f.number(e.step);
  f.number(e.bytes);
  f.number(e.queued);
  f.number(e.from);
  f.number(e.to);
}

}  // namespace

std::uint64_t TraceEvent::round() const {
  const bool travels = kind == Kind::sent || kind == Kind::received;
  return travels ? std::max<std::uint64_t>(net::round_of(frame, step), 1) : step + 1;
}

TraceEvent event_of(const FrameRecord& record) {
  TraceEvent event;
  event.kind = record.sent ? TraceEvent::Kind::sent : TraceEvent::Kind::received;
  event.frame = record.kind;
  event.peer = record.peer;
  event.parameter = record.parameter;
  event.chunk = record.chunk;
  event.step = record.step;
  event.bytes = record.bytes;
  event.queued = record.queued;
  event.from = record.first;
  event.to = record.last;
  return event;
}

std::string encode(const std::vector<TraceEvent>& events) {
  PayloadWriter writer;
  writer.number(static_cast<std::uint64_t>(events.size()));
  for (const TraceEvent& event : events) describe(writer, event);
  const std::vector<std::uint8_t> bytes = writer.take();
  return {bytes.begin(), bytes.end()};
}

std::vector<TraceEvent> decode_trace(const std::string& bytes) {
  PayloadReader reader(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::uint64_t count = 0;
  reader.number(count);
  std::vector<TraceEvent> events;
  for (std::uint64_t i = 0; i < count; ++i) {  // A count that is too great makes the reader throw.
    TraceEvent event;
    describe(reader, event);
    if (event.kind > TraceEvent::Kind::update)
      throw ProtocolError("a trace with an event of kind " +
                          std::to_string(static_cast<int>(event.kind)));
    events.push_back(event);
  }
  reader.done();
  return events;
}

void TraceWindow::add(const TraceEvent& event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  // The wait for the weights of a step begins none: there may be no such step.
  const bool waits = event.kind == TraceEvent::Kind::wait;
  newest_ = std::max(newest_, waits ? net::round_of(event.frame, event.step) : event.round());
  // A worker that is far behind the fastest one brings what is too old already.
  if (event.round() < oldest_) return;
  events_.push_back(event);
  // Let twice the window gather before the older half is erased, so that events are seldom moved.
  if (newest_ < oldest_ + 2 * steps_) return;
  oldest_ = newest_ - steps_;
  events_.erase(std::remove_if(events_.begin(), events_.end(),
                               [&](const TraceEvent& e) { return e.round() < oldest_; }),
                events_.end());
}

std::vector<TraceEvent> TraceWindow::events() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<TraceEvent> last;
  for (const TraceEvent& event : events_)
    if (event.round() + steps_ >= newest_) last.push_back(event);
  return last;
}

}  // namespace duplex::net
