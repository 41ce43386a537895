// This is what the peers of a run send to a rank after the handshake: frames that are due and
// others, bytes, ends. The first two bytes say what run it is (ScriptedSetting), each further one
// what a peer or the rank does next (Play::act), with bytes behind it that this needs. In the end
// those that misbehave close, and the others go on.
//
// The rank has to end then; apply nothing of what it refuses; refuse nothing that is due; and name
// a peer that is to blame.
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <string>

#include "tests/fuzz/scripted_peer.h"
#include "tests/fuzz/scripted_rank.h"

namespace duplex::fuzz {
namespace {

using net::FrameHeader;
using net::FrameKind;

/// A rank that has something to say mostly says it within this time, also where it was asked for
/// nothing.
constexpr int longest_answer_ms = 2, longest_pause_ms = 1;
/// A run has to end within this time, which is shorter than its time-outs.
constexpr std::chrono::seconds longest_end{20};
const std::string own_reason = "the rank gives up";

/// Reads the input, and has the peers do what it says.
class Play {
 public:
  Play(const Bytes& input, const ScriptedSetting& setting) : input_(input), run_(setting.run) {
    for (const int peer : run_.topology.peers_of(run_.rank))
      peers_.push_back(std::make_unique<ScriptedPeer>(run_, peer));
  }
  std::vector<net::Link> links() {
    std::vector<net::Link> links;
    for (const auto& peer : peers_) links.push_back(peer->link());
    return links;
  }
  const std::vector<std::unique_ptr<ScriptedPeer>>& peers() const { return peers_; }

  void run(net::ParameterExchange& exchange) {
    while (at_ < input_.size()) act(byte(), exchange);
  }
  /// Those that misbehave close, the others do what they should until the rank has ended.
  void end(ScriptedRank& rank) {
    for (const auto& peer : peers_)
      if (peer->misbehaves()) peer->close();
    const auto deadline = Clock::now() + longest_end;
    while (!rank.ended_within(none_is_open() ? std::chrono::milliseconds(longest_pause_ms)
                                             : std::chrono::milliseconds(0))) {
      require(Clock::now() < deadline,
              "a run does not end, though all do what they should or left");
      round(true);
    }
    for (const auto& peer : peers_) peer->close();
  }

 private:
  std::uint8_t byte() { return at_ < input_.size() ? input_[at_++] : std::uint8_t{0}; }

  /// The lowest four bits say what, the next one which peer, the rest are a small number.
  void act(std::uint8_t what, net::ParameterExchange& exchange) {
    ScriptedPeer& peer = *peers_[(what >> 4) % 2 % peers_.size()];
    const unsigned number = what >> 5;
    switch (what % 16) {
      case 0:  // Everybody does what it should, for so many rounds of frames.
        for (unsigned i = 0; i <= number && round(false); ++i) continue;
        break;
      case 1:  // To the end.
        for (unsigned i = 0, silent = 0; i < 64 && silent < 2; ++i)
          silent = round(true) ? 0 : silent + 1;
        break;
      case 2:
        peer.play();
        break;
      case 3:
        if (const auto due = peer.due()) peer.send(*due);
        break;
      case 4:
        peer.finish();
        break;
      case 5:
        wait(longest_answer_ms);
        break;
      case 6:
        say(peer, notice(number));
        break;
      case 7:
        for (unsigned i = 0; i < 1U << number; ++i) say(peer, last_);
        break;
      case 8:
        say(peer, data(number));
        break;
      case 9:
        damage(peer, number);
        break;
      case 10:
        cut(peer);
        break;
      case 11:
        raw(peer, number);
        break;
      case 12:
        say(peer, report(number));
        break;
      case 13:
        command(exchange, number);
        break;
      case 14:
        peer.close();
        break;
      default:
        say(peer, frame_bytes(header_of(FrameKind::goodbye)));
        break;
    }
  }

  void say(ScriptedPeer& peer, const Bytes& bytes) {
    last_ = bytes;
    peer.misbehave(bytes);
  }

