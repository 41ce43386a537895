// Frames of maps and of their gradients, as peers send them to a rank that has a part of a network
// which is cut, and what the rank does meanwhile. The first byte is the setting; then each byte
// says what happens next, with bytes behind it that this needs.
//
// The rank has to take the frames that PROTOCOL.md says are due, and no other, and to hand on the
// values that came.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

#include "net/maps/map_traffic.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {
namespace {

using net::FrameHeader;
using net::FrameKind;
using net::MapRoute;

/// Rank 0 is under test, of three. The maps have three parts, two, and one; one route leads past
/// it.
const std::array<MapRoute, 5> routes{{{1, 0, 7, true, false, "conv1"},
                                      {0, 1, 5, true, false, "conv2"},
                                      {2, 0, 3, false, false, "conv3"},
                                      {1, 2, 4, true, false, "conv4"},
                                      {1, 0, 1, false, true, "the loss"}}};
constexpr std::size_t part_values = 3;

/// Frames are queued on it, and never leave.
class IdleHandler final : public net::ConnectionHandler {
  net::Reservation reserve(int /*peer*/, const FrameHeader& /*header*/) override { return {}; }
  void commit(const net::Reservation& /*reservation*/) override {}
  void copy_payload(int /*peer*/, const net::Outgoing& /*frame*/, float* /*to*/) override {}
  void sent(const net::Outgoing& /*frame*/) override {}
  void notice(int /*peer*/, net::Notice /*notice*/) override {}
  void weights_turn(int /*peer*/, net::SendOrder::TurnRequest /*what*/) override {}
  void failed(int /*peer*/, std::exception_ptr /*cause*/) override {}
};

float value_of(std::size_t route, bool gradient, std::uint64_t message, std::size_t i) {
  return static_cast<float>(message % 1024 * 64 + route * 16 + (gradient ? 8 : 0) + i);
}

/// One direction of a route.
struct Stream {
  std::uint64_t begun = 0, come = 0;  ///< Messages of which all before this one have begun, come.
  std::size_t part = 0;               ///< The part that comes next.
  std::uint64_t used = 0;             ///< Messages that were released.
  std::uint64_t sent = 0;             ///< Messages that this rank has sent.
};

class Play {
 public:
  explicit Play(const Bytes& input) : input_(input) {
    const std::uint8_t setting = byte();
    spec_.routes.assign(routes.begin(), routes.end());
    spec_.micro_batches = 1 + setting % 3;
    spec_.in_flight = 1 + setting / 4 % 3;
    spec_.first_step = setting / 16;
    spec_.part_bytes = part_values * sizeof(float);
    for (const int rank : {1, 2}) add_peer(rank);
    for (std::size_t route = 0; route < routes.size(); ++route)
      for (Stream& stream : streams_[route]) {
        const std::uint64_t first = spec_.first_step * messages(route);
        stream = {first, first, 0, first, first};
      }
    maps_ = std::make_unique<net::MapTraffic>(spec_, 0, peers_, progress_, [](std::uint64_t) {});
  }
  ~Play() {
    for (const int descriptor : far_) ::close(descriptor);
  }
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;

  void run() {
    while (at_ < input_.size()) {
      act(byte());
      require(maps_->arrivals() == arrivals_, "another number of messages has arrived");
      if (const auto due = maps_->due()) require(due->rank != 0, "a rank waits for itself");
    }
  }

 private:
  std::uint8_t byte() { return at_ < input_.size() ? input_[at_++] : std::uint8_t{0}; }

  void add_peer(int rank) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
      require(false, std::strerror(errno));
    far_[static_cast<std::size_t>(rank) - 1] = ends[1];
    net::Link link;
    link.rank = rank;
    link.peer = "rank " + std::to_string(rank) + " (there)";
    link.stream = net::FrameStream(net::Socket(ends[0], link.peer));
    peers_.add(std::make_unique<net::Connection>(std::move(link), idle_, ledger_,
                                                 std::chrono::seconds(20)));
  }

  std::uint64_t messages(std::size_t route) const {
    return routes[route].every_step ? 1 : spec_.micro_batches;
  }
  static std::size_t parts(std::size_t route) {
    return (routes[route].elements + part_values - 1) / part_values;
  }
  static std::size_t begin(std::size_t route, std::size_t part) {
    return part * routes[route].elements / parts(route);
  }
  static std::size_t count(std::size_t route, std::size_t part) {
    return begin(route, part + 1) - begin(route, part);
  }
  FrameHeader header(std::size_t route, bool gradient, std::uint64_t message,
                     std::size_t part) const {
    FrameHeader header;
    header.kind = gradient ? FrameKind::map_gradient : FrameKind::map;
    header.parameter = static_cast<std::uint32_t>(route);
    header.step = message / messages(route);
    header.chunk = static_cast<std::uint32_t>(message % messages(route) * parts(route) + part);
    header.length = count(route, part) * sizeof(float);
    return header;
  }
  static int sender(std::size_t route, bool gradient) {
    return gradient ? routes[route].to : routes[route].from;
  }
  static int receiver(std::size_t route, bool gradient) { return sender(route, !gradient); }

