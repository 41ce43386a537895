// ReLU and sigmoid on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Activation> make_activation(const ContextPtr& context, ActivationKind kind,
                                            const TensorDesc& x);

}  // namespace duplex::cudnn
