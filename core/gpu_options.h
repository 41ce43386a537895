// What a device of a GPU can be asked for.
#pragma once
#include <string>

namespace duplex {

/// How convolutions and linear layers compute. Sums, losses, weights and updates are float32 in all
/// of them, and so are the gradients of weights that leave the GPU.
enum class Precision {
  float32,  ///< Strictly: no engine that rounds its inputs.
  tf32,     ///< Tensor cores, which round the inputs of products to ten bits of fraction.
  bf16      ///< Activations and their gradients are stored in bfloat16, products are of those; and
        ///< cuDNN rounds biases and the gradients of weights of convolutions, but their sums not.
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
};

}  // namespace duplex
