// Convolution (2.7) on cuDNN.
#pragma once
#include <memory>

#include "core/cudnn/engines/plan.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Conv> make_conv(const std::shared_ptr<Plans>& plans, const ConvSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::cudnn
