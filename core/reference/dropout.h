// Dropout in plain loops.
#pragma once
#include <memory>

#include "core/operations.h"

namespace duplex::reference {

std::unique_ptr<Dropout> make_dropout(float rate, const TensorDesc& x);

}  // namespace duplex::reference
