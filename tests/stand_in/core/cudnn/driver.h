// This header takes the place of core/cudnn/driver.h.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>

#include "tests/stand_in/stand_in.h"

namespace duplex::cudnn {

using WriteValue = int (*)(cudaStream_t stream, unsigned long long address, std::uint32_t value,
                           unsigned flags);

inline WriteValue find_write_value() {
  return [](cudaStream_t stream, unsigned long long address, std::uint32_t value, unsigned flags) {
    if (flags != 0) return 1;  // CUDA_ERROR_INVALID_VALUE
    stand_in::enqueue(stream, [=] { *reinterpret_cast<volatile std::uint32_t*>(address) = value; });
    return 0;
  };
}

}  // namespace duplex::cudnn
