#include "layers/exchange/host_staging.h"

#include <utility>

namespace duplex {

namespace {

/// A copy that is done.
class Done final : public Transfer {
  void wait() override {}
};

}  // namespace

HostStaging::HostStaging(Network& network, const HostParameters& host, Exchange& inner,
                         Pushes pushes, int slot, int slots)
    : network_(network),
      device_(network.device()),
      inner_(inner),
      slot_(slot),
      slots_(slots),
      pinned_(host.pin(device_)) {
  for (std::size_t p = 0; p < host.spans().size(); ++p) {
    const Parameter& on_device = network.parameters()[p];
    const Span& on_host = host.spans()[p];
    staged_.push_back({on_device.weights,
                       pushes == Pushes::weights ? on_device.weights : on_device.gradient,
                       on_host.weights, on_host.gradient});
  }
  for (const Model::Linear& layer : host.factored()) {
    network.leave_gradients(layer.node);
    for (const std::size_t p : {layer.weights, layer.bias}) staged_[p].factored = true;
    staged_[layer.weights].factors = host.spans()[layer.weights].factors;
    staged_[layer.weights].layer = layer.node;
  }
  if (!device_.asynchronous()) return;
  // Every copy is made once here, so that the device allocates what it needs before the first step.
  for (Staged& staged : staged_) {
    device_.start_upload(staged.weights, staged.host_weights);
    if (staged.factored) continue;
    device_.start_download(staged.host_gradient, staged.pushed)->wait();
  }
  network_.synchronize();
  device_.copy_waits();
}

void HostStaging::await(std::size_t parameter) {
  inner_.await(parameter);
  Staged& staged = staged_[parameter];
  network_.named({}, [&] { device_.start_upload(staged.weights, staged.host_weights); });
}

void HostStaging::push(std::size_t parameter) {
  Staged& staged = staged_[parameter];
  if (staged.factored) {
    if (!staged.downloaded) download_factors(network_, staged, slot_);
    staged.downloaded = false;
    if (device_.asynchronous())  // One thread pushes.
      queue_.add(std::make_unique<Done>(), [this, parameter] { inner_.push(parameter); });
    else
      inner_.push(parameter);
    return;
  }
  std::unique_ptr<Transfer> download;
  network_.named({},
                 [&] { download = device_.start_download(staged.host_gradient, staged.pushed); });
  if (download)
    queue_.add(std::move(download), [this, parameter] { inner_.push(parameter); });
  else
    inner_.push(parameter);
}

void HostStaging::computed(std::size_t parameter) {
  Staged& staged = staged_[parameter];
  if (!staged.factored) return;
  download_factors(network_, staged, slot_);
  staged.downloaded = true;
}

bool HostStaging::computed_by(const Network& network, std::size_t parameter, std::int64_t slot) {
  Staged& staged = staged_[parameter];
  if (!staged.factored) return false;
  download_factors(network, staged, slot);
  staged.downloaded = true;
  return true;
}

/// The dy of all slots come first, then their x, each in the order of the slots, which is that of
/// the samples. Does nothing for a bias, whose factors are those of the weights.
void HostStaging::download_factors(const Network& network, const Staged& staged,
                                   std::int64_t slot) {
  if (staged.factors == nullptr) return;
  const auto [dy, x] = network.factors_of(staged.layer);
  if (!dy) return;  // No loss depends on the layer, and the factors are zero.
  network.named(staged.layer, [&, &dy = dy, &x = x] {
    const std::int64_t outputs = dy.desc.shape.elements(), inputs = x.desc.shape.elements();
    device_.download(staged.factors + slot * outputs, dy);
    device_.download(staged.factors + slots_ * outputs + slot * inputs, x);
  });
}

void HostStaging::end() {
  queue_.wait();
  inner_.end();
}

void HostStaging::await_all() {
  for (std::size_t p = 0; p < staged_.size(); ++p) await(p);
}

}  // namespace duplex
