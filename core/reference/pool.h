// Max and average pooling in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Pool> make_pool(const PoolSpec& spec, const TensorDesc& x);

}  // namespace duplex::reference
