// Local response normalisation (2.8) on oneDNN.
#pragma once
#include <memory>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Lrn> make_lrn(const ContextPtr& context, const LrnSpec& spec, const TensorDesc& x);

}  // namespace duplex::onednn
