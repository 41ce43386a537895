#include "net/connection.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace duplex::net {
namespace {

constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();

/// Rounds order the frames of the training; what frames an ending frames it.
std::uint64_t round_of(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::abort:
      return 0;
    case FrameKind::done:
      return last - 2;
    case FrameKind::report:
      return last - 1;
    case FrameKind::goodbye:
      return last;
    // New weights come back in the round whose gradients made them; the first ones are a round
    // before all.
    case FrameKind::weights:
      return header.step + 1;
    default:
      return header.step + 2;
  }
}

std::string receiving(FrameKind kind) {
  return "receiving " + name_of(kind);
}

}  // namespace

Connection::Connection(Link link, ConnectionOwner& owner, Ledger& ledger,
                       std::chrono::milliseconds timeout)
    : link_(std::move(link)),
      owner_(owner),
      timeout_(timeout),
      sent_(ledger.lane()),
      received_(ledger.lane()) {
  for (const FrameRecord& frame : link_.handshake) (frame.sent ? sent_ : received_).add(frame);
}

Connection::~Connection() {
  stop();
}

void Connection::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  link_.socket.shut_down();
  if (sender_.joinable()) sender_.join();
  if (receiver_.joinable()) receiver_.join();
}

void Connection::start() {
  sending_ = receiving_ = true;
  sender_ = std::thread([this] { send_loop(); });
  receiver_ = std::thread([this] { receive_loop(); });
}

bool Connection::after(const Outgoing& a, const Outgoing& b) {
  // Weights before gradients of the same parameter: the next forward waits for them.
  const auto key = [](const Outgoing& frame) {
    return std::make_tuple(round_of(frame.header), frame.late, frame.header.parameter,
                           frame.header.kind != FrameKind::weights, frame.number);
  };
  return key(a) > key(b);
}

void Connection::queue(Outgoing frame) {
  frame.queued = now_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  frame.number = queued_++;
  queue_.push_back(std::move(frame));
  std::push_heap(queue_.begin(), queue_.end(), after);
  changed_.notify_all();
}

void Connection::send(FrameKind kind, std::uint32_t parameter, std::uint32_t chunk,
                      std::uint64_t step, const void* payload, std::uint64_t bytes) {
  Outgoing frame;
  frame.header.kind = kind;
  frame.header.parameter = parameter;
  frame.header.chunk = chunk;
  frame.header.step = step;
  frame.header.length = bytes;
  frame.payload = payload;
  frame.late = strict_ && kind == FrameKind::weights;
  queue(std::move(frame));
}

void Connection::done() {
  Outgoing frame;
  frame.header.kind = FrameKind::done;
  queue(std::move(frame));
}

void Connection::part(const std::string& report) {
  Outgoing frame;
  if (!report.empty()) {
    if (report.size() > report_limit)
      throw Error("a report of " + std::to_string(report.size()) + " bytes; 1 MiB is the most");
    frame.header.kind = FrameKind::report;
    frame.own.assign(report.begin(), report.end());
    frame.header.length = frame.own.size();
    queue(std::move(frame));
  }
  frame = Outgoing();
  frame.header.kind = FrameKind::goodbye;
  queue(std::move(frame));
}

void Connection::abort(const AbortReason& reason) {
  Outgoing frame;
  frame.header.kind = FrameKind::abort;
  frame.own = encode(reason);
  frame.header.length = frame.own.size();
  queue(std::move(frame));
}

void Connection::drop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stop_ = true;
  queue_.clear();
  changed_.notify_all();
  link_.socket.shut_down();
}

bool Connection::wait_until_sent(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return !sending_; });
}

bool Connection::wait_until_over(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return !sending_ && !receiving_; });
}

/// The first of the queue, or after a while a sign of life. False: the connection is to stop.
bool Connection::next_frame(Outgoing& frame) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool busy =
      changed_.wait_for(lock, timeout_ / 4, [this] { return stop_ || !queue_.empty(); });
  if (stop_) return false;
  if (busy) {
    std::pop_heap(queue_.begin(), queue_.end(), after);
    frame = std::move(queue_.back());
    queue_.pop_back();
  } else {
    frame.header.kind = FrameKind::alive;
    frame.queued = now_ns();
  }
  return true;
}

