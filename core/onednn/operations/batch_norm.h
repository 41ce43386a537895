// Batch normalisation (2.9)-(2.12) on oneDNN.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<BatchNorm> make_batch_norm(const ContextPtr& context, const BatchNormSpec& spec,
                                           const TensorDesc& x);

}  // namespace duplex::onednn
