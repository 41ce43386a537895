#include "tools/parts/part_computation.h"

#include <cmath>
#include <string>
#include <utility>

#include "core/clock.h"
#include "tools/training/divergence.h"

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
  void progress() override { inner_.progress(); }

  double waited() const { return duplex::seconds(waited_ns_); }

 private:
  MapExchange& inner_;
  std::int64_t waited_ns_ = 0;
};

}  // namespace

PartComputation::PartComputation(PartRunner& runner, const PartRunner::Source& source,
                                 MapExchange& maps, LossRoutes routes, Network* network,
                                 std::function<bool(std::uint64_t step)> looks)
    : runner_(runner),
      source_([this, source] {
        const std::int64_t begin = clock_ns();
        const MicroBatch batch = source();
        data_ns_ += clock_ns() - begin;
        return batch;
      }),
      maps_(maps),
      routes_(std::move(routes)),
      network_(network),
      looks_(std::move(looks)) {}

void PartComputation::run(Exchange& exchange, std::uint64_t step) {
  TimedMaps maps(maps_);
  outcome_ = {};
  data_ns_ = 0;
  const bool look = network_ != nullptr && looks_(step);
  auto keeping_nan = look ? std::make_unique<KeepingNan>(network_->device()) : nullptr;
  double loss = runner_.run_step(step, source_, exchange, maps);
  keeping_nan.reset();
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
  if (network_ != nullptr) outcome_.loss = loss;
  outcome_.maps = maps.waited();
  outcome_.data = duplex::seconds(data_ns_);
  if (look && std::isfinite(loss)) require_finite(*network_, "step " + std::to_string(step));
}

}  // namespace duplex::tools