  /// All send what is due, and wait for an answer of the rank. Returns whether one has come.
  bool round(bool finish) {
    bool asked = false;
    for (const auto& peer : peers_) {
      asked = peer->play() || asked;
      asked = (finish && peer->finish()) || asked;
    }
    return wait(asked ? longest_answer_ms : longest_pause_ms);
  }
  bool none_is_open() const {
    return std::all_of(peers_.begin(), peers_.end(),
                       [](const auto& peer) { return peer->descriptor() < 0; });
  }
  bool wait(int milliseconds) {
    if (none_is_open()) return false;
    std::array<pollfd, 2> all{{{-1, 0, 0}, {-1, 0, 0}}};
    for (std::size_t i = 0; i < peers_.size(); ++i) all[i] = {peers_[i]->descriptor(), POLLIN, 0};
    ::poll(all.data(), peers_.size(), milliseconds);
    bool heard = false;
    for (const auto& peer : peers_) heard = peer->hear() || heard;
    return heard;
  }

  Bytes notice(unsigned number) {
    constexpr std::array<std::uint64_t, 8> steps{
        0, 1, 2, 4, 65536, std::uint64_t{1} << 32, std::uint64_t{1} << 63, ~std::uint64_t{0}};
    constexpr std::array<std::uint32_t, 8> parameters{
        0, SIGINT, SIGTERM, SIGKILL, net::not_written_mark, 257, 1U << 31, ~0U};
    const std::uint8_t kind = byte();
    return frame_bytes(header_of(static_cast<FrameKind>(18 + kind % 14), steps[number],
                                 parameters[kind / 16 % parameters.size()]));
  }
  Bytes report(unsigned number) {
    FrameHeader header = header_of(FrameKind::report, byte());
    header.length = number;
    return frame_bytes(header);
  }
  Bytes data(unsigned number) {
    const std::uint8_t which = byte();
    FrameHeader header =
        header_of(which % 2 == 0 ? FrameKind::weights : FrameKind::gradient, number, which / 2 % 4);
    header.chunk = which / 8 % 4;
    const net::Chunk* chunk = run_.map.find(header.parameter, header.chunk);
    header.length = chunk != nullptr ? chunk->bytes() : 16;
    if (which >= 224) header.length += 4;
    return frame_bytes(header);
  }
  /// Changes a byte of the header of what is due.
  void damage(ScriptedPeer& peer, unsigned number) {
    Bytes bytes = peer.due().value_or(frame_bytes(header_of(FrameKind::heartbeat, number)));
    const std::uint8_t at = byte();
    bytes[at % net::header_bytes] ^= byte();
    say(peer, bytes);
  }
  void cut(ScriptedPeer& peer) {
    Bytes bytes = peer.due().value_or(frame_bytes(header_of(FrameKind::goodbye)));
    bytes.resize(byte() % bytes.size());
    say(peer, bytes);
    peer.close();
  }
  void raw(ScriptedPeer& peer, unsigned number) {
    Bytes bytes;
    for (unsigned i = 0; i < 4 * number + 1; ++i) bytes.push_back(byte());
    say(peer, bytes);
  }

  static void command(net::ParameterExchange& exchange, unsigned number) {
    try {
      switch (number) {
        case 0:
          return exchange.progress_made();
        case 1:
          return exchange.call_checkpoint({4, 0});
        case 2:
          return exchange.tell_unwritten(2);
        case 3:
          return exchange.ask_for_checkpoint(SIGTERM);
        case 4:
          return exchange.order_snapshot({4, 0});
        case 5:
          return exchange.give_up(std::make_exception_ptr(Error(own_reason)));
        default:
          return static_cast<void>(exchange.take_asked());
      }
    } catch (const Error&) {  // Too many calls are open.
    }
  }

