// Concatenation along channels, and padding with channels of zeros: our own kernels make one pass
// each.
#pragma once
#include <memory>
#include <vector>

#include "core/onednn/context.h"
#include "core/operations.h"

namespace duplex::onednn {

std::unique_ptr<Concat> make_concat(const ContextPtr& context, const std::vector<TensorDesc>& x);
std::unique_ptr<PadChannels> make_pad_channels(const ContextPtr& context, std::int64_t channels,
                                               const TensorDesc& x);

}  // namespace duplex::onednn
