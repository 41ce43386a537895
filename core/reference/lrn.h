// Local response normalisation (2.8) in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Lrn> make_lrn(const LrnSpec& spec, const TensorDesc& x);

}  // namespace duplex::reference
