// Local response normalisation (2.8) on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Lrn> make_lrn(const ContextPtr& context, const LrnSpec& spec, const TensorDesc& x);

}  // namespace duplex::cudnn
