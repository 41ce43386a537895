// Max and average pooling on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Pool> make_pool(const ContextPtr& context, const PoolSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::cudnn