void Connection::send_loop() {
  try {
    for (bool more = true; more;) {
      Outgoing frame;
      if (!next_frame(frame)) break;
      send_frame(frame);
      more = frame.header.kind != FrameKind::goodbye && frame.header.kind != FrameKind::abort;
      if (frame.header.kind == FrameKind::abort) link_.socket.end_sending();
    }
  } catch (const NetworkError& error) {
    // A connection that broke has done so for the other thread as well, which may still find the
    // peer's reason in what came before: the telling is left to it. A peer that takes nothing for
    // too long is this thread's to tell.
    if (error.code == Exit::timed_out) owner_.failed(link_.rank, std::current_exception());
  } catch (...) {
    owner_.failed(link_.rank, std::current_exception());
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  sending_ = false;
  changed_.notify_all();
}

void Connection::send_frame(const Outgoing& frame) {
  const std::int64_t first = now_ns();
  const HeaderBytes bytes = encode(frame.header);
  const bool data =
      frame.header.kind == FrameKind::weights || frame.header.kind == FrameKind::gradient;
  const void* payload = frame.own.empty() ? frame.payload : frame.own.data();
  if (data && payload == nullptr) {
    filled_.resize(std::max<std::size_t>(filled_.size(), frame.header.length / sizeof(float)));
    owner_.fill(link_.rank, frame.header, filled_.data());
    payload = filled_.data();
  }
  const std::string phase = "sending " + name_of(frame.header.kind);
  link_.socket.write_all(bytes.data(), bytes.size(), payload, frame.header.length,
                         Clock::now() + timeout_, phase.c_str());
  record(frame.header, true, frame.queued, first);
  if (data) owner_.sent(link_.rank, frame.header);
}

void Connection::receive_loop() {
  bool more = true;
  try {
    while (more) more = receive_frame();
  } catch (...) {
    owner_.failed(link_.rank, std::current_exception());
  }
  if (more) link_.socket.drain(Clock::now() + timeout_);
  const std::lock_guard<std::mutex> lock(mutex_);
  receiving_ = false;
  changed_.notify_all();
}

/// False after the last frame.
bool Connection::receive_frame() {
  HeaderBytes bytes;
  link_.socket.read_exact(bytes.data(), bytes.size(), Clock::now() + timeout_,
                          "waiting for a sign of life");
  std::int64_t first = now_ns();
  const FrameHeader header = decode(bytes);
  const auto refuse = [&](const std::string& why) {
    return ProtocolError(link_.peer + " sent a frame that cannot be: " + why);
  };
  if (header.magic != frame_magic || header.version != protocol_version)
    throw refuse("its header is none");

  std::uint64_t most = 0;
  switch (header.kind) {
    case FrameKind::weights:
    case FrameKind::gradient: {
      void* to = nullptr;
      try {
        to = owner_.destination(link_.rank, header);
      } catch (const ProtocolError& error) {
        throw refuse(error.what());
      }
      if (to == nullptr) throw Error("the run is over");
      const std::int64_t ready = now_ns();  // The owner may have kept it waiting.
      link_.socket.read_exact(to, header.length, Clock::now() + timeout_,
                              receiving(header.kind).c_str());
      record(header, false, ready, ready);
      owner_.received(link_.rank, header);
      return true;
    }
    case FrameKind::report:
      most = report_limit;
      break;
    case FrameKind::abort:
      most = abort_limit;
      break;
    case FrameKind::alive:
    case FrameKind::done:
    case FrameKind::goodbye:
      break;
    default:
      throw refuse(name_of(header.kind) + " during the run");
  }
  if (header.length > most)
    throw refuse(name_of(header.kind) + " of " + std::to_string(header.length) + " bytes");
  std::vector<std::uint8_t> payload(header.length);
  link_.socket.read_exact(payload.data(), payload.size(), Clock::now() + timeout_,
                          receiving(header.kind).c_str());
  record(header, false, first, first);
  if (header.kind == FrameKind::report)
    owner_.reported(link_.rank, std::string(payload.begin(), payload.end()));
  if (header.kind == FrameKind::abort) {
    const AbortReason reason = decode_abort(payload.data(), payload.size());
    throw Error(link_.peer + " ended the run: " + reason.text, reason.code);
  }
  if (header.kind == FrameKind::done) owner_.done(link_.rank);
  if (header.kind != FrameKind::goodbye) return true;
  owner_.parted(link_.rank);
  return false;
}

void Connection::record(const FrameHeader& header, bool sent, std::int64_t queued,
                        std::int64_t first) {
  FrameRecord record;
  record.step = header.step;
  record.parameter = header.parameter;
  record.chunk = header.chunk;
  record.kind = header.kind;
  record.sent = sent;
  record.peer = link_.rank;
  record.bytes = header_bytes + header.length;
  record.queued = queued;
  record.first = first;
  record.last = now_ns();
  (sent ? sent_ : received_).add(record);
}

void Connection::check_counters(Deadline deadline) const {
  KernelCounters kernel = link_.socket.counters();
  if (!kernel.known) return;
  // The goodbye may still lie in the kernel; nothing tells when it has gone but the counter itself.
  while (kernel.sent < sent_.sent() && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kernel = link_.socket.counters();
  }
  const auto check = [&](const char* what, std::uint64_t ledger, std::uint64_t counted) {
    if (ledger != counted)
      throw Error("the ledger is wrong: " + std::to_string(ledger) + " bytes " + what + " " +
                  link_.peer + ", but the kernel counted " + std::to_string(counted));
  };
  check("sent to", sent_.sent(), kernel.sent);
  check("received from", received_.received(), kernel.received);
}

}  // namespace duplex::net
