// Max pooling with our own kernels where they are faster, else on oneDNN; average pooling on
// oneDNN.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Pool> make_pool(const ContextPtr& context, const PoolSpec& spec,
                                const TensorDesc& x);

}  // namespace duplex::onednn
