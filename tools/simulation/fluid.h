// Links that flows share, in virtual time: bytes flow steadily, as water does, and every flow has
// its max-min fair rate (Bertsekas and Gallager, Data Networks, 6.5.2), by weight: no flow could
// have more without one having less that has no more for its weight. So do long TCP connections
// behind a switch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace duplex::tools::simulation {

/// Ports are the directions of ranks' links; a flow goes from one port to another. Times are
/// seconds and never go back.
class Fluid {
 public:
  using Index = std::uint32_t;

  Index add_port(double bytes_per_second);
  /// Idle at first.
  Index add_flow(Index out, Index in);

  /// `bytes` more, now: of a flow that is idle, or whose last ones have just ended. One that was
  /// idle moves from the next share() on.
  void carry(Index index, double bytes, double now);
  /// How much of a port a flow takes beside others: 1 unless set. Counts from the next share() on.
  void set_weight(Index index, double weight);
  /// A flow's rate is at most this: infinite unless set. Counts from the next share() on.
  void set_limit(Index index, double bytes_per_second);
  /// Whether that is what it has.
  bool is_limited(Index index) const { return flows_[index].rate >= flows_[index].limit; }
  /// The flow is idle from now on; what was under way is dropped. No change where it is idle.
  void stop(Index index);
  /// New rates, if flows have begun or stopped since the last time.
  void share(double now);

  /// When the next flow ends what it carries; infinity: none does. After share().
  double next_end() const;
  /// The flow that next_end() is of; it keeps its rate until carry() or stop().
  Index take_ended();

  std::uint64_t sharings() const { return sharings_; }  ///< How often rates were computed.

 private:
  static constexpr Index none = ~Index{0};

  struct Port {
    double capacity = 0.0;
    std::vector<Index> flows;  ///< That are not idle,
    double weight = 0.0;       ///< and their weights.
    double left = 0.0;         ///< While rates are computed: capacity not given away,
    Index open = 0;            ///< flows that have no rate yet,
    double open_weight = 0.0;  ///< and their weights.
    double level() const { return left / open_weight; }
  };
  struct Flow {
    Index ports[2] = {none, none};
    Index places[2] = {none, none};  ///< In the ports' lists.
    Index heap_place = none;
    double weight = 1.0;
    double limit = std::numeric_limits<double>::infinity();
    double left = 0.0;  ///< Bytes at `since`.
    double since = 0.0;
    double rate = 0.0;
    double end = 0.0;
    std::uint64_t round = 0;  ///< In which share() found its rate.
    bool active() const { return places[0] != none; }
  };

  void fill(Index port, double level, double now);
  void fix(Index index, double rate, double now);
  void set_rate(Index index, double rate, double now);

  bool before(Index a, Index b) const;
  void rise(Index place);
  void sink(Index place);
  void put(Index place, Index flow);
  void push(Index flow);
  void remove(Index flow);

  std::vector<Port> ports_;
  std::vector<Flow> flows_;
  std::vector<Index> heap_;                       ///< Flows with a rate, by when they end.
  std::vector<std::pair<double, Index>> levels_;  ///< Of ports; of flows behind all ports.
  std::size_t ends_open_ = 0;  ///< While rates are computed: two for every flow that has none yet.
  int limited_ = 0;            ///< Flows that have a limit.
  bool changed_ = false;
  std::uint64_t sharings_ = 0;
};

}  // namespace duplex::tools::simulation
