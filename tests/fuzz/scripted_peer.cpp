#include "tests/fuzz/scripted_peer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace duplex::fuzz {
namespace {

using net::FrameHeader;
using net::FrameKind;

/// No frame of these runs is longer.
constexpr std::uint64_t most_bytes = 4096;

FrameHeader decoded(const Bytes& bytes) {
  FrameHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

/// Calls `take(header, payload)` for every whole frame in front, and removes these. Returns false
/// where what comes next is no frame.
template <class Take>
bool take_frames(Bytes& bytes, const Take& take) {
  for (;;) {
    if (bytes.size() < net::header_bytes) return true;
    const FrameHeader header = decoded(bytes);
    if (header.magic != net::frame_magic || header.version != net::protocol_version) return false;
    if (header.length > most_bytes) return false;
    const std::size_t size = net::header_bytes + header.length;
    if (bytes.size() < size) return true;
    take(header, bytes.data() + net::header_bytes);
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
  }
}

/// Returns whether weights or a gradient are coded as they may be. The last weights are float32,
/// and so may be what packing does not shrink.
bool is_agreed(const ScriptedRun& run, const FrameHeader& header) {
  const bool weights = header.kind == FrameKind::weights;
  const net::WireFormat wire = net::wire_of(run.wire, run.sync);
  const net::Coding agreed = weights ? wire.weights : wire.gradients;
  return header.coding == agreed ||
         (header.coding == net::Coding::float32 && (weights || agreed == net::Coding::lossless));
}

}  // namespace

FrameHeader header_of(FrameKind kind, std::uint64_t step, std::uint32_t parameter) {
  FrameHeader header;
  header.kind = kind;
  header.step = step;
  header.parameter = parameter;
  return header;
}

Bytes frame_bytes(const FrameHeader& header) {
  Bytes bytes(net::header_bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  const float value = header.kind == FrameKind::weights ? weight_of(header.step) : gradient_value;
  bytes.resize(bytes.size() + header.length);
  if (header.coding == net::Coding::lossless) return bytes;  // See ScriptedPeer::data().
  if (header.coding != net::Coding::float32) {
    const std::size_t first = net::coded_bytes(header.coding, 0);
    const std::vector<float> values(header.length < first ? 0 : (header.length - first) / 2, value);
    if (net::coded_bytes(header.coding, values.size()) == header.length)
      net::encode(header.coding, values.data(), values.size(), bytes.data() + net::header_bytes);
    return bytes;
  }
  for (std::size_t at = 0; at + sizeof value <= header.length; at += sizeof value)
    std::memcpy(bytes.data() + net::header_bytes + at, &value, sizeof value);
  return bytes;
}

ScriptedPeer::ScriptedPeer(const ScriptedRun& run, int rank)
    : run_(run),
      rank_(rank),
      name_("rank " + std::to_string(rank) + " (there)"),
      steps_(run.steps) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
    require(false, std::strerror(errno));
  near_ = ends[0];
  far_ = ends[1];
  chunks_.resize(run.map.chunks());
}

ScriptedPeer::~ScriptedPeer() {
  if (near_ >= 0) ::close(near_);
  ::close(far_);
}

net::Link ScriptedPeer::link() {
  net::Link link;
  link.rank = rank_;
  link.peer = name_;
  link.stream = net::FrameStream(net::Socket(near_, name_));
  near_ = -1;
  return link;
}

void ScriptedPeer::close() {
  closed_ = true;
  ::shutdown(far_, SHUT_RDWR);
}

// ---- What comes.

bool ScriptedPeer::hear() {
  std::array<std::uint8_t, 4096> some;
  bool any = false;
  for (;;) {
    const ssize_t got = ::recv(far_, some.data(), some.size(), MSG_DONTWAIT);
    rank_ended_ = rank_ended_ || got == 0;
    if (got <= 0) return any;
    any = true;
    heard_.insert(heard_.end(), some.begin(), some.begin() + got);
    const bool frames = take_frames(
        heard_, [this](const FrameHeader& header, const std::uint8_t*) { hear_frame(header); });
    require(frames, "a rank sends what is no frame");
  }
}

void ScriptedPeer::hear_frame(const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::weights:
    case FrameKind::gradient: {
      const net::Chunk* found = run_.map.find(header.parameter, header.chunk);
      require(found != nullptr && net::fits(header.coding, found->count, header.length),
              "a rank sends a chunk that is none");
      require(is_agreed(run_, header), "a rank sends another coding than was agreed on");
      const std::size_t chunk = found->index;
      require(found->owner == (header.kind == FrameKind::weights ? run_.rank : rank_),
              "a rank sends another's chunk");
      // Between weights and gradients of a chunk there is always a frame that comes from here.
      const std::uint64_t answered =
          header.kind == FrameKind::weights ? chunks_[chunk].pushed + 1 : chunks_[chunk].sent;
      require(header.step == chunks_[chunk].received && (done() || header.step < answered),
              "a rank sends weights or a gradient of another step");
      ++chunks_[chunk].received;
      break;
    }
    case FrameKind::grant:
      require(turn_ == Turn::asked || misbehaves_, "a rank grants what was not asked for");
      turn_ = Turn::held;
      break;
    case FrameKind::ask:
      ++grants_;
      break;
    case FrameKind::done:
      rank_done_ = true;
      break;
    case FrameKind::lease:
      steps_ += header.chunk;
      if (header.chunk > 0) ++leases_;
      break;
    case FrameKind::goodbye:
      rank_parted_ = true;
      break;
    default:
      break;
  }
}

