// Kernels that have no operation of their own, for the files that the C++ compiler compiles.
#pragma once
#include <vector>

#include "core/cudnn/context.h"
#include "core/optimiser.h"
#include "core/tensor.h"

namespace duplex::cudnn {

void fill(const Context& context, Tensor& tensor, float value);
/// Fills memory with values between -0.5 and 0.5 that look random, to try engines on. Other numbers
/// give other values.
void test_pattern(const Context& context, void* to, const View& view, std::uint64_t number);
/// Returns whether every stored element is a finite number. Waits for the device.
bool finite(const Context& context, const std::vector<Tensor>& tensors);
/// to += from. Both have the same layout.
void accumulate(const Context& context, Tensor& to, const Tensor& from);
/// to = from. The shapes are equal; layouts and types may differ.
void convert(const Context& context, Tensor& to, const Tensor& from);
/// to = from, whose maps begin at row `down`, column `right` of to's. `to` is zero where `from` has
/// nothing. The two may differ in the extents of their maps, in layout and in type.
void move_map(const Context& context, Tensor& to, const Tensor& from, std::int32_t down,
              std::int32_t right);
/// Updates weights as update() of core/optimiser.h does, and the copy that the context keeps of
/// them.
void update(const Context& context, const OptimiserStep& step, Tensor& weights,
            const Tensor& gradient, std::vector<Tensor>& state);

/// y += the bias of its channel, where there is one (`bias` has data), then ReLU (2.3) where
/// `relu`.
void add_bias(const Context& context, Tensor& y, const Tensor& bias, bool relu);
/// dbias = sum of dy over samples and map. The caller has reserved bias_workspace(dy) bytes.
void bias_gradient(const Context& context, Tensor& dbias, const Tensor& dy);
std::size_t bias_workspace(const Context& context, const TensorDesc& dy);

}  // namespace duplex::cudnn
