#include "net/ledger/ledger.h"

#include <utility>

#include "core/error.h"

namespace duplex::net {
namespace {

/// A lane that has so many records flushes the ledger itself, unless another thread is about to. A
/// step, or a twentieth of a second of waiting, brings fewer; but while a worker of an asynchronous
/// run tests its network, others may take many steps.
constexpr std::size_t many = 256;
/// A lane that has so many waits for the ledger, which the disk may hold up.
constexpr std::size_t very_many = 8192;

}  // namespace

void Ledger::Lane::add(const FrameRecord& record) {
  std::size_t count = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    fresh_.push_back(record);
    (record.sent ? bytes_.sent : bytes_.received) += record.bytes;
    (record.sent ? bytes_.saved_sent : bytes_.saved_received) += record.saved;
    count = fresh_.size();
  }
  if (count >= very_many)
    ledger_.flush();
  else if (count % many == 0)
    ledger_.flush_if_free();
}

FrameBytes Ledger::Lane::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

Ledger::Ledger(LedgerSpec spec)
    : spec_(std::move(spec)),
      frames_(spec_.paths.frames),
      traffic_(spec_.paths.traffic),
      sample_(spec_.sample, spec_.first_step),
      sums_(spec_.first_step, [this](const StepTraffic& step) { traffic_.write(step); }),
      trace_(spec_.trace_steps),
      tells_(!sample_.has_all()) {}

Ledger::Lane& Ledger::lane() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return lanes_.emplace_back(*this);
}

void Ledger::waited(const Interval& interval, std::uint64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  waits_.push_back({interval, step});
}

void Ledger::flush() {
  std::string line;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    line = take_records();
  }
  if (spec_.log && !line.empty()) spec_.log(line);
}

void Ledger::flush_if_free() {
  std::string line;
  {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock) return;
    line = take_records();
  }
  if (spec_.log && !line.empty()) spec_.log(line);
}

/// Does what flush() says, with the mutex held. Returns a line for the user, or nothing.
std::string Ledger::take_records() {
  for (const Wait& wait : waits_) sums_.waited(wait.interval, wait.step);
  waits_.clear();
  for (Lane& lane : lanes_) {
    {
      const std::lock_guard<std::mutex> lane_lock(lane.mutex_);
      taken_.swap(lane.fresh_);
    }
    for (const FrameRecord& record : taken_) book(record);
    taken_.clear();
    // The lanes hand this one on to each other, so they would all be as long in the end.
    if (taken_.capacity() > many) std::vector<FrameRecord>().swap(taken_);
  }
  sums_.close_finished();
  const std::string line = tells_ ? left_out() : "";
  tells_ = false;
  return line;
}

void Ledger::book(const FrameRecord& record) {
  sums_.add(record);
  if (spec_.trace_steps > 0 && is_data(record.kind)) trace_.add(event_of(record));
  if (!frames_.is_open()) return;
  // Frames of other kinds have something else in the field for the step.
  if (is_data(record.kind)) sample_.saw(record.step);
  if (is_data(record.kind) ? sample_.has(record.step) : sample_.has_all()) write(record);
}

void Ledger::write(const FrameRecord& record) {
  LedgerRow row;
  row.rank = spec_.rank;
  row.sent = record.sent;
  row.peer = record.peer;
  row.kind = name_of(record.kind);
  row.step = record.step;
  row.parameter = record.parameter;
  row.chunk = record.chunk;
  row.bytes = record.bytes;
  row.queued_ns = spec_.time.of(record.queued);
  row.first_ns = spec_.time.of(record.first);
  row.last_ns = spec_.time.of(record.last);
  row.bytes_saved = record.saved;
  const bool all = sample_.has_all();
  if (sample_.wrote(frames_.write(row)) && all) tells_ = true;
}

/// Tells the user that the file does not have all frames.
std::string Ledger::left_out() const {
  if (!frames_.is_open()) return "";
  std::string line = spec_.paths.frames;
  if (spec_.sample.rule == FrameSample::Rule::none) {
    line += " has no frames";
  } else {
    line += " has the frames of some steps only (" + sample_.kept().text;
    if (spec_.sample.rule == FrameSample::Rule::automatic) line += ", and fewer as it grows";
    line += ")";
  }
  return line + ", and " + spec_.paths.traffic + " the sums of all; --ledger all keeps every frame";
}

void Ledger::close() {
  flush();
  const std::lock_guard<std::mutex> lock(mutex_);
  sums_.close();
  std::string trouble = frames_.close();
  broken_ = broken_ || !trouble.empty();
  const std::string more = traffic_.close();
  if (!trouble.empty() && !more.empty()) trouble += ", ";
  trouble += more;
  if (!trouble.empty()) throw Error(trouble);
}

FramesKept Ledger::kept() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  FramesKept kept = sample_.kept();
  if (broken_) kept.text += "; but its file could not be written to its end";
  return kept;
}

FrameBytes Ledger::bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  FrameBytes sum;
  for (const Lane& lane : lanes_) {
    const FrameBytes bytes = lane.bytes();
    sum.sent += bytes.sent;
    sum.received += bytes.received;
    sum.saved_sent += bytes.saved_sent;
    sum.saved_received += bytes.saved_received;
  }
  return sum;
}

TrafficSummary Ledger::summary(std::uint64_t weight_bytes) const {
  const FrameBytes all = bytes();
  const std::lock_guard<std::mutex> lock(mutex_);
  TrafficSummary summary = sums_.summary(weight_bytes);
  summary.bytes_sent = all.sent;
  summary.bytes_received = all.received;
  summary.saved_sent = all.saved_sent;
  summary.saved_received = all.saved_received;
  return summary;
}

std::size_t Ledger::held() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t bytes =
      sums_.held() + taken_.capacity() * sizeof(FrameRecord) + waits_.capacity() * sizeof(Wait);
  for (const Lane& lane : lanes_) {
    const std::lock_guard<std::mutex> lane_lock(lane.mutex_);
    bytes += lane.fresh_.capacity() * sizeof(FrameRecord);
  }
  return bytes;
}

}  // namespace duplex::net
