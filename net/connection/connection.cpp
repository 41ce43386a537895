#include "net/connection/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/resume.h"

namespace duplex::net {
namespace {

/// Before a frame of at least so many bytes of payload is read, keep_window() is called.
constexpr std::size_t worth_looking = 16 * 1024;

/// Says what a frame of data is doing, for errors.
const char* phase_of(FrameKind kind, bool sends) {
  if (kind == FrameKind::weights) return sends ? "sending weights" : "receiving weights";
  if (is_map(kind)) return sends ? "sending a map" : "receiving a map";
  return sends ? "sending gradient" : "receiving gradient";
}

}  // namespace

Connection::Connection(Link link, ConnectionHandler& owner, Ledger& ledger,
                       std::chrono::milliseconds timeout)
    : link_(std::move(link)),
      owner_(owner),
      timeout_(timeout),
      loopback_(link_.stream.socket().loopback()),
      protection_(link_.stream.protection()),
      sent_(ledger.lane()),
      received_(ledger.lane()) {
  // A peer that has no room, since it waits for another rank, is not given up while it gets on.
  link_.stream.socket().let_writes_wait([this] {
    const Deadline later = owner_.progressed(link_.rank) + timeout_;
    return heard_ ? later : std::max(later, first_word_);
  });
  for (const FrameRecord& frame : link_.handshake) (frame.sent ? sent_ : received_).add(frame);
}

Connection::~Connection() {
  stop();
}

void Connection::stop() {
  queue_.close();
  link_.stream.socket().shut_down();
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

void Connection::release() {
  link_.stream = FrameStream();
  filled_ = {};
  encoded_ = {};
  coded_ = {};
}

void Connection::start() {
  sending_ = receiving_ = true;
  first_word_ = Clock::now() + timeout_ + 2 * to_report(timeout_);
  sender_ = std::thread([this] { send_loop(); });
  receiver_ = std::thread([this] { receive_loop(); });
}

void Connection::keep_to(ReceiveWindow& window, std::function<void()> changed) {
  if (!window.bytes()) return;
  window_ = &window;
  window_changed_ = std::move(changed);
  keep_window();
  window_->allow(link_.stream.socket().limit());
}

void Connection::take_turns(bool gradients, std::size_t transfer) {
  queue_.take_turns(gradients, transfer,
                    [this](SendOrder::TurnRequest what) { owner_.weights_turn(link_.rank, what); });
}

void Connection::send(FrameKind kind, const Chunk& chunk, std::uint64_t step, const float* values,
                      std::uint64_t priority, Coding coding) {
  Outgoing frame = Outgoing::of(kind, chunk, step, priority, coding);
  frame.payload = values;
  queue_.data(std::move(frame));
}

void Connection::send_coded(FrameKind kind, const Chunk& chunk, std::uint64_t step,
                            const std::uint8_t* coded, std::size_t size, std::uint64_t priority,
                            Coding coding) {
  Outgoing frame = Outgoing::of(kind, chunk, step, priority, coding);
  frame.coded = coded;
  frame.header.length = size;
  queue_.data(std::move(frame));
}

void Connection::grant() {
  send_urgent(Outgoing::of(FrameKind::grant, clock_ns()));
}

void Connection::tell(FrameKind kind, std::uint64_t step, std::uint32_t parameter,
                      std::uint32_t chunk) {
  Outgoing frame = Outgoing::of(kind, clock_ns());
  frame.header.step = step;
  frame.header.parameter = parameter;
  frame.header.chunk = chunk;
  send_urgent(std::move(frame));
}

void Connection::send_urgent(Outgoing frame) {
  if (queue_.urgent(std::move(frame))) return;
  owner_.failed(link_.rank,
                std::make_exception_ptr(Error(link_.peer + " takes none of the " +
                                                  std::to_string(SendQueue::most_urgent) +
                                                  " frames that wait for it to read",
                                              Exit::timed_out)));
}

void Connection::keep_pace(std::uint64_t pace) {
  const bool shares = !loopback_ && !link_.stream.socket().bounded();
  if (!shares || pace_.exchange(pace) == pace) return;
  link_.stream.socket().keep_pace(pace);
}

void Connection::done(std::uint64_t steps) {
  Outgoing frame = Outgoing::of(FrameKind::done, clock_ns());
  frame.header.step = steps;
  queue_.last(std::move(frame));
}

void Connection::part(const std::string& report) {
  if (report.size() > report_limit)
    throw Error("a report of " + std::to_string(report.size()) + " bytes; " +
                std::to_string(report_limit) + " is the most");
  for (std::size_t from = 0; from < report.size(); from += report_part) {
    const std::size_t size = std::min<std::size_t>(report_part, report.size() - from);
    Outgoing frame = Outgoing::of(FrameKind::report, clock_ns());
    const auto begin = report.begin() + static_cast<std::ptrdiff_t>(from);
    frame.own.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
    frame.header.length = size;
    frame.header.step = report.size() - from - size;
    queue_.last(std::move(frame));
  }
  queue_.last(Outgoing::of(FrameKind::goodbye, clock_ns()));
}

void Connection::abort(const AbortReason& reason) {
  Outgoing frame = Outgoing::of(FrameKind::abort, clock_ns());
  frame.own = encode(reason);
  frame.header.length = frame.own.size();
  queue_.urgent(std::move(frame), true);
}

void Connection::drop() {
  queue_.close();
  link_.stream.socket().shut_down();
}

bool Connection::wait_until_sent(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool over = changed_.wait_until(lock, deadline, [this] { return !sending_; });
  if (broken_) std::rethrow_exception(broken_);
  return over;
}

bool Connection::wait_until_over(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return !sending_ && !receiving_; });
}

