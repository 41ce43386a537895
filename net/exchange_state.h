// The inside of ParameterExchange: what a rank knows of the run. Five files implement it:
// exchange.cpp what the training thread calls in each step, exchange_end.cpp how a run ends,
// exchange_frames.cpp what connections and store call, exchange_pace.cpp how fast it sends,
// exchange_trouble.cpp how waiting in vain and failing end.
#pragma once
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "net/connection.h"
#include "net/exchange.h"
#include "net/own_lane.h"
#include "net/pace.h"
#include "net/queued_semaphore.h"

namespace duplex::net {

/// How often a wait looks whether something is overdue.
constexpr std::chrono::milliseconds look_every{50};

class ParameterExchange::State final : public ConnectionOwner {
 public:
  State(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh);
  ~State() override;
  /// Apart from the constructor, so that the destructor runs if a thread cannot be had.
  void start();

  // What the training thread calls: as ParameterExchange has it.

  void begin(std::uint64_t step);
  void await(std::size_t p);
  void push(std::size_t p);
  void end();
  void await_all();
  std::vector<std::string> finish(const Report& report);
  std::vector<TraceEvent> trace();
  std::vector<Store::Staleness> staleness() const;
  std::vector<int> lost() const;
  const std::vector<ConnectionBytes>& counted() const { return counted_; }
  bool is_worker() const { return topology_.is_worker(rank_); }
  int rank() const { return rank_; }
  const ShardMap& shards() const { return map_; }
  const Ledger& ledger() const { return ledger_; }

  // What the connections' threads call.

  void* destination(int peer, const FrameHeader& header) override;
  void fill(int peer, const FrameHeader& header, void* payload) override;
  void received(int peer, const FrameHeader& header) override;
  void sent(int peer, const FrameHeader& header) override;
  void reported(int peer, std::string report) override;
  void asked(int peer) override;
  void released(int peer) override;
  void window_changed() override;
  void told_window(int peer, std::uint64_t bytes) override;
  void told_pace(int peer, std::uint64_t pace) override;
  void wants_weights_turn(int peer) override;
  void steps_aside(int peer, bool waits) override;
  void leaves_weights_turn(int peer) override;
  void done(int peer) override;
  void parted(int peer) override;
  void failed(int peer, std::exception_ptr cause) override;

 private:
  /// Weights of a chunk on their way to a worker.
  struct Incoming {
    std::uint64_t step = 0;
    enum State { due, arriving, here } state = due;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  bool is_async() const { return spec_.sync == Sync::none; }
  std::string name_of_rank(int rank) const;

  void make_store();
  void connect(Link link);

  bool may_pace() const;
  void find_pace();
  void keep_pace(std::uint64_t pace);

  void await_last_weights();
  void take_own_weights();
  void wait_until_idle();
  void wait_for_goodbyes();

  void* destination_of_gradient(int peer, std::size_t chunk, const FrameHeader& header);
  void publish(std::size_t chunk, std::uint64_t step, int worker);
  void send_weights(int to, const Chunk& chunk, std::uint64_t step, const float* values);
  void take(std::size_t chunk);
  void weights_are_here(std::size_t chunk);
  void one_less(std::size_t parameter);
  void note(const StoreWork& work);
  void note(TraceEvent::Kind kind, std::uint32_t parameter, std::uint32_t chunk, std::int64_t from,
            std::int64_t to);

  bool is_lost(int rank) const;
  void lose(int peer, const std::exception_ptr& cause);
  void fail(const std::exception_ptr& cause);
  Error error_of(const Store::Overdue& overdue) const;
  Error left_early(int rank) const;
  std::exception_ptr trouble_of_waiting(std::unique_lock<std::mutex>& lock);
  std::exception_ptr trouble_with(std::size_t p, bool overdue,
                                  std::chrono::milliseconds allowed) const;

  const ExchangeSpec spec_;
  const std::vector<Span> spans_;
  const Topology topology_;
  const int rank_;
  const ShardMap map_;
  const std::size_t head_start_;    ///< Of gradients before weights.
  const std::vector<int> workers_;  ///< Ranks that train.
  Ledger ledger_;
  TraceWindow window_;
  ReceiveWindow receive_window_;
  Pace pace_;                             ///< The hub's training thread's,
  std::uint64_t told_pace_ = 0;           ///< and what it has told the others.
  std::vector<ConnectionBytes> counted_;  ///< After finish.
  std::unique_ptr<Store> store_;

  std::uint64_t step_ = 0;  ///< The training thread's, like in_step_.
  bool in_step_ = false;
  bool finished_ = false;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Incoming> incoming_;      ///< By chunk.
  std::vector<std::size_t> remaining_;  ///< By parameter: what await still waits for.
  std::vector<std::uint64_t> pushed_;   ///< By parameter: steps whose gradient was pushed.
  std::vector<bool> parted_;            ///< By rank: said goodbye, or lost.
  std::vector<bool> lost_;              ///< By rank.
  std::vector<std::string> reports_;    ///< By rank.
  std::exception_ptr failure_;

  /// Of an owner, with semaphores on: the workers' ranks.
  QueuedSemaphore gradients_turn_, weights_turn_;
  std::unique_ptr<OwnLane> own_lane_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< By rank; the first to be destroyed.
};

}  // namespace duplex::net
