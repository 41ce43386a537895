#include "tools/parts/part_replay.h"

#include "core/clock.h"
#include "core/map_exchange.h"
#include "layers/parts/crossing.h"
#include "tools/training/replay_clock.h"

namespace duplex::tools {
namespace {

/// The micro-batches of a rank have this in common.
struct Processor {
  Model model;
  LayerTimes times;
  LayerObserver observer;
  ReplayClock clock;
};

class ReplayedLayers final : public PartLayers {
 public:
  explicit ReplayedLayers(std::shared_ptr<Processor> processor)
      : processor_(std::move(processor)) {}

  void begin(const float*, const ForwardContext& context) override {
    context_ = context;
    processor_->clock.end_wait();
  }
  void forward(std::size_t layer) override {
    if (const auto* receive = of<ReceiveLayer>(layer)) {
      const MapMessage message{receive->transfer(), false, context_.micro_batch};
      await(*context_.maps, message);
      context_.maps->release(message);
    }
    processor_->clock.end_wait();  // For a map, or for weights.
    run(layer, Phase::forward);
    if (const auto* send = of<SendLayer>(layer))
      for (const SendLayer::Piece& piece : send->pieces()) leave({piece.transfer, false, 0});
  }
  void begin_backward() override {}
  void backward(std::size_t layer) override {
    if (const auto* send = of<SendLayer>(layer))
      for (const SendLayer::Piece& piece : send->pieces()) {
        if (!piece.gradient) continue;
        const MapMessage message{piece.transfer, true, context_.micro_batch};
        await(*context_.maps, message);
        context_.maps->release(message);
        processor_->clock.end_wait();
      }
    run(layer, Phase::backward);
    const auto* receive = of<ReceiveLayer>(layer);
    if (receive != nullptr && receive->traits().returns_gradient)
      leave({receive->transfer(), true, 0});
  }
  double loss() override { return 0.0; }
  void synchronize() override {}

 private:
  template <class Kind>
  const Kind* of(std::size_t layer) const {
    return dynamic_cast<const Kind*>(processor_->model.nodes()[layer].layer.get());
  }
  void leave(MapMessage message) {
    message.micro_batch = context_.micro_batch;
    context_.maps->room(message);
    context_.maps->send(message);
  }
  void run(std::size_t layer, Phase phase) {
    const LayerTimes& times = processor_->times;
    const double seconds = (phase == Phase::forward ? times.forward : times.backward)[layer];
    if (seconds <= 0.0) return;
    const auto [begin, end] = processor_->clock.run(seconds);
    if (processor_->observer) processor_->observer(layer, phase, begin, end);
  }

  std::shared_ptr<Processor> processor_;
  ForwardContext context_;
};

}  // namespace

std::vector<std::unique_ptr<PartLayers>> replayed_layers(const NetworkPart& part, LayerTimes times,
                                                         std::uint64_t count,
                                                         LayerObserver observer) {
  const auto processor =
      std::make_shared<Processor>(Processor{part.model, std::move(times), std::move(observer), {}});
  std::vector<std::unique_ptr<PartLayers>> slots;
  while (slots.size() < count) slots.push_back(std::make_unique<ReplayedLayers>(processor));
  return slots;
}

}  // namespace duplex::tools