void Connection::send_loop() {
  const WithoutSigpipe quiet;
  try {
    for (bool more = true; more;) {
      Outgoing frame;
      if (!queue_.take(frame)) {
        link_.stream.socket().cork(false);
        if (!queue_.take(frame, Clock::now() + timeout_ / 4)) break;
        if (frame.header.kind == FrameKind::heartbeat) frame.header.step = owner_.progress();
        link_.stream.socket().cork(true);
      }
      if (is_data(frame.header.kind))
        send_data(frame);
      else
        send_notice(frame);
      more = frame.header.kind != FrameKind::goodbye && frame.header.kind != FrameKind::abort;
      if (!more) link_.stream.socket().cork(false);
      if (frame.header.kind == FrameKind::abort) link_.stream.socket().end_sending();
    }
  } catch (const NetworkError& error) {
    // When the connection breaks, the receiving thread notices it too, and may still read the
    // peer's reason in what came before; so it is left to that thread to report it. That the peer
    // takes nothing for too long is noticed by this thread alone, so this thread reports it, and so
    // it does after the peer's goodbye, which ends that thread.
    bool parted = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      broken_ = std::current_exception();
      parted = parted_;
    }
    if (error.code == Exit::timed_out || parted)
      owner_.failed(link_.rank, std::current_exception());
  } catch (...) {
    owner_.failed(link_.rank, std::current_exception());
  }
  queue_.close();
  const std::lock_guard<std::mutex> lock(mutex_);
  sending_ = false;
  changed_.notify_all();
}

void Connection::send_data(const Outgoing& frame) {
  const std::int64_t first = clock_ns();
  FrameHeader header = frame.header;
  const void* payload = frame.coded;
  if (payload == nullptr) payload = payload_of(frame, header);
  // No answer tells that the peer has read factors or a map, and later ones overwrite them.
  const bool answered = header.kind == FrameKind::weights || header.kind == FrameKind::gradient;
  const bool borrowed = answered && (payload == frame.coded || payload == frame.payload);
  link_.stream.write(header, payload, Clock::now() + timeout_, phase_of(header.kind, true),
                     borrowed ? Payload::borrowed : Payload::copied);
  record(header, true, frame.queued, first, frame.count);
  owner_.sent(frame);
}

/// Returns the payload of a frame that is not coded yet, and sets the header's length.
const void* Connection::payload_of(const Outgoing& frame, FrameHeader& header) {
  const float* values = frame.payload;
  if (values == nullptr) {
    filled_.resize(std::max(filled_.size(), frame.count));
    owner_.copy_payload(link_.rank, frame, filled_.data());
    values = filled_.data();
  }
  if (header.coding == Coding::float32) return values;
  encoded_.resize(
      std::max(encoded_.size(), coded_bytes(header.coding, frame.count) + coding_slack));
  header.length = encode(header.coding, values, frame.count, encoded_.data());
  const std::size_t plain = coded_bytes(Coding::float32, frame.count);
  if (header.coding != Coding::lossless || header.length < plain) return encoded_.data();
  header.coding = Coding::float32;  // A chunk that packing does not shrink is sent as it is.
  header.length = plain;
  return values;
}

void Connection::send_notice(const Outgoing& frame) {
  const std::int64_t first = clock_ns();
  const std::string phase = "sending " + name_of(frame.header.kind);
  link_.stream.write(frame.header, frame.own.data(), Clock::now() + timeout_, phase.c_str());
  record(frame.header, true, frame.queued, first);
  if (frame.header.kind == FrameKind::state) owner_.sent(frame);
}

void Connection::receive_loop() {
  bool more = true;
  try {
    while (more) {
      const FrameHeader header = link_.stream.read_header(
          heard_ ? Clock::now() + timeout_ : first_word_, "waiting for a sign of life");
      heard_ = true;
      try {
        check_header(header);
        if (is_data(header.kind))
          receive_data(header);
        else
          more = receive_notice(header);
      } catch (const ProtocolError& error) {
        throw ProtocolError(link_.peer + " sent a frame that cannot be: " + error.what());
      } catch (const CodingError& error) {
        throw ProtocolError(link_.peer + " sent a frame that cannot be: " + error.what());
      }
    }
  } catch (...) {
    owner_.failed(link_.rank, std::current_exception());
  }
  if (more) link_.stream.socket().drain(Clock::now() + timeout_);
  std::exception_ptr broken;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    parted_ = !more;
    if (parted_) broken = broken_;
  }
  if (broken) owner_.failed(link_.rank, broken);
  const std::lock_guard<std::mutex> lock(mutex_);
  receiving_ = false;
  changed_.notify_all();
}

