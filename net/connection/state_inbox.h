// This is what a rank gets of other ranks' parts of a checkpoint, to keep a copy of them, or of a
// network that is cut, to test it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace duplex::net {

/// It outlives the exchange where a checkpoint is still being written. Any thread may call it.
class StateInbox {
 public:
  /// States of one owner that may be here at once: it sends the next one when the one before has
  /// left it, and so may do before that was taken.
  static constexpr std::size_t most_open = 2;

  /// So many values of a state come from `owner`: of each checkpoint, where this rank keeps a copy
  /// of what it holds, or of each test, where the network is cut. Call it before the exchange is
  /// made.
  void expect(int owner, std::size_t values);

  /// A part has come: `bytes` are those behind the parts before. Throws ProtocolError if it may not
  /// come now.
  void add(int owner, std::uint64_t steps, std::uint32_t number, const std::string& bytes);
  /// Waits for the state of the checkpoint after so many steps, and takes it; none: the run has
  /// ended before it was whole.
  std::optional<std::vector<float>> take(int owner, std::uint64_t steps);
  /// Waits until take() would return at once. Returns false if it would not after `at_most`.
  bool wait(int owner, std::uint64_t steps, std::chrono::milliseconds at_most);
  /// Parts that have come.
  std::uint64_t parts() const;
  /// Nothing more comes: ends all waiting for good.
  void stop();

 private:
  struct State {
    std::vector<float> values;
    std::size_t bytes = 0;  ///< That have come.
    std::uint32_t next = 0;
  };
  struct Owner {
    std::size_t values = 0;
    std::uint64_t last = 0;               ///< Steps of the newest state that has begun to come.
    std::map<std::uint64_t, State> open;  ///< By steps.
  };

  bool is_whole(const Owner& from, std::uint64_t steps) const;

  mutable std::mutex mutex_;  ///< Guards all below; no other lock is taken meanwhile.
  std::condition_variable changed_;
  std::map<int, Owner> owners_;
  std::uint64_t parts_ = 0;
  bool stopped_ = false;
};

}  // namespace duplex::net
