#include "net/transport.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/mapped_memory.h"
#include "core/processor/processor_time.h"
#include "net/ledger/ledger.h"
#include "net/topology/shard_map.h"
#include "net/wire/frame.h"

namespace duplex::net {
namespace {

double seconds_since(std::int64_t begin) {
  return seconds(clock_ns() - begin);
}

class Meter {
 public:
  Meter(Mesh& mesh, const TransportSpec& spec)
      : stream_(mesh.links().at(0).stream),
        leads_(mesh.rank() == 0),
        spec_(spec),
        map_(ShardMap::central(spec.counts, 0, spec.chunk_bytes)) {
    std::size_t largest = 0;
    for (const std::size_t count : spec.counts) largest = std::max(largest, count);
    outgoing_ = map_memory(largest * sizeof(float));
    std::fill_n(static_cast<float*>(outgoing_.data()), largest, 1.0F);
    incoming_.resize(largest);
  }

  TransportResult run() {
    TransportResult result;
    result.bytes = map_.elements() * sizeof(float);
    measure_round_trip();
    result.round_trip = round_trip_;
    for (int i = 0; i <= spec_.repeats; ++i) {
      for (const bool framed : {true, false}) {
        const auto note = [&](TransportTimes& times, double seconds) {
          if (i > 0) (framed ? times.framed : times.raw).push_back(seconds);
        };
        // The leader's direction comes first; the sender tells the other side its time.
        for (const bool out : {leads_, !leads_}) {
          const double begin = processor_seconds();
          const double seconds = exchange_time(out, out ? send(framed) : receive(framed));
          note(out ? result.out : result.in, seconds);
          if (i > 0 && framed)
            (out ? result.sending : result.receiving).push_back(processor_seconds() - begin);
        }
        const auto [out, in] = both(framed);
        note(result.out_both, out);
        note(result.in_both, in);
      }
    }
    return result;
  }

 private:
  Deadline deadline() const { return Clock::now() + spec_.timeout; }

  /// Sends a frame without weights, as a signal to the other side.
  void say(FrameKind kind, std::uint64_t value = 0) {
    FrameHeader header;
    header.kind = kind;
    header.step = value;
    stream_.write(header, nullptr, deadline(), "measuring");
  }
  FrameHeader hear(FrameKind kind) {
    const FrameHeader header = hear_any();
    if (header.kind != kind || header.length != 0)
      throw ProtocolError(stream_.socket().peer() + " sent " + name_of(header.kind) + " where " +
                          name_of(kind) + " was due");
    return header;
  }
  FrameHeader hear_any() {
    const FrameHeader header = stream_.read_header(deadline(), "measuring");
    try {
      check_header(header);
    } catch (const ProtocolError& error) {
      throw ProtocolError(stream_.socket().peer() +
                          " sent a frame that cannot be: " + error.what());
    }
    return header;
  }

  void measure_round_trip() {
    constexpr int trips = 20;
    round_trip_ = 1e9;
    for (int i = 0; i < trips; ++i) {
      const std::int64_t begin = clock_ns();
      if (leads_) {
        say(FrameKind::ping);
        hear(FrameKind::pong);
        round_trip_ = std::min(round_trip_, seconds_since(begin));
      } else {
        hear(FrameKind::ping);
        say(FrameKind::pong);
      }
    }
    // The time is sent in nanoseconds, since the other side has not measured it.
    if (leads_)
      say(FrameKind::ping, static_cast<std::uint64_t>(round_trip_ * 1e9));
    else
      round_trip_ = static_cast<double>(hear(FrameKind::ping).step) * 1e-9;
  }