  /// The one frame that may come on it next, if any may.
  std::optional<FrameHeader> due(std::size_t route, bool gradient) const {
    const MapRoute& its = routes[route];
    if (receiver(route, gradient) != 0 || (gradient && !its.gradient)) return std::nullopt;
    const Stream& stream = streams_[route][gradient ? 1 : 0];
    if (gradient && streams_[route][0].sent <= stream.come) return std::nullopt;
    const std::uint64_t most = its.every_step ? 2 : spec_.in_flight;
    if (stream.part == 0 && stream.begun - stream.used == most) return std::nullopt;
    return header(route, gradient, stream.come, stream.part);
  }

  /// The lowest three bits say what, the next three the route, the next one the direction.
  void act(std::uint8_t what) {
    const std::size_t route = what / 8 % 8;
    const bool gradient = (what & 64) != 0;
    if (what % 8 == 7) return odd(route, gradient, (what & 128) != 0);
    if (route >= routes.size()) return;
    switch (what % 8) {
      case 0:
      case 1:
        if (const auto frame = due(route, gradient)) come(sender(route, gradient), *frame);
        break;
      case 2:
      case 3:
        use(route, gradient);
        break;
      case 4:
      case 5:
        send(route, gradient);
        break;
      default:
        leave();
        break;
    }
  }

  /// A frame comes, which may be any.
  void odd(std::size_t route, bool gradient, bool large) {
    FrameHeader frame = due(route % routes.size(), gradient).value_or(header(0, gradient, 0, 0));
    const std::uint8_t which = byte();
    const std::uint64_t value = large ? ~std::uint64_t{0} - byte() : byte();
    if (route >= routes.size()) frame.parameter = static_cast<std::uint32_t>(value);
    if ((which & 1) != 0) frame.chunk = static_cast<std::uint32_t>(value);
    if ((which & 2) != 0) frame.step = value;
    if ((which & 4) != 0) frame.length = value;
    if ((which & 8) != 0) frame.coding = net::Coding::bf16;
    if ((which & 16) != 0) frame.parameter = byte() % 8;
    come(1 + which / 32 % 2, frame);
  }

  void come(int peer, const FrameHeader& frame) {
    const std::size_t route = frame.parameter;
    const bool gradient = frame.kind == FrameKind::map_gradient;
    const auto wanted = route < routes.size() ? due(route, gradient) : std::nullopt;
    const bool good = wanted && sender(route, gradient) == peer &&
                      std::memcmp(&*wanted, &frame, sizeof frame) == 0;
    std::optional<net::Reservation> place;
    try {
      place = maps_->reserve(peer, frame);
    } catch (const net::ProtocolError&) {
      require(!good, "a frame that is due is refused");
      return;
    }
    require(good, "a frame is taken that is not due");
    require(place->count * sizeof(float) == frame.length, "a place of another size");
    Stream& stream = streams_[route][gradient ? 1 : 0];
    const std::size_t first = begin(route, stream.part);
    for (std::size_t i = 0; i < place->count; ++i)
      place->to[i] = value_of(route, gradient, stream.come, first + i);
    maps_->commit(*place);
    if (stream.part == 0) ++stream.begun;
    if (++stream.part < parts(route)) return;
    stream.part = 0;
    ++stream.come;
    ++arrivals_;
  }

  /// The rank uses the next message, if it is there.
  void use(std::size_t route, bool gradient) {
    Stream& stream = streams_[route][gradient ? 1 : 0];
    const MapMessage message{route, gradient, stream.used};
    const bool here = stream.used < stream.come;
    require(maps_->arrived(message) == here, "a message has arrived that has not, or has not");
    if (!here) return;
    const float* values = maps_->take(message);
    for (std::size_t i = 0; i < routes[route].elements; ++i)
      require(values[i] == value_of(route, gradient, stream.used, i), "another value has come");
    maps_->release(message);
    ++stream.used;
  }

  /// The rank sends its next map, or the gradient of one that it has used.
  void send(std::size_t route, bool gradient) {
    if (sender(route, gradient) != 0 || (gradient && !routes[route].gradient)) return;
    Stream& stream = streams_[route][gradient ? 1 : 0];
    const std::uint64_t most =
        gradient ? streams_[route][0].used : streams_[route][1].used + spec_.in_flight;
    if (stream.sent == most) return;
    const MapMessage message{route, gradient, stream.sent++};
    float* const values = maps_->room(message);
    for (std::size_t i = 0; i < routes[route].elements; ++i) values[i] = 1;
    maps_->send(message);
    for (std::size_t part = 0; part < parts(route); ++part)
      leaving_.push_back(header(route, gradient, message.micro_batch, part));
  }

  /// The oldest frame has left.
  void leave() {
    if (leaving_.empty()) return;
    net::Outgoing frame;
    frame.header = leaving_.front();
    leaving_.pop_front();
    maps_->sent(frame);
  }

  const Bytes& input_;
  std::size_t at_ = 0;
  net::MapTrafficSpec spec_;
  std::array<std::array<Stream, 2>, routes.size()> streams_;  ///< Of maps, of gradients.
  std::deque<FrameHeader> leaving_;
  std::uint64_t arrivals_ = 0;
  std::array<int, 2> far_{};
  IdleHandler idle_;
  net::Ledger ledger_;
  net::Progress progress_{0, 3};
  net::Peers peers_{0, 3};
  std::unique_ptr<net::MapTraffic> maps_;
};

}  // namespace

void maps(const Bytes& input) {
  if (input.empty() || input.size() > 2048) return;
  reads(input, 1024, [&] { Play(input).run(); });
}

}  // namespace duplex::fuzz
