// Kernels that have no operation of their own, for the files that a C++ compiler compiles.
#pragma once
#include <vector>

#include "core/cudnn/context.h"
#include "core/optimiser.h"
#include "core/tensor.h"

namespace duplex::cudnn {

void fill(const Context& context, Tensor& tensor, float value);
/// Values that are neither equal nor zero, to time kernels on.
void ripple(const Context& context, void* to, const View& view);
/// Whether every stored element is a finite number. Waits for the device.
bool finite(const Context& context, const std::vector<Tensor>& tensors);
/// to += from, same layout.
void accumulate(const Context& context, Tensor& to, const Tensor& from);
/// to = from: equal shapes, any two layouts and types.
void convert(const Context& context, Tensor& to, const Tensor& from);
/// to = from, whose maps begin at row `down`, column `right` of to's; zero where `from` has
/// nothing. The two may differ in the extents of their maps, in layout and in type.
void move_map(const Context& context, Tensor& to, const Tensor& from, std::int32_t down,
              std::int32_t right);
/// core/optimiser.h's update.
void update(const Context& context, const OptimiserStep& step, Tensor& weights,
            const Tensor& gradient, std::vector<Tensor>& state);

/// y += bias of its channel, if there is one (data), then ReLU (2.3) if asked.
void add_bias(const Context& context, Tensor& y, const Tensor& bias, bool relu);
/// dbias = sum of dy over samples and map. Whoever calls it has reserved bias_workspace(dy).
void bias_gradient(const Context& context, Tensor& dbias, const Tensor& dy);
std::size_t bias_workspace(const Context& context, const TensorDesc& dy);

}  // namespace duplex::cudnn
