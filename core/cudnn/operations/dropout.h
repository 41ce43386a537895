// Dropout on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Dropout> make_dropout(const ContextPtr& context, float rate, const TensorDesc& x);

}  // namespace duplex::cudnn
