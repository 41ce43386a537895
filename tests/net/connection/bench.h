// A connection whose other end is a bare socket, which a test reads and writes.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/connection/connection.h"
#include "tests/net/connection/raw_peer.h"

namespace duplex::net {
using std::chrono::milliseconds;

/// It keeps what the connection tells it.
struct Owner final : ConnectionHandler {
  Reservation reserve(int, const FrameHeader& header) override {
    const bool halves = header.coding == Coding::bf16;
    buffer.resize(header.length / (halves ? 2 : sizeof(float)));
    return {buffer.data(), buffer.size()};
  }
  void commit(const Reservation&) override { ++arrivals; }
  void copy_payload(int, const Outgoing& frame, float* to) override {
    std::memset(to, static_cast<int>(frame.header.step), frame.header.length);
  }
  void sent(const Outgoing&) override { ++departures; }
  void notice(int, Notice notice) override {
    switch (notice.kind) {
      case FrameKind::report:
        report = std::move(notice.text);
        break;
      case FrameKind::window:
        window = notice.value;
        break;
      case FrameKind::pace:
        pace = notice.value;
        break;
      case FrameKind::done:
        ended = true;
        break;
      case FrameKind::goodbye:
        goodbye = true;
        break;
      default:
        break;
    }
  }
  void weights_turn(int, SendOrder::TurnRequest what) override {
    wants = wants || what == SendOrder::TurnRequest::want;
    left = left || what == SendOrder::TurnRequest::leave;
    stepped = stepped || what == SendOrder::TurnRequest::step_aside ||
              what == SendOrder::TurnRequest::step_aside_waiting;
  }
  void failed(int, std::exception_ptr cause) override {
    try {
      std::rethrow_exception(cause);
    } catch (const Error& error) {
      message = error.what();
      code = error.code;
    }
    broken = true;
  }
  std::vector<float> buffer;
  std::string report, message;
  Exit code = Exit::ok;
  std::atomic<std::uint64_t> window{0}, pace{0};
  std::atomic<int> arrivals{0}, departures{0};
  std::atomic<bool> ended{false}, goodbye{false}, broken{false}, wants{false}, stepped{false},
      left{false};
};

/// A connection and the bare socket at its other end.
struct Bench {
  explicit Bench(milliseconds timeout = milliseconds(20000),
                 const std::vector<FrameRecord>& handshake = {}) {
    Listener listener = Listener::open({"127.0.0.1", 0});
    Link link;
    link.rank = 1;
    link.peer = "rank 1 (there)";
    link.stream = FrameStream(Socket::connect({"127.0.0.1", listener.port()}, "", soon()));
    link.stream.socket().name_peer(link.peer);
    link.handshake = handshake;
    other = listener.accept(milliseconds(5000));
    connection = std::make_unique<Connection>(std::move(link), owner, ledger, timeout);
  }
  void wait_for(const std::atomic<bool>& what) const {
    const Deadline deadline = soon();
    while (!what && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_TRUE(what);
  }
  Owner owner;
  Ledger ledger;
  Socket other;
  std::unique_ptr<Connection> connection;
};

/// Reads all frames at the other end, up to the goodbye.
inline std::vector<RawFrame> all_frames(Bench& bench) {
  std::vector<RawFrame> frames;
  do frames.push_back(receive_raw(bench.other));
  while (frames.back().kind != 20);
  EXPECT_TRUE(bench.connection->wait_until_sent(soon()));
  return frames;
}

/// A chunk of `bytes` bytes of a parameter.
inline Chunk chunk_of(std::uint32_t parameter, std::uint32_t number, std::size_t bytes) {
  Chunk chunk;
  chunk.parameter = parameter;
  chunk.number = number;
  chunk.count = bytes / sizeof(float);
  return chunk;
}

}  // namespace duplex::net
