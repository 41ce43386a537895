#include "layers/exchange/host_staging.h"

namespace duplex {

HostStaging::HostStaging(Network& network, const HostParameters& host, Exchange& inner)
    : network_(network), host_(host), inner_(inner), pinned_(host.pin(network.device())) {
  Device& device = network.device();
  if (!device.asynchronous()) return;
  // Every copy is made once here, so that the device allocates what it needs before the first step.
  for (std::size_t p = 0; p < host.spans().size(); ++p) {
    device.start_upload(network.parameters()[p].weights, host.spans()[p].weights);
    device.start_download(host.spans()[p].gradient, network.parameters()[p].gradient)->wait();
  }
  network.synchronize();
  device.copy_waits();
}

void HostStaging::await(std::size_t parameter) {
  inner_.await(parameter);
  network_.named({}, [&] {
    network_.device().start_upload(network_.parameters()[parameter].weights,
                                   host_.spans()[parameter].weights);
  });
}

void HostStaging::push(std::size_t parameter) {
  push(parameter, network_.parameters()[parameter].gradient);
}

void HostStaging::push(std::size_t parameter, const Tensor& values) {
  network_.named({}, [&] {
    queue_.add(network_.device().start_download(host_.spans()[parameter].gradient, values),
               [this, parameter] { inner_.push(parameter); });
  });
}

void HostStaging::end() {
  queue_.wait();
  inner_.end();
}

void HostStaging::await_all() {
  for (std::size_t p = 0; p < host_.spans().size(); ++p) await(p);
}

}  // namespace duplex