// ---- What it should send.

Bytes ScriptedPeer::data(FrameKind kind, const net::Chunk& chunk, std::uint64_t step) const {
  FrameHeader header = header_of(kind, step, chunk.parameter);
  header.chunk = chunk.number;
  const net::WireFormat wire = net::wire_of(run_.wire, run_.sync);
  header.coding = kind == FrameKind::weights ? wire.weights : wire.gradients;
  header.length = net::coded_bytes(header.coding, chunk.count);
  if (header.coding != net::Coding::lossless) return frame_bytes(header);
  // The first weights go as they are, and so does what does not shrink.
  Bytes packed(header.length + net::coding_slack);
  const bool weights = kind == FrameKind::weights;
  const std::vector<float> now(chunk.count, weights ? weight_of(step) : gradient_value);
  const std::vector<float> before(chunk.count, step == 0 ? 0.0F : weight_of(step - 1));
  header.length = weights
                      ? net::encode_weights(now.data(), before.data(), chunk.count, packed.data())
                      : net::encode(header.coding, now.data(), chunk.count, packed.data());
  if ((weights && step == 0) || header.length >= chunk.bytes()) {
    header.coding = net::Coding::float32;
    header.length = chunk.bytes();
    return frame_bytes(header);
  }
  Bytes bytes = frame_bytes(header);
  std::copy_n(packed.begin(), header.length, bytes.begin() + net::header_bytes);
  return bytes;
}

std::optional<Bytes> ScriptedPeer::due() const {
  if (grants_ > 0) return frame_bytes(header_of(FrameKind::grant));
  if (rank_done_ && !trains() && !last_lease_) return frame_bytes(header_of(FrameKind::lease));
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const Entry& entry = chunks_[i];
    if (run_.map[i].owner != rank_) continue;
    const bool last = entry.sent == run_.steps + 1;
    if (last ? rank_done_ : entry.sent <= std::min(entry.received, run_.steps))
      return data(FrameKind::weights, run_.map[i], entry.sent);
  }
  for (std::size_t i = 0; trains() && i < chunks_.size(); ++i) {
    const Entry& entry = chunks_[i];
    if (run_.map[i].owner != run_.rank) continue;
    if (entry.pushed >= std::min(entry.received, steps_)) continue;
    if (!run_.semaphore || turn_ == Turn::held)
      return data(FrameKind::gradient, run_.map[i], entry.pushed);
    if (turn_ == Turn::none) return frame_bytes(header_of(FrameKind::ask));
    return std::nullopt;
  }
  if (turn_ == Turn::held) return frame_bytes(header_of(FrameKind::release));
  return std::nullopt;
}

