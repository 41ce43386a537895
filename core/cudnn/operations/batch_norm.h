// Batch normalisation (2.9)-(2.12) on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<BatchNorm> make_batch_norm(const ContextPtr& context, const BatchNormSpec& spec,
                                           const TensorDesc& x);

}  // namespace duplex::cudnn