  const Bytes& input_;
  const ScriptedRun& run_;
  std::vector<std::unique_ptr<ScriptedPeer>> peers_;
  std::size_t at_ = 2;
  Bytes last_ = frame_bytes(header_of(FrameKind::heartbeat));
};

bool all_are(const float* values, std::size_t count, float value) {
  return std::all_of(values, values + count, [value](float each) { return each == value; });
}

/// After a failure, threads of the exchange may still apply what has come.
net::ChunkState state_of(const net::Store& store, std::size_t chunk) {
  for (;;)
    if (auto state = store.state(chunk, store.step_of(chunk))) return *std::move(state);
}

/// The owned chunks have had one update for each gradient of all workers, and no other change.
void check_owned(const ScriptedSetting& setting, const Play& play, ScriptedRank& rank) {
  const ScriptedRun& run = setting.run;
  const bool async = run.sync == net::Sync::none, trains = run.topology.is_worker(run.rank);
  std::vector<std::uint64_t> updates;
  for (std::size_t i = 0; i < run.map.chunks(); ++i) {
    if (run.map[i].owner != run.rank) continue;
    std::uint64_t least = trains ? rank.pushed() : ~std::uint64_t{0}, sum = trains ? least : 0;
    bool odd = false;
    for (const auto& peer : play.peers()) {
      odd = odd || peer->odd();
      if (!run.topology.is_worker(peer->rank())) continue;
      least = std::min(least, peer->pushed(i));
      sum += peer->pushed(i);
    }
    const net::ChunkState state = state_of(rank.exchange().store(), i);
    const std::uint64_t step = state.step;
    updates.push_back(step);
    require(step <= (async ? sum : least), "an update without the gradients for it");
    const float expected = step == 0 ? ScriptedRank::first_weight
                           : setting.spec.average
                               ? gradient_value
                               : ScriptedRank::first_weight - static_cast<float>(step);
    require(odd || all_are(state.weights.data(), state.weights.size(), expected),
            "the weights of a chunk are not those of its updates");
  }
  if (updates.empty() || async) return;
  const auto [least, most] = std::minmax_element(updates.begin(), updates.end());
  require(rank.error() || *most == *least, "a run ends well in the middle of a step");
  require(setting.spec.overlap || *most - *least <= 1,
          "a gradient was taken before its weights were sent");
}

/// Chunks of others have the weights of a step that their owner has sent.
void check_received(const ScriptedSetting& setting, const Play& play, const ScriptedRank& rank) {
  if (!setting.run.topology.is_worker(setting.run.rank)) return;
  for (const auto& peer : play.peers())
    for (std::size_t i = 0; i < setting.run.map.chunks(); ++i) {
      const net::Chunk& chunk = setting.run.map[i];
      if (chunk.owner != peer->rank() || peer->odd() || peer->torn() == i) continue;
      const float* values = rank.weights(chunk);
      bool known = all_are(values, chunk.count, ScriptedRank::first_weight);
      for (std::uint64_t step = 0; step < peer->sent(i); ++step)
        known = known || all_are(values, chunk.count, weight_of(step));
      require(known, "weights that nobody has sent");
    }
}

void check_outcome(const Play& play, const ScriptedRank& rank) {
  const auto& peers = play.peers();
  const bool all_well = std::all_of(peers.begin(), peers.end(), [](const auto& peer) {
    return peer->finished() && !peer->misbehaves();
  });
  if (!rank.error()) return;
  const std::string& error = *rank.error();
  if (error == own_reason) return;
  require(rank.code() != Exit::ok, "an error with the exit code of a success");
  const bool refused = error.find("sent a frame that cannot be") != std::string::npos;
  require(std::any_of(peers.begin(), peers.end(),
                      [&](const auto& peer) {
                        return error.find(peer->name()) != std::string::npos &&
                               (!refused || peer->misbehaves());
                      }),
          ("an error that names no peer, or an innocent one: " + error).c_str());
  require(!all_well, ("a run in which all do what they should fails: " + error).c_str());
}

}  // namespace

void exchange(const Bytes& input) {
  if (input.size() < 2 || input.size() > 2048) return;
  const ScriptedSetting setting(input[0], input[1]);
  Play play(input, setting);
  reads(input, 4096, [&] {
    ScriptedRank rank(setting, play.links());
    play.run(rank.exchange());
    play.end(rank);
    if (setting.run.topology.is_owner(setting.run.rank)) check_owned(setting, play, rank);
    check_received(setting, play, rank);
    check_outcome(play, rank);
    rank.destroy();
  });
}

}  // namespace duplex::fuzz
