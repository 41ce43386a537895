// Frames that cannot be, from a peer that shook hands properly: they end its connection and the
// run, with a line that names the peer.
#include <gtest/gtest.h>

#include "net/connection/pace.h"
#include "net/connection/receive_window.h"
#include "tests/net/cluster.h"
#include "tests/net/connection/raw_peer.h"

namespace duplex::net {
namespace {

const std::vector<std::size_t> counts{200000, 1000, 300000};

/// A frame that rank 1, which shook hands properly, sends to a distributed rank 0 in step 0.
struct Wrong {
  const char* name;
  RawFrame frame;
  const char* says;
};

std::vector<Wrong> wrong_frames() {
  // Two ranks with even shares: 1000 elements stay whole, 200000 and 300000 are cut into halves of
  // several chunks of 64 KiB.
  RawFrame gradient;
  gradient.kind = 17;
  gradient.payload.assign(65536, 0);
  const auto with = [&](const std::function<void(RawFrame&)>& change) {
    RawFrame frame = gradient;
    change(frame);
    return frame;
  };
  const auto bare = [&](std::uint16_t kind) {
    return with([kind](RawFrame& f) { f.kind = kind, f.payload.clear(); });
  };
  return {
      {"magic", with([](RawFrame& f) { f.magic = 7; }), "what came is no frame header"},
      {"version", with([](RawFrame& f) { f.version = 4; }),
       "it is of version 4 of the protocol, this program speaks version 6"},
      {"kind", with([](RawFrame& f) { f.kind = 99; }), "kind 99 during the run"},
      {"hello", with([](RawFrame& f) { f.kind = 1; }), "hello during the run"},
      {"parameter", with([](RawFrame& f) { f.parameter = 3; }), "no such chunk"},
      {"chunk", with([](RawFrame& f) { f.chunk = 1000; }), "no such chunk"},
      {"short", with([](RawFrame& f) { f.payload.resize(64); }), "bytes where"},
      {"huge", with([](RawFrame& f) { f.length = std::uint64_t{1} << 62; }), "bytes where"},
      {"step", with([](RawFrame& f) { f.step = 5; }), "step 0 is due"},
      {"own", with([](RawFrame& f) { f.kind = 16; }), "does not own"},
      {"report", with([](RawFrame& f) { f.kind = 19, f.length = std::uint64_t{1} << 40; }),
       "report of"},
      {"abort", with([](RawFrame& f) { f.kind = 21; }), "abort of"},
      {"done", bare(22), "done: it ends no training here"},
      {"ask", bare(23), "ask: it may ask for no turn now"},
      {"grant", bare(24), "grant: it was not asked for"},
      {"release", bare(25), "release: it never had the turn"},
      {"window", bare(26), "window: this rank takes no windows"},
      {"pace", bare(27), "pace: this rank takes no pace from it"},
      {"snapshot", bare(29), "snapshot: this rank takes no snapshot for it"},
      {"coding", with([](RawFrame& f) { f.kind = 17 + 256; }), "bf16 where float32 is due"},
      {"unknown coding", with([](RawFrame& f) { f.kind = 17 + 256 * 9; }), "coding 9 where"},
      {"coding of a notice", bare(18 + 256), "heartbeat with a coding of values"},
      {"long ask", with([](RawFrame& f) { f.kind = 23; }), "ask of"},
  };
}

TEST(BadFrame, AWrongFrameEndsTheRunAndNamesItsSender) {
  for (const Wrong& bad : wrong_frames()) {
    RawFrame frame = bad.frame;
    const auto outcomes = run_ranks(
        {ServerMode::distributed, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
          Replica replica(counts);
          if (rank == 0) {
            ExchangeSpec spec;
            spec.chunk_bytes = 65536;
            ParameterExchange exchange(spec, replica.spans(),
                                       Mesh::join(mesh, std::move(listener)));
            exchange.begin(0);
            for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
            return;
          }
          Socket socket = Socket::connect(mesh.addresses[0], "", soon());
          EXPECT_EQ(raw_handshake(socket, {}), "");
          const ShardMap map = ShardMap::distributed(counts, 2, Shards::even, 65536);
          if (frame.payload.size() == 65536) frame.payload.resize(map[0].bytes());
          send_raw(socket, frame);
          // Rank 0 may send other frames first; then it says why it ends.
          for (;;) {
            const RawFrame answer = receive_raw(socket);
            if (answer.kind != 21) continue;
            EXPECT_NE(raw_text(answer.payload, 4).find(bad.says), std::string::npos);
            break;
          }
        });
    EXPECT_EQ(outcomes[0].code, Exit::failed) << bad.name;
    EXPECT_NE(outcomes[0].message.find("rank 1 (127.0.0.1:"), std::string::npos)
        << bad.name << ": " << outcomes[0].message;
    EXPECT_NE(outcomes[0].message.find(bad.says), std::string::npos)
        << bad.name << ": " << outcomes[0].message;
    EXPECT_TRUE(outcomes[1].ok) << bad.name << ": " << outcomes[1].message;
  }
}

/// The last of three ranks, which shook hands properly, tells rank 0 a window.
TEST(BadFrame, AWindowThatCannotBeIsRefused) {
  struct Told {
    ServerMode mode;
    std::uint64_t bytes;
    const char* says;
  };
  for (const Told& told :
       {Told{ServerMode::distributed, least_window - 1, "window: 65535 bytes are too few"},
        Told{ServerMode::central, least_window, "window: this rank takes no windows"}}) {
    const auto outcomes =
        run_ranks({told.mode, 3, 0}, [&](int rank, MeshSpec mesh, Listener listener) {
          Replica replica(counts);
          if (rank < 2) {
            ParameterExchange exchange({}, replica.spans(), Mesh::join(mesh, std::move(listener)));
            if (exchange.is_worker()) train(exchange, replica, rank, 1);
            exchange.finish();
            return;
          }
          std::vector<Socket> sockets;
          for (int other = 0; other < (told.mode == ServerMode::central ? 1 : 2); ++other) {
            sockets.push_back(
                Socket::connect(mesh.addresses[static_cast<std::size_t>(other)], "", soon()));
            RawSelf self;
            self.rank = 2, self.wanted = other, self.size = 3;
            EXPECT_EQ(raw_handshake(sockets.back(), self), "");
          }
          RawFrame frame;
          frame.kind = 26;
          frame.step = told.bytes;
          send_raw(sockets[0], frame);
          while (receive_raw(sockets[0]).kind != 21) {
          }
        });
    EXPECT_EQ(outcomes[0].code, Exit::failed) << outcomes[0].message;
    for (const char* part : {"rank 2 (127.0.0.1:", told.says})
      EXPECT_NE(outcomes[0].message.find(part), std::string::npos) << outcomes[0].message;
    EXPECT_FALSE(outcomes[1].ok);
  }
}

/// One of three ranks tells another a pace and nothing else.
TEST(BadFrame, APaceThatCannotBeIsRefused) {
  struct Told {
    int from, to;
    std::uint64_t pace;
    const char* says;
  };
  for (const Told& told : {Told{0, 1, least_pace - 1, "pace: 999 bytes a second are too few"},
                           Told{2, 1, least_pace, "pace: this rank takes no pace from it"}}) {
    const auto outcomes = run_ranks(
        {ServerMode::distributed, 3, 0}, [&](int rank, const MeshSpec& spec, Listener listener) {
          Replica replica(counts);
          Mesh mesh = Mesh::join(spec, std::move(listener));
          if (rank != told.from) {
            ParameterExchange exchange({}, replica.spans(), std::move(mesh));
            train(exchange, replica, rank, 1);
            exchange.finish();
            return;
          }
          RawFrame frame;
          frame.kind = 27;
          frame.step = told.pace;
          for (Link& link : mesh.links()) {
            if (link.rank != told.to) continue;
            send_raw(link.stream.socket(), frame);
            while (receive_raw(link.stream.socket()).kind != 21) {
            }
          }
        });
    const auto& outcome = outcomes[static_cast<std::size_t>(told.to)];
    EXPECT_EQ(outcome.code, Exit::failed) << outcome.message;
    for (const std::string& part : {"rank " + std::to_string(told.from), std::string(told.says)})
      EXPECT_NE(outcome.message.find(part), std::string::npos) << outcome.message;
  }
}

TEST(BadFrame, AGradientTwiceIsRefused) {
  const auto outcomes = run_ranks(
      {ServerMode::distributed, 2, 0}, [&](int rank, const MeshSpec& mesh, Listener listener) {
        Replica replica(counts);
        if (rank == 0) {
          ParameterExchange exchange({}, replica.spans(), Mesh::join(mesh, std::move(listener)));
          exchange.begin(0);
          for (std::size_t p = 0; p < counts.size(); ++p) exchange.await(p);
          return;
        }
        Socket socket = Socket::connect(mesh.addresses[0], "", soon());
        EXPECT_EQ(raw_handshake(socket, {}), "");
        const ShardMap map = ShardMap::distributed(counts, 2, Shards::even);
        RawFrame frame;
        frame.kind = 17;
        frame.payload.resize(map[0].bytes());
        send_raw(socket, frame);
        send_raw(socket, frame);
        while (receive_raw(socket).kind != 21) {
        }
      });
  EXPECT_EQ(outcomes[0].code, Exit::failed);
  EXPECT_NE(outcomes[0].message.find("it has come already"), std::string::npos)
      << outcomes[0].message;
}

}  // namespace
}  // namespace duplex::net