void Connection::receive_data(const FrameHeader& header) {
  const Reservation reservation = owner_.reserve(link_.rank, header);
  if (reservation.to == nullptr) throw Error("the run is over");
  if (window_ != nullptr && header.length >= worth_looking) keep_window();
  const std::int64_t ready = clock_ns();  // reserve() may have waited for room.
  const bool weights = header.kind == FrameKind::weights;
  void* to = reservation.to;
  const bool coded = header.coding != Coding::float32, apart = coded || (weights && whole_weights_);
  if (apart) {
    coded_.resize(std::max<std::size_t>(coded_.size(), header.length));
    to = coded_.data();
  }
  link_.stream.read_payload(to, header.length, Clock::now() + timeout_,
                            phase_of(header.kind, false));
  if (coded)
    decode(header.coding, weights ? Values::weights : Values::gradient, coded_.data(),
           header.length, reservation.count, reservation.to);
  else if (apart)
    std::memcpy(reservation.to, coded_.data(), header.length);
  record(header, false, ready, ready, reservation.count);
  owner_.commit(reservation);
}

/// Asks the kernel whether segments were lost on their way here, and keeps the receive window to
/// what follows.
void Connection::keep_window() {
  // On loopback no segment is dropped; segments overtake each other when the sender moves to
  // another processor.
  if (window_->look(loopback_ ? 0 : link_.stream.socket().behind_gaps(), Clock::now()))
    window_changed_();
  link_.stream.socket().limit_receiving(*window_->bytes());
}

/// Returns false after the last frame, the goodbye.
bool Connection::receive_notice(const FrameHeader& header) {
  const std::int64_t first = clock_ns();
  std::uint64_t most = 0;
  switch (header.kind) {
    case FrameKind::report:
      most = report_part;
      break;
    case FrameKind::abort:
      most = abort_limit;
      break;
    case FrameKind::state:
      most = state_part;
      break;
    case FrameKind::heartbeat:
    case FrameKind::done:
    case FrameKind::goodbye:
    case FrameKind::ask:
    case FrameKind::grant:
    case FrameKind::release:
    case FrameKind::window:
    case FrameKind::pace:
    case FrameKind::checkpoint:
    case FrameKind::snapshot:
    case FrameKind::lease:
      break;
    default:
      throw ProtocolError(name_of(header.kind) + " during the run");
  }
  if (header.length > most)
    throw ProtocolError(name_of(header.kind) + " of " + std::to_string(header.length) + " bytes");
  const std::string phase = "receiving " + name_of(header.kind);
  std::vector<std::uint8_t> payload(header.length);
  link_.stream.read_payload(payload.data(), payload.size(), Clock::now() + timeout_, phase.c_str());
  record(header, false, first, first);
  try {
    act_on(header, payload);
  } catch (const ProtocolError& error) {
    throw ProtocolError(name_of(header.kind) + ": " + error.what());
  }
  return header.kind != FrameKind::goodbye;
}

void Connection::act_on(const FrameHeader& header, const std::vector<std::uint8_t>& payload) {
  switch (header.kind) {
    case FrameKind::abort: {
      const AbortReason reason = decode_abort(payload.data(), payload.size());
      throw Error(link_.peer + " ended the run: " + reason.text, reason.code);
    }
    case FrameKind::grant:
      if (!queue_.grant_gradients()) throw ProtocolError("it was not asked for");
      break;
    case FrameKind::report:
      if (header.step > report_limit ||
          report_.size() + payload.size() + header.step > report_limit)
        throw ProtocolError("it has more than " + std::to_string(report_limit) + " bytes");
      if (report_left_ != 0 && report_left_ != payload.size() + header.step)
        throw ProtocolError("it has not as many bytes as its first part said");
      if (payload.empty()) throw ProtocolError("it has no bytes");
      report_.append(payload.begin(), payload.end());
      report_left_ = header.step;
      if (header.step == 0)
        owner_.notice(link_.rank, {FrameKind::report, 0, 0, 0, std::exchange(report_, {})});
      break;
    case FrameKind::state:
      owner_.notice(link_.rank, {header.kind, header.step, header.parameter, 0,
                                 std::string(payload.begin(), payload.end())});
      break;
    case FrameKind::goodbye:
      if (report_left_ != 0) throw ProtocolError("its report has not come to an end");
      link_.stream.socket()
          .acknowledge();  // The peer waits for this acknowledgement to check its counters.
      owner_.notice(link_.rank, {header.kind, 0, 0, 0, {}});
      break;
    default:  // heartbeat, done, ask, release, window, pace, checkpoint, snapshot, lease.
      owner_.notice(link_.rank, {header.kind, header.step, header.parameter, header.chunk, {}});
      break;
  }
}

}  // namespace duplex::net
