// Adds up the gradients of a rank's slots, which train side by side in threads of one process.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/exchange.h"
#include "layers/exchange/host_parameters.h"

namespace duplex {

/// Stands between the slots, each of which trains with an exchange of its own (slot()), and the
/// exchange of their rank, which knows one worker. Weights are awaited once, by the first slot, and
/// lie where all slots read them. A gradient is pushed on when all slots have pushed theirs: in the
/// place of the first slot's is then the sum, added up in the order of the slots, whatever order
/// they came in. Of a parameter that is exchanged as factors nothing is added: each slot has put
/// its own into the rank's (HostStaging).
///
/// The first slot's thread leads. It begins a step when it likes, and its end() returns when all
/// slots have pushed everything; the others begin a step after it (await_step), and so wait while
/// it does something else between two steps.
class SlotSums {
 public:
  /// `inner` is called by the first slot's thread, and push() by any, but by one at a time. `slots`
  /// has the parameters of each slot, whose weights are those of the first. `threads` add large
  /// gradients. Sums are multiplied by `factor`: where nobody else trains, that makes them the
  /// mean. All arguments must outlive this object.
  SlotSums(Exchange& inner, const std::vector<const HostParameters*>& slots, int threads,
           float factor = 1.0F);
  ~SlotSums();
  SlotSums(const SlotSums&) = delete;
  SlotSums& operator=(const SlotSums&) = delete;

  /// The exchange of a slot, by number from 0, which lives as long as this object.
  Exchange& slot(std::size_t number) { return *slots_[number]; }

  /// Another slot than the first calls it: returns true when the first has begun that step, counted
  /// as it counts, and false when it trains no more. Throws what fail() was given.
  bool await_step(std::uint64_t step);
  /// The first slot trains no more.
  void end();
  /// Has every wait throw this, which ended one of the slots. The first cause counts.
  void fail(const std::exception_ptr& cause);
  /// Throws what fail() was given.
  void check();

 private:
  class Slot;
  struct Parameter {
    std::vector<float*> gradients;  ///< By slot; empty: there is nothing to add.
    std::size_t count = 0;
    std::size_t arrived = 0;      ///< Slots that have pushed it in this step.
    std::size_t pieces_left = 0;  ///< That are still to be added.
    std::uint64_t here = 0;       ///< Steps whose weights have come.
  };
  /// A run of the elements of a parameter.
  struct Piece {
    std::size_t parameter = 0, from = 0, count = 0;
  };

  void begin(std::size_t slot, std::uint64_t step);
  void await(std::size_t slot, std::size_t parameter, std::uint64_t steps);
  void push(std::size_t parameter);
  void finish_step();
  void add(const Piece& piece) const;
  void pass_on(std::size_t parameter);
  void work();
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, const Condition& condition);

  Exchange& inner_;
  const float factor_;
  /// Guards all below but what is const from the constructor on, and the threads. The slots'
  /// threads and those that add take it, and hold no other lock meanwhile.
  std::mutex mutex_;
  std::condition_variable changed_;  ///< The slots' threads wait for it.
  std::condition_variable more_;     ///< Those that add wait for it.
  std::vector<Parameter> parameters_;
  std::deque<Piece> pieces_;
  std::uint64_t begun_ = 0;    ///< The last step that has begun, plus 1.
  std::size_t passed_on_ = 0;  ///< Parameters that were pushed on in this step.
  bool ended_ = false, stopped_ = false;
  std::exception_ptr failure_;
  /// One thread at a time pushes on; it takes the locks of `inner`, and mutex_ after it.
  std::mutex push_mutex_;
  std::vector<std::unique_ptr<Exchange>> slots_;
  std::vector<std::thread> threads_;
};

}  // namespace duplex