bool ScriptedPeer::play() {
  for (bool any = false; !closed_ && !finished_ && !refused_; any = true) {
    const auto bytes = due();
    if (!bytes) return any;
    send(*bytes);
  }
  return false;
}

/// Returns whether it has trained all steps and has had so many weights, and the rank's gradients
/// have been answered with as many.
bool ScriptedPeer::has_ended(std::uint64_t weights) const {
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const Entry& entry = chunks_[i];
    if (run_.map[i].owner == rank_ && entry.sent < weights) return false;
    if (run_.map[i].owner == run_.rank && (entry.pushed < steps_ || entry.received < weights))
      return false;
  }
  return !run_.semaphore || turn_ == Turn::none;
}

bool ScriptedPeer::finish() {
  if (closed_ || finished_ || refused_) return false;
  if (!trains()) {
    if (!rank_parted_) return false;
  } else {
    if (!has_ended(steps_ + 1)) return false;
    const bool async = run_.sync == net::Sync::none;
    if (async && run_.topology.is_owner(run_.rank) && !done()) {
      send(frame_bytes(header_of(FrameKind::done, run_.steps)));
      return true;
    }
    if (async && !has_ended(steps_ + 2)) return false;
    if (run_.rank == run_.topology.coordinator()) {
      FrameHeader report = header_of(FrameKind::report);
      report.length = 8;
      send(frame_bytes(report));
    }
  }
  send(frame_bytes(header_of(FrameKind::goodbye)));
  return finished_ = true;
}

// ---- What it sends.

void ScriptedPeer::misbehave(const Bytes& bytes) {
  misbehaves_ = true;
  send(bytes);
}

void ScriptedPeer::send(const Bytes& bytes) {
  if (closed_) return;
  // Only a rank that does not read lets this come to an end: the rest is never sent.
  const ssize_t put = ::send(far_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put < static_cast<ssize_t>(bytes.size())) close();
  sent_.insert(sent_.end(), bytes.begin(), bytes.begin() + std::max<ssize_t>(put, 0));
  if (!refused_)
    refused_ = !take_frames(sent_, [this](const FrameHeader& header, const std::uint8_t* payload) {
      count(header, payload);
    });
}

void ScriptedPeer::count(const FrameHeader& header, const std::uint8_t* payload) {
  if (refused_) return;
  switch (header.kind) {
    case FrameKind::weights:
    case FrameKind::gradient: {
      const bool weights = header.kind == FrameKind::weights;
      const net::Chunk* chunk = run_.map.find(header.parameter, header.chunk);
      refused_ = chunk == nullptr || !is_agreed(run_, header) ||
                 !net::fits(header.coding, chunk->count, header.length) ||
                 chunk->owner != (weights ? rank_ : run_.rank);
      if (refused_) return;
      std::uint64_t& next = weights ? chunks_[chunk->index].sent : chunks_[chunk->index].pushed;
      refused_ = header.step != next;
      if (refused_) return;
      ++next;
      const Bytes usual = header.coding == net::Coding::lossless
                              ? data(header.kind, *chunk, header.step)
                              : frame_bytes(header);
      odd_ = odd_ || usual.size() != net::header_bytes + header.length ||
             !std::equal(usual.begin() + net::header_bytes, usual.end(), payload);
      break;
    }
    case FrameKind::ask:
      turn_ = Turn::asked;
      break;
    case FrameKind::release:
      turn_ = Turn::none;
      break;
    case FrameKind::grant:
      grants_ -= std::min<std::uint64_t>(grants_, 1);
      break;
    case FrameKind::done:
      ++dones_;
      break;
    case FrameKind::lease:
      last_lease_ = true;
      break;
    default:
      break;
  }
}

std::optional<std::size_t> ScriptedPeer::torn() const {
  if (sent_.size() <= net::header_bytes) return std::nullopt;
  const FrameHeader header = decoded(sent_);
  const net::Chunk* chunk = run_.map.find(header.parameter, header.chunk);
  if (header.kind != FrameKind::weights || chunk == nullptr) return std::nullopt;
  return chunk->index;
}

}  // namespace duplex::fuzz
