// A library for LD_PRELOAD that raises a signal at a chosen call of `duplex dist` or `duplex
// local`, so that a campaign can hit a program exactly where it sends, writes or computes. Without
// a signal it counts the calls, from which the campaign chooses.
//
// Environment:
//   AT_CALL_FOLDER  where it leaves its files; without it the library does nothing
//   AT_CALL_RANK    the rank that is hit
//   AT_CALL_EVENT   connect, accept, open, write, pwrite, fsync, rename (the last five of files of
//                   checkpoints), forward, backward (oneDNN's primitives), or send:, body:,
//                   receive: with a kind of frame, as send:gradient
//   AT_CALL_NUMBER  at which of these calls, from 1
//   AT_CALL_MOMENT  before or after the call
//   AT_CALL_DELAY   microseconds after that
//   AT_CALL_SIGNAL  the signal's number; without it calls are counted
//   AT_CALL_TARGET  self, or parent: the launcher
//
// Files: `mark` says when the signal was raised, on the monotonic clock in nanoseconds, and in
// which process; the signal is raised once, however often ranks start again. `again`: when a rank
// that started later began its first forward pass, a line a rank. `counts-RANK`: how often each
// event was there, and which forward primitives belonged to tests ("test FIRST LAST").
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace duplex::campaigns {

/// The events. From `frames` on there is one for each way and each kind of frame.
enum Event : int {
  none,
  connecting,
  accepting,
  opening,
  writing,
  placing,
  syncing,
  renaming,
  forward,
  backward,
  frames
};
enum Way : int { send_head, send_body, receive_whole };
constexpr int ways = 3, kinds = 32, events = frames + ways * kinds;

/// The event of a frame of that kind.
constexpr int event_of(Way way, int kind) {
  return frames + way * kinds + kind;
}

/// Counts this process's calls, and raises the signal.
class Watch {
 public:
  /// The only one, which the environment sets up.
  static Watch& here();

  /// Notes that a call begins. Returns its number among those of the same event.
  std::uint64_t before(int event);
  /// Notes that the call of that number has ended.
  void after(int event, std::uint64_t number);
  /// Does what before() does for a primitive of oneDNN; the training thread calls it.
  std::uint64_t computes(int event);

 private:
  Watch();
  ~Watch();

  void note_test(std::uint64_t count, std::uint64_t behind);
  void hit(int event, std::uint64_t number, bool after);
  void raise() const;
  void write_counts();

  std::string folder_;
  int rank_ = -1, signal_ = 0, event_ = none, delay_us_ = 0;
  std::uint64_t number_ = 1;
  bool after_ = false, parent_ = false;
  bool late_ = false;  ///< The signal was raised before this process began.
  std::atomic<bool> told_{false};
  std::array<std::atomic<std::uint64_t>, events> counts_{};
  std::uint64_t in_a_row_ = 0;  ///< Forward primitives since the last backward one.
  std::uint64_t pass_ = 0;      ///< Forward primitives of one pass.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> tests_;  ///< First and last of each test.
};

}  // namespace duplex::campaigns
