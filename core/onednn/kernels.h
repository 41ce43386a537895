// Element-wise loops over spans of floats, on the calling thread where nothing else is said. `to`
// may be one of the inputs.
#pragma once
#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace duplex::onednn {

/// to = max(x, 0); NaN stays NaN.
void relu(float* to, const float* x, std::int64_t count);
/// to = from * [y > 0]
void mask(float* to, const float* from, const float* y, std::int64_t count);
/// to = a + b
void add(float* to, const float* a, const float* b, std::int64_t count);
/// to = max(a + b, 0); NaN stays NaN.
void add_relu(float* to, const float* a, const float* b, std::int64_t count);
/// Returns whether all values are finite numbers.
bool finite(const float* values, std::int64_t count);
/// to = a * b
void multiply(float* to, const float* a, const float* b, std::int64_t count);
/// to = dy * y * (1 - y)
void sigmoid_backward(float* to, const float* dy, const float* y, std::int64_t count);
/// to = sum of the inputs, in their order, times [y > 0] where y is not null, for elements [begin,
/// end).
void sum_masked(float* to, const std::vector<const float*>& inputs, const float* y,
                std::int64_t begin, std::int64_t end);

/// Applies ReLU on its own to all that is stored, on all threads. NaN stays NaN, which a fused ReLU
/// turns into 0.
void relu_in_place(Tensor& y);

}  // namespace duplex::onednn
