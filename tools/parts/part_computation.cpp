#include "tools/parts/part_computation.h"

#include <utility>

#include "core/clock.h"

namespace duplex::tools {
namespace {

/// Passes everything on, and takes the time of waits.
class TimedMaps final : public MapExchange {
 public:
  explicit TimedMaps(MapExchange& inner) : inner_(inner) {}

  float* room(const MapMessage& message) override { return inner_.room(message); }
  void send(const MapMessage& message) override { inner_.send(message); }
  bool arrived(const MapMessage& message) const override { return inner_.arrived(message); }
  std::uint64_t arrivals() const override { return inner_.arrivals(); }
  void wait_for_more(std::uint64_t known) override {
    const std::int64_t begin = clock_ns();
    inner_.wait_for_more(known);
    waited_ns_ += clock_ns() - begin;
  }
  const float* take(const MapMessage& message) override { return inner_.take(message); }
  void release(const MapMessage& message) override { inner_.release(message); }

  double waited() const { return duplex::seconds(waited_ns_); }

 private:
  MapExchange& inner_;
  std::int64_t waited_ns_ = 0;
};

}  // namespace

PartComputation::PartComputation(PartRunner& runner, PartRunner::Source source, MapExchange& maps,
                                 LossRoutes routes, bool replays)
    : runner_(runner),
      source_(std::move(source)),
      maps_(maps),
      routes_(std::move(routes)),
      replays_(replays) {}

void PartComputation::run(Exchange& exchange, std::uint64_t step) {
  TimedMaps maps(maps_);
  outcome_ = {};
  double loss = runner_.run_step(step, source_, exchange, maps);
  if (routes_.leaving) {
    const MapMessage message{*routes_.leaving, false, step};
    *maps.room(message) = static_cast<float>(loss);
    maps.send(message);
  }
  for (const std::size_t route : routes_.coming) {
    const MapMessage message{route, false, step};
    loss += double{*await(maps, message)};
    maps.release(message);
  }
  if (!replays_) outcome_.loss = loss;
  outcome_.maps = maps.waited();
}

}  // namespace duplex::tools
