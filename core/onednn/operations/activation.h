// ReLU (2.3) and sigmoid (2.4).
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Activation> make_activation(const ContextPtr& context, ActivationKind kind,
                                            const TensorDesc& x);

}  // namespace duplex::onednn
