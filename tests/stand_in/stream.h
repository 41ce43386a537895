// The stand-in's streams and events. A stream is a thread that works off what it is asked for, and
// keeps the time of its clock (clock.h).
#pragma once
#include <driver_types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/stand_in/clock.h"

namespace duplex::stand_in {

/// Nothing is done any more from when the GPU has broken down.
inline std::atomic<bool> broken{false};

/// A thread of the host has the time of the latest work that it has waited for.
inline thread_local Time host_time = 0;

/// The place in a stream that an event marks.
class Mark {
 public:
  /// The stream has come here.
  void pass(Time when);
  bool passed() const;
  /// Waits until the stream comes here, or the GPU breaks down. Returns the stream's time here.
  Time wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool passed_ = false;
  Time when_ = 0;
};

}  // namespace duplex::stand_in

/// Work that a stream was asked for.
struct CUgraph_st {
  using Time = duplex::stand_in::Time;
  /// Gets the stream's time before it, and returns that behind it.
  using Job = std::function<Time(Time)>;

  std::vector<Job> jobs;
  bool spoilt = false;
};
struct CUgraphExec_st {
  CUgraph_st graph;
};

struct CUstream_st {
  using Time = duplex::stand_in::Time;

  CUstream_st() : worker_([this] { work(); }) {}
  ~CUstream_st();
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;

  /// Queues work. Its stream's time then goes on by `takes`.
  void add(Time takes, std::function<void()> work);
  /// Queues a mark of the stream's time, or a wait for a mark of another stream.
  void add_mark(std::shared_ptr<duplex::stand_in::Mark> mark);
  void add_wait(std::shared_ptr<const duplex::stand_in::Mark> mark);
  /// Work that is asked for until end_capture() is not queued, but kept; repeat() queues it.
  void begin_capture();
  /// Something was asked for meanwhile that cannot be captured.
  void spoil_capture();
  /// Returns null if the capture was spoilt.
  std::unique_ptr<CUgraph_st> end_capture();
  void repeat(const CUgraph_st& graph);
  /// Waits for all that is queued, and has the calling thread have waited for it.
  void wait();
  /// Returns whether there is nothing to wait for. The calling thread has waited for it then.
  bool idle();

 private:
  using Job = CUgraph_st::Job;

  void queue(Job job);
  void work();
  bool is_idle() const { return jobs_.empty() && !busy_; }
  void pass_time_on() const;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::unique_ptr<CUgraph_st> captured_;  ///< Set while it captures.
  Time now_ = 0;
  bool busy_ = false, ending_ = false;
  std::thread worker_;
};

/// An event that is recorded anew forgets its old mark; whoever waits already waits for that one.
struct CUevent_st {
  std::shared_ptr<duplex::stand_in::Mark> mark;
  bool sleeps = false;  ///< The host sleeps in waits for it.
  bool timed = true;    ///< It may be asked for the time.
};
