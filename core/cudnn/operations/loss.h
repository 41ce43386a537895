// The losses on a GPU: softmax by cuDNN, with cross entropy (2.13), and the squared error (3.1).
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Loss> make_loss(const ContextPtr& context, const LossSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::cudnn