  void send_weights(bool framed) {
    const WithoutSigpipe quiet;
    const auto* const outgoing = static_cast<const float*>(outgoing_.data());
    for (std::size_t i = 0; i < map_.chunks(); ++i) {
      const Chunk& chunk = map_[i];
      if (!framed) {
        stream_.socket().write_borrowed(nullptr, 0, outgoing + chunk.offset, chunk.bytes(),
                                        deadline(), "sending weights");
        continue;
      }
      FrameHeader header;
      header.kind = FrameKind::weights;
      header.parameter = chunk.parameter;
      header.chunk = chunk.number;
      header.length = chunk.bytes();
      stream_.write(header, outgoing + chunk.offset, deadline(), "sending weights",
                    Payload::borrowed);
    }
  }

  void receive_weights(bool framed) {
    for (std::size_t i = 0; i < map_.chunks(); ++i) {
      const Chunk& chunk = map_[i];
      float* const to = incoming_.data() + chunk.offset;
      if (!framed) {
        stream_.socket().read_exact(to, chunk.bytes(), deadline(), "receiving weights");
        continue;
      }
      const FrameHeader header = hear_any();
      if (header.kind != FrameKind::weights || header.parameter != chunk.parameter ||
          header.chunk != chunk.number || header.length != chunk.bytes())
        throw ProtocolError(stream_.socket().peer() + " sent other weights than were due");
      stream_.read_payload(to, chunk.bytes(), deadline(), "receiving weights");
    }
  }

  /// Seconds of a transfer from here; the peer's `heartbeat` says that all has come.
  double send(bool framed) {
    hear(FrameKind::ping);  // The peer is ready.
    const std::int64_t begin = clock_ns();
    send_weights(framed);
    hear(FrameKind::heartbeat);
    return seconds_since(begin) - round_trip_ / 2;
  }
  double receive(bool framed) {
    say(FrameKind::ping);
    receive_weights(framed);
    say(FrameKind::heartbeat);
    return 0.0;
  }

  /// Sends a time in nanoseconds, and returns it rounded so, so that both sides hold the same
  /// figure.
  double tell(double seconds) {
    const auto nanoseconds = static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9);
    say(FrameKind::pong, nanoseconds);
    return static_cast<double>(nanoseconds) * 1e-9;
  }
  double learn() { return static_cast<double>(hear(FrameKind::pong).step) * 1e-9; }

  /// The sender of a transfer tells its time to the other side.
  double exchange_time(bool mine, double seconds) { return mine ? tell(seconds) : learn(); }

  /// Returns the seconds (out, in) of two transfers that begin together. Each side notes when all
  /// has come, and tells the other how long after the common beginning that was.
  std::pair<double, double> both(bool framed) {
    if (leads_) {
      hear(FrameKind::ping);
      say(FrameKind::ping);
    } else {
      say(FrameKind::ping);
      hear(FrameKind::ping);
    }
    const std::int64_t begin = clock_ns();
    // The direction that fails first shuts the socket down, which makes the other one fail, too.
    std::atomic<bool> failed{false};
    std::exception_ptr first;
    const auto guarded = [&](const auto& work) {
      try {
        work();
      } catch (...) {
        if (failed.exchange(true)) return;
        first = std::current_exception();
        stream_.socket().shut_down();
      }
    };
    double in = 0.0;
    std::thread sender([&] { guarded([&] { send_weights(framed); }); });
    guarded([&] {
      receive_weights(framed);
      in = seconds_since(begin);
    });
    sender.join();
    if (first) std::rethrow_exception(first);
    // The follower begins half a round trip after the leader. So its bytes leave so much later, and
    // those that it receives have left so much earlier.
    in += (leads_ ? -1 : 1) * round_trip_ / 2;
    in = tell(in);
    const double out = learn();
    return {out, in};
  }

  FrameStream& stream_;
  bool leads_;
  const TransportSpec& spec_;
  ShardMap map_;
  Buffer outgoing_;              ///< Floats, as many as the largest parameter has.
  std::vector<float> incoming_;  ///< The same number of floats.
  double round_trip_ = 0.0;
};

}  // namespace

TransportResult measure_transport(Mesh& mesh, const TransportSpec& spec) {
  return Meter(mesh, spec).run();
}

}  // namespace duplex::net
