// Describes a sum of gradients to the kernels that compute it.
#pragma once
#include <string>
#include <vector>

#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/layout.h"
#include "core/error.h"

namespace duplex::cudnn {

/// Throws Error for more inputs than a kernel takes.
template <class Value>
MaskedSum<Value> masked_sum(Tensor& out, const std::vector<Tensor>& inputs, const Tensor* y) {
  if (inputs.size() > most_summed)
    throw Error("cuda: cannot sum " + std::to_string(inputs.size()) + " gradients at once; " +
                std::to_string(most_summed) + " is the limit");
  MaskedSum<Value> sum{elements<Value>(out),
                       y == nullptr ? nullptr : elements<Value>(*y),
                       {},
                       static_cast<int>(inputs.size())};
  for (std::size_t i = 0; i < inputs.size(); ++i) sum.inputs[i] = elements<Value>(inputs[i]);
  return sum;
}

}  // namespace duplex::cudnn
