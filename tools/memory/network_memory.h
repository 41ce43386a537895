// The memory that a network takes, by the code that would allocate it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "layers/network.h"
#include "tools/memory/gpu_sizes.h"
#include "tools/setup/device_spec.h"

namespace duplex::tools {

/// Bytes of one layer. Activations and gradients of different layers share memory, so their sum is
/// more than the network's arena.
struct LayerMemory {
  std::string name;
  std::size_t parameters = 0;  ///< Weights, their copy and gradients, running statistics.
  std::size_t activation = 0;  ///< Its output.
  std::size_t gradient = 0;    ///< What is allocated for the gradients by its output.
  std::size_t kept = 0;        ///< What its operations keep from forward to backward.
};

/// Bytes of a network that trains. On a GPU all of it but `code` is the GPU's memory.
struct NetworkMemory {
  std::size_t weights = 0;  ///< With the gaps between parameters, which gradients have, too.
  std::size_t rounded = 0;  ///< Their copy that operations read rounded (Device::keep_rounded).
  std::size_t gradients = 0;
  std::size_t statistics = 0;  ///< Running statistics.
  std::size_t arena = 0;       ///< Activations, and the gradients by them, of all copies.
  OperationMemory operations;
  std::size_t largest = 0;  ///< The largest parameter, as plain floats.
  std::size_t copies = 0;   ///< On a GPU: that of those that are not plain there.
  std::size_t code = 0;     ///< How much this process has grown by making the operations.
  std::int64_t batch = 0;
  std::size_t pixels = 0;  ///< A batch of images, as floats.
  std::vector<LayerMemory> layers;
};

/// So many networks of one model are looked at together.
struct NetworkCopies {
  std::int64_t batch = 1;
  /// Networks with activations of their own, and the same parameters.
  std::uint64_t count = 1;
  bool training = true;  ///< Else they only infer.
};

/// Returns what the networks take. It makes their operations, and no memory for their tensors.
/// Throws Error as Network does.
NetworkMemory network_memory(const Model& model, const DeviceSpec& computing,
                             const NetworkCopies& copies);

/// Returns whether the specification names a GPU.
bool is_gpu(const DeviceSpec& computing);

}  // namespace duplex::tools
