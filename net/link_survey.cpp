#include "net/link_survey.h"

#include <algorithm>
#include <cstdint>

#include "core/clock.h"
#include "core/processor/processor_time.h"
#include "net/wire/frame.h"

namespace duplex::net {
namespace {

constexpr std::size_t piece = std::size_t{1} << 20U;
constexpr std::size_t least = std::size_t{1} << 18U, most = std::size_t{1} << 28U;
constexpr std::uint64_t text_limit = std::uint64_t{1} << 20U;
const char* const phase = "measuring links";

/// One pair's talk, at one of its ends.
class Pair {
 public:
  Pair(FrameStream& stream, bool leads, const SurveySpec& spec)
      : stream_(stream), leads_(leads), spec_(spec) {}

  void measure(LinkRates& rates, std::size_t at) {
    rates.round_trip[at] = time_round_trip();
    for (const bool mine : {leads_, !leads_})
      (mine ? rates.out : rates.in)[at] = mine ? send() : receive();
    rates.sending[at] = sending_;
    rates.receiving[at] = receiving_;
  }

 private:
  Deadline deadline() const { return Clock::now() + spec_.timeout; }
  void say(FrameKind kind, std::uint64_t value = 0) {
    FrameHeader header;
    header.kind = kind;
    header.step = value;
    stream_.write(header, nullptr, deadline(), phase);
  }
  std::uint64_t hear(FrameKind kind) {
    const FrameHeader header = stream_.read_header(deadline(), phase);
    check_header(header);
    if (header.kind != kind || header.length != 0)
      throw ProtocolError(stream_.socket().peer() + " sent " + name_of(header.kind) + " where " +
                          name_of(kind) + " was due");
    return header.step;
  }

  /// The follower learns it in nanoseconds.
  double time_round_trip() {
    constexpr int trips = 10;
    std::int64_t shortest = INT64_MAX;
    for (int i = 0; i < trips; ++i) {
      const std::int64_t begin = clock_ns();
      if (leads_) {
        say(FrameKind::ping);
        hear(FrameKind::pong);
        shortest = std::min(shortest, clock_ns() - begin);
      } else {
        hear(FrameKind::ping);
        say(FrameKind::pong);
      }
    }
    if (leads_)
      say(FrameKind::ping, static_cast<std::uint64_t>(shortest));
    else
      shortest = static_cast<std::int64_t>(hear(FrameKind::ping));
    round_trip_ = seconds(shortest);
    return round_trip_;
  }

  /// Sends so many bytes, and returns the seconds until the peer had them.
  double send_bytes(std::size_t bytes) {
    const std::int64_t begin = clock_ns();
    say(FrameKind::ping, bytes);
    for (std::size_t sent = 0; sent < bytes; sent += piece)
      stream_.socket().write_all(nullptr, 0, memory_.data(), std::min(piece, bytes - sent),
                                 deadline(), phase);
    hear(FrameKind::heartbeat);
    return std::max(seconds(clock_ns() - begin) - round_trip_ / 2, 1e-9);
  }

  /// A few bytes tell how many take as long as was asked for. The first third of these fills the
  /// path, and does not count.
  double send() {
    double rate = static_cast<double>(least) / send_bytes(least);
    for (const double part : {1.0 / 3, 1.0}) {
      const auto bytes = static_cast<std::size_t>(std::clamp(
          rate * spec_.seconds * part, static_cast<double>(least), static_cast<double>(most)));
      const double begin = processor_seconds();
      rate = static_cast<double>(bytes) / send_bytes(bytes);
      sending_ = (processor_seconds() - begin) / static_cast<double>(bytes);
    }
    say(FrameKind::pong, static_cast<std::uint64_t>(rate));
    return rate;
  }

