// Options of the device of a GPU.
#pragma once
#include <string>

namespace duplex {

/// The precision in which convolutions and linear layers compute. Sums, losses, weights and updates
/// are float32 in all of them, and so are the gradients of weights that leave the GPU.
enum class Precision {
  float32,  ///< Strict float32: no engine may round its inputs.
  tf32,     ///< Tensor cores round the inputs of products to ten bits of fraction.
  bf16      ///< Activations and their gradients are stored in bfloat16, and products are of those.
            ///< cuDNN also rounds the biases of convolutions, and the gradients of their weights
            ///< once these have been summed in float32.
};

inline std::string name_of(Precision precision) {
  switch (precision) {
    case Precision::tf32:
      return "tf32";
    case Precision::bf16:
      return "bf16";
    default:
      return "float32";
  }
}

struct GpuOptions {
  int index = 0;
  Precision precision = Precision::float32;
  bool channels_last = false;  ///< Activations and weights lie NHWC, not NCHW.
  /// Threads that have engines compiled at once; 0: one for each core that this process may use.
  int threads = 0;
  /// A network's whole forward, and its whole backward, are recorded as CUDA graphs.
  bool graphs = false;
};

}  // namespace duplex
