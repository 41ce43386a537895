#include "layers/exchange/host_staging.h"

#include <utility>

namespace duplex {

HostStaging::HostStaging(Network& network, const HostParameters& host, Exchange& inner,
                         Pushes pushes)
    : network_(network), device_(network.device()), inner_(inner), pinned_(host.pin(device_)) {
  for (std::size_t p = 0; p < host.spans().size(); ++p) {
    const Parameter& on_device = network.parameters()[p];
    const Span& on_host = host.spans()[p];
    staged_.push_back({on_device.weights,
                       pushes == Pushes::weights ? on_device.weights : on_device.gradient,
                       on_host.weights, on_host.gradient});
  }
  if (!device_.asynchronous()) return;
  // Every copy is made once here, so that the device allocates what it needs before the first step.
  for (Staged& staged : staged_) {
    device_.start_upload(staged.weights, staged.host_weights);
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
  const Staged& staged = staged_[parameter];
  std::unique_ptr<Transfer> download;
  network_.named({},
                 [&] { download = device_.start_download(staged.host_gradient, staged.pushed); });
  if (download)
    queue_.add(std::move(download), [this, parameter] { inner_.push(parameter); });
  else
    inner_.push(parameter);
}

void HostStaging::end() {
  queue_.wait();
  inner_.end();
}

void HostStaging::await_all() {
  for (std::size_t p = 0; p < staged_.size(); ++p) await(p);
}

}  // namespace duplex
