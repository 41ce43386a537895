// Concatenation along channels, and padding with channels of zeros, in plain loops.
#pragma once
#include <memory>
#include <vector>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Concat> make_concat(const std::vector<TensorDesc>& x);
std::unique_ptr<PadChannels> make_pad_channels(std::int64_t channels, const TensorDesc& x);

}  // namespace duplex::reference
