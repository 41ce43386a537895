// The rendezvous is how the ranks of a run find each other: they listen, connect and shake hands,
// and tell who did not come or was turned away.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

/// How a run that goes on takes lost ranks back, one after the other.
struct LateRanks {
  std::function<bool(int rank)> awaited;  ///< Any thread may call it.
  std::function<bool()> over;             ///< Nobody is waited for any more.
  std::int64_t epoch_ns = 0;              ///< When the run began.
};

/// Makes the links of a rank. One thread accepts and watches; each peer is connected to, or shakes
/// hands, in a thread of its own, so that a silent one delays nobody.
class Rendezvous {
 public:
  /// `spec` and `listener` must outlive it; `listener` may be empty.
  Rendezvous(MeshSpec& spec, Listener& listener);
  /// The same for one of the ranks that a run waits for late.
  Rendezvous(MeshSpec& spec, Listener& listener, LateRanks late);

  /// The links in order of rank. Throws as Mesh::join does.
  std::vector<Link> run();
  /// The link of the first rank that comes late, or of several; none: nobody is waited for any
  /// more. Whoever does not fit is turned away, and ends nothing.
  std::vector<Link> run_late();
  /// Call it after run().
  const CoordinatorTime& coordinator_time() const { return coordinator_time_; }

 private:
  struct PendingPeer {
    FrameStream stream;
    std::string host;  ///< Where it connects from.
    std::thread thread;
    bool done = false;      ///< Under the mutex. The stream has moved on or is of no more use.
    bool accepted = false;  ///< Under the mutex. It has proved to be an awaited rank.
    bool given_up = false;  ///< Under the mutex. It is cut off and becomes no link.

    void cut_off() {
      given_up = true;
      stream.socket().shut_down();
    }
  };

  std::vector<Link> meet();
  void call_all();
  void listen();
  void listen_for_refusals();
  void open_listener();
  bool over() const;
  bool linked(int rank) const;
  void log(const std::string& line);
  /// Keeps the failure if it is the first. Call it under the mutex.
  void fail(std::exception_ptr failure);
  void add(HandshakeResult result, FrameStream stream);

  void watch();  ///< The watching thread: accepts peers, and joins the threads of those that are
                 ///< done.
  void accept_peers();
  void make_room();
  /// Joins the threads of peers that are done, or, with `all`, of every peer: it cuts off those
  /// that still shake hands, but gives ranks that have been accepted a moment to finish, since
  /// these would not come again to be told why. Releases the lock while it waits.
  void reap(std::unique_lock<std::mutex>& lock, bool all);
  void receive(PendingPeer& peer);
  void await_loss(std::unique_lock<std::mutex>& lock, int rank, Deadline limit);
  /// Ends the run if a linked rank has ended it or is lost while others are still awaited.
  void watch_links();
  double waited() const;
  Error missing() const;

  /// Connects to a rank, again and again until it is up.
  void call(int rank);
  void tell_unlinked(const std::exception_ptr& failure);

  MeshSpec& spec_;
  Listener& listener_;
  Deadline deadline_;
  Self self_;
  const std::optional<LateRanks> late_;
  CoordinatorTime coordinator_time_;
  std::set<int> awaited_, called_;

  /// Guards all below. The watching thread and those that connect or shake hands take it.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Link> links_;
  std::map<int, std::string> claims_;  ///< Where each rank that proved its number connected from.
  std::list<PendingPeer> pending_;
  std::vector<std::string> turned_away_;
  std::map<int, std::string> refusals_;  ///< Why a rank that is called has not been reached.
  std::map<int, Socket*> calling_;       ///< The connections to these ranks that shake hands.
  std::exception_ptr failure_;
  /// A linked rank is lost. It may be about to tell why it cannot take part, and ends this one at
  /// this time if it does not.
  std::exception_ptr lost_;
  Deadline lost_until_;
  bool told_ = false;  ///< Another rank's word is what ends this one.
};

}  // namespace duplex::net
