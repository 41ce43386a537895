// The fluid model: links that flows share, in virtual time. Bytes flow steadily, as water does, and
// every flow has its max-min fair rate (Bertsekas and Gallager, Data Networks, 6.5.2), by weight:
// no flow could have more without another having less that has no more for its weight. Long TCP
// connections behind a switch share it so.
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

  /// `burst`: bytes that the port saves while nothing flows there, and then lets pass at once, as
  /// the token bucket of a shaped link does; it has them at first.
  Index add_port(double bytes_per_second, double burst = 0.0);
  /// Adds a flow, idle at first.
  Index add_flow(Index out, Index in);

  /// The flow carries `bytes` more from now on; it must be idle, or its last bytes have just ended.
  /// A flow that was idle moves from the next share() on.
  void carry(Index index, double bytes, double now);
  /// Sets how much of a port the flow takes beside others; 1 at first. Counts from the next share()
  /// on.
  void set_weight(Index index, double weight);
  /// Sets the most that the flow's rate may be; infinite at first. Counts from the next share() on.
  void set_limit(Index index, double bytes_per_second);
  /// Returns whether the flow's rate is at that limit.
  bool is_limited(Index index) const { return flows_[index].rate >= flows_[index].limit; }
  /// The flow is idle from now on; bytes under way are dropped. Does nothing if it is idle.
  void stop(Index index, double now);
  /// Computes new rates, if flows have begun or stopped since the last time.
  void share(double now);

  /// Returns when the next flow ends what it carries; infinity: none does. Call it after share().
  double next_end() const;
  /// Takes the flow that next_end() is about; it keeps its rate until carry() or stop().
  Index take_ended();

  std::uint64_t sharings() const { return sharings_; }  ///< How often rates were computed.

 private:
  static constexpr Index none = ~Index{0};

  struct Port {
    double capacity = 0.0;
    double burst = 0.0;  ///< The most that may be saved.
    double saved = 0.0;  ///< Bytes that may pass at once, at `since`.
    double since = 0.0;  ///< When something flowed there for the last time, unless it does now.
    std::vector<Index> flows;  ///< Flows that are not idle.
    double weight = 0.0;       ///< Sum of their weights.
    double left = 0.0;         ///< While rates are computed: capacity not given away.
    Index open = 0;            ///< While rates are computed: flows without a rate yet.
    double open_weight = 0.0;  ///< Sum of the open flows' weights.
    double level() const { return left / open_weight; }
  };
  struct Flow {
    Index ports[2] = {none, none};
    Index places[2] = {none, none};  ///< Places in the ports' lists.
    Index heap_place = none;
    double weight = 1.0;
    double limit = std::numeric_limits<double>::infinity();
    double left = 0.0;  ///< Bytes at `since`.
    double since = 0.0;
    double rate = 0.0;
    double end = 0.0;
    std::uint64_t round = 0;  ///< Number of the share() that found its rate.
    bool active() const { return places[0] != none; }
  };

  static double saved(const Port& port, double now);
  double pass_at_once(const Flow& flow, double bytes, double now);
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
  std::vector<std::pair<double, Index>> levels_;  ///< Ports' levels; flows' behind all ports'.
  std::size_t ends_open_ = 0;  ///< While rates are computed: two for every flow without one yet.
  int limited_ = 0;            ///< Flows that have a limit.
  bool changed_ = false;
  std::uint64_t sharings_ = 0;
};

}  // namespace duplex::tools::simulation
