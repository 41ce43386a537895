// What the connections of a rank have still to send, by round: a rank that waits for the weights of
// one round is not to wait longer because others get gradients of the next.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

namespace duplex::net {

/// Called from any thread. `wake` is called from the thread whose call made the difference, outside
/// the lock.
class Rounds {
 public:
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  /// Gives a number to call by. `wake`: what waits for its round may look again. Before the first
  /// set().
  std::size_t add(std::function<void()> wake);
  /// The earliest round that `who` has to send or is sending. True: others may have waited for it,
  /// so wake_others() must follow, when no lock is held that a `wake` takes.
  bool set(std::size_t who, std::uint64_t earliest);
  void wake_others(std::size_t who) const;
  /// Whether nobody has an earlier round than this one.
  bool is_first(std::uint64_t round) const;

 private:
  std::uint64_t first() const;

  mutable std::mutex mutex_;
  std::vector<std::function<void()>> wake_;
  std::vector<std::uint64_t> earliest_;
};

}  // namespace duplex::net
