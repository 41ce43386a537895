// Softmax (2.13) with cross-entropy, and squared error (3.1), with our own kernels.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Loss> make_loss(const ContextPtr& context, const LossSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::onednn
