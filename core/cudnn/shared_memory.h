// Memory of the GPU that all operations share, because its content is valid during one call only.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace duplex::cudnn {

class Context;

/// A reservation says how much shared memory an operation has reserved. The memory is given back
/// when the last copy is gone.
using Reservation = std::shared_ptr<const std::size_t>;

/// It is as large as the largest reservation. One thread at a time may use it.
class SharedMemory {
 public:
  /// Makes room for so many bytes, which may move the memory.
  Reservation reserve(const Context& context, std::size_t bytes);
  /// Frees what nobody has reserved any more, which may move the memory.
  void trim(const Context& context);
  void* data() const { return buffer_.data(); }

 private:
  std::size_t reserved();

  Buffer buffer_;
  std::vector<std::weak_ptr<const std::size_t>> reserved_;
};

}  // namespace duplex::cudnn
