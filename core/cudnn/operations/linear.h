// Linear layer (2.2) on cuBLAS.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Linear> make_linear(const ContextPtr& context, const LinearSpec& spec,
                                    const TensorDesc& x);

}  // namespace duplex::cudnn
