// Concatenation and padding of channels on a GPU.
#pragma once
#include <memory>

#include "core/cudnn/context.h"
#include "core/operations.h"

namespace duplex::cudnn {

std::unique_ptr<Concat> make_concat(const ContextPtr& context, const std::vector<TensorDesc>& x);
std::unique_ptr<PadChannels> make_pad_channels(const ContextPtr& context, std::int64_t channels,
                                               const TensorDesc& x);

}  // namespace duplex::cudnn
