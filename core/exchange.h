// What the training loop asks for parameters and gives gradients to: all that differs between
// training alone and training with others.
#pragma once
#include <cstddef>
#include <cstdint>

namespace duplex {

/// Parameters go by their number in the network, 0 first in forward order. The calls of one step:
/// begin(step); await(p) once for every p, before p's layer runs forward; push(p) once for every p,
/// as soon as p's gradient is complete and p's weights are no longer read, in about reverse order;
/// end().
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual void begin(std::uint64_t step) = 0;
  /// Returns when the weights of p that belong to this step are in the device's tensor.
  virtual void await(std::size_t parameter) = 0;
  /// Hands p's gradient over; returns without waiting for any transfer.
  virtual void push(std::size_t parameter) = 0;
  virtual void end() = 0;
  /// For use between two steps. Returns when the device's tensors hold the newest weights, with
  /// which the next step begins; does nothing where the last step left none.
  virtual void await_all() {}
};

}  // namespace duplex