  double receive() {
    for (int transfer = 0; transfer < 3; ++transfer) {
      const std::uint64_t bytes = hear(FrameKind::ping);
      if (bytes > most)
        throw ProtocolError(stream_.socket().peer() + " wants to send " + std::to_string(bytes) +
                            " bytes to measure the link");
      const double begin = processor_seconds();
      for (std::size_t got = 0; got < bytes; got += piece)
        stream_.socket().read_exact(memory_.data(), std::min<std::size_t>(piece, bytes - got),
                                    deadline(), phase);
      if (bytes > 0) receiving_ = (processor_seconds() - begin) / static_cast<double>(bytes);
      say(FrameKind::heartbeat);
    }
    return static_cast<double>(hear(FrameKind::pong));
  }

  FrameStream& stream_;
  const bool leads_;
  const SurveySpec& spec_;
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(piece);
  double round_trip_ = 0.0, sending_ = 0.0, receiving_ = 0.0;
};

Link& link_to(Mesh& mesh, int rank) {
  for (Link& link : mesh.links())
    if (link.rank == rank) return link;
  throw Error("rank " + std::to_string(rank) + " is not connected");
}

void send_text(FrameStream& stream, const std::string& text, Deadline deadline) {
  FrameHeader header;
  header.kind = FrameKind::report;
  header.step = header.length = text.size();
  stream.write(header, text.data(), deadline, "sharing figures");
}

std::string receive_text(FrameStream& stream, Deadline deadline) {
  const FrameHeader header = stream.read_header(deadline, "sharing figures");
  check_header(header);
  if (header.kind != FrameKind::report || header.length > text_limit)
    throw ProtocolError(stream.socket().peer() + " sent " + name_of(header.kind) + " of " +
                        std::to_string(header.length) + " bytes where its figures were due");
  std::string text(header.length, '\0');
  stream.read_payload(text.data(), text.size(), deadline, "sharing figures");
  return text;
}

}  // namespace

int survey_rounds(int ranks) {
  return ranks + ranks % 2 - 1;
}

/// The circle method: one of an even number stays, and the others move on by one place a round.
std::vector<std::pair<int, int>> survey_round(int ranks, int round) {
  const int places = ranks + ranks % 2, moving = places - 1;
  std::vector<std::pair<int, int>> pairs;
  const auto add = [&](int a, int b) {
    if (a < ranks && b < ranks) pairs.emplace_back(std::min(a, b), std::max(a, b));
  };
  add(moving, round);
  for (int k = 1; k < places / 2; ++k) add((round + k) % moving, (round - k + moving) % moving);
  return pairs;
}

LinkRates survey_links(Mesh& mesh, const SurveySpec& spec) {
  const int ranks = mesh.topology().size;
  const std::vector<double> none(static_cast<std::size_t>(ranks));
  LinkRates rates{none, none, none, none, none};
  for (int round = 0; round < survey_rounds(ranks); ++round)
    for (const auto& [a, b] : survey_round(ranks, round)) {
      if (a != mesh.rank() && b != mesh.rank()) continue;
      const int other = a == mesh.rank() ? b : a;
      const auto at = static_cast<std::size_t>(other);
      Pair(link_to(mesh, other).stream, mesh.rank() < other, spec).measure(rates, at);
    }
  return rates;
}

std::vector<std::string> share_texts(Mesh& mesh, const std::string& own,
                                     std::chrono::milliseconds timeout) {
  std::vector<std::string> texts(static_cast<std::size_t>(mesh.topology().size));
  texts[static_cast<std::size_t>(mesh.rank())] = own;
  for (Link& link : mesh.links()) {  // In order of rank, so that nobody waits in a circle.
    const Deadline deadline = Clock::now() + timeout;
    const bool first = mesh.rank() < link.rank;
    if (first) send_text(link.stream, own, deadline);
    texts[static_cast<std::size_t>(link.rank)] = receive_text(link.stream, deadline);
    if (!first) send_text(link.stream, own, deadline);
  }
  return texts;
}

}  // namespace duplex::net
