// Dropout with our own kernels.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Dropout> make_dropout(const ContextPtr& context, float rate, const TensorDesc& x);

}  // namespace duplex::onednn
