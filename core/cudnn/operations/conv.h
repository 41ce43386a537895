// Convolution (2.7) on cuDNN.
#pragma once
#include <memory>
#include <vector>

#include "core/cudnn/engines/plan.h"
#include "core/operations.h"

namespace duplex::cudnn {

/// Returns the graphs for which make_conv() asks for plans in the context's order, as far as that
/// is known before there are any. Leaves out convolutions that cannot be made: make_conv() says
/// why.
std::vector<ConvGraph> conv_graphs(const Context& context, const std::vector<ConvOn>& convs);

std::unique_ptr<Conv> make_conv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::cudnn
