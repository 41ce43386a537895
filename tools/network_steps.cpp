#include "tools/network_steps.h"

#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/device.h"
#include "tools/finite.h"

namespace duplex::tools {
namespace {

/// Steps of a device that computes while the host goes on: the next batch comes, and is copied, in
/// the meantime.
class Stepper {
 public:
  Stepper(Network& network, datasets::BatchLoader& loader, std::uint64_t seed)
      : network_(network), loader_(loader), seed_(seed) {
    for (const auto& room : loader.rooms())
      pinned_.push_back(network.device().pin(room.pixels, room.bytes));
  }

  StepOutcome step(std::uint64_t number, Exchange& exchange) {
    Device& device = network_.device();
    if (batch_ == nullptr) next();
    StepOutcome outcome;
    outcome.have_data = clock_ns();
    Pass pass;
    pass.seed = seed_;
    pass.first_sample = batch_->first_sample;
    pass.labels = batch_->labels;
    const bool look = looks_for_nan(number);
    exchange.begin(number);
    forward(pass, look, exchange);
    network_.backward(&exchange);
    if (device.asynchronous()) {
      next();
    } else {
      batch_ = nullptr;
    }
    network_.synchronize();
    exchange.end();
    outcome.loss = network_.loss();
    if (look && std::isfinite(*outcome.loss))
      require_finite(network_, "step " + std::to_string(number));
    if (device.asynchronous()) outcome.waits = device.copy_waits();
    return outcome;
  }

 private:
  void forward(const Pass& pass, bool look, Exchange& exchange) {
    std::optional<KeepingNan> keeping;
    if (look) keeping.emplace(network_.device());
    network_.forward(batch_->pixels, pass, &exchange);
  }

  void next() {
    if (copy_) copy_->wait();  // The loader takes back what it gave before.
    batch_ = &loader_.next();
    const Shape shape = loader_.shape();
    copy_ = network_.device().prefetch(batch_->pixels,
                                       static_cast<std::size_t>(shape.elements()) * sizeof(float));
  }

  Network& network_;
  datasets::BatchLoader& loader_;
  std::uint64_t seed_;
  std::vector<std::shared_ptr<void>> pinned_;
  const datasets::Batch* batch_ = nullptr;
  std::unique_ptr<Transfer> copy_;
};

}  // namespace

StepRunner network_steps(Network& network, datasets::BatchLoader& loader, std::uint64_t seed) {
  const auto stepper = std::make_shared<Stepper>(network, loader, seed);
  return
      [stepper](std::uint64_t step, Exchange& exchange) { return stepper->step(step, exchange); };
}

}  // namespace duplex::tools
