// The training loop asks an Exchange for parameters and gives it gradients. That is all that
// differs between training alone and training with others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace duplex {

/// A parameter of a network in host memory: a named run of plain float32s, in logical order. The
/// memory must outlive the exchange that it is given to, which writes to it. Other ranks are sent
/// these bytes from where they lie, without a copy: memory of its own pages (core/mapped_memory.h)
/// makes sure that bytes that are still on their way when a run fails do not change.
struct Span {
  std::string name;
  std::size_t count = 0;
  float* weights = nullptr;
  float* gradient = nullptr;  ///< A rank that only serves needs none.
  /// The weights of a linear layer whose gradient is exchanged as its factors have these instead of
  /// a gradient: dy of this worker's samples, and behind it x.
  float* factors = nullptr;
  std::size_t factor_count = 0;  ///< Values of the factors.
};

/// Parameters have their number in the network, from 0 in forward order. The calls of one step:
/// begin(step); await(p) once for every p, before p's layer runs forward; push(p) once for every p,
/// as soon as p's gradient is complete and p's weights are no longer read, in about reverse order;
/// end().
class Exchange {
 public:
  virtual ~Exchange() = default;

  /// Returns whether await() needs nothing from another rank, and may be called for all parameters
  /// before forward, and push() for all behind backward: then both may run as a whole.
  virtual bool works_between_steps() const { return false; }

  virtual void begin(std::uint64_t step) = 0;
  /// Returns when the weights of p that belong to this step are in the memory that this exchange
  /// serves: the device's tensor, or the parameter's span.
  virtual void await(std::size_t parameter) = 0;
  /// Tells that p's gradient is there now, and that push(p) follows later in the step, when what
  /// the gradient was computed from may be gone.
  virtual void computed(std::size_t /*parameter*/) {}
  /// Hands p's gradient over; returns without waiting for the network.
  virtual void push(std::size_t parameter) = 0;
  virtual void end() = 0;
  /// Call it between two steps. Returns when that memory holds the newest weights, with which
  /// the next step begins; does nothing where the last step left none.
  virtual void await_all() {}
};

}  // namespace duplex
