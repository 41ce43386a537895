// Finds a function that CUDA's driver has and the runtime does not offer.
#pragma once
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>

namespace duplex::cudnn {

/// The type of cuStreamWriteValue32, which writes a value to memory when the stream gets there. It
/// returns 0 where it will do so. `flags` is 0, since this version of it takes none.
using WriteValue = int (*)(cudaStream_t stream, unsigned long long address, std::uint32_t value,
                           unsigned flags);

/// Returns null where this driver lacks the function. The runtime has already opened the driver's
/// library, so this opens no other one.
inline WriteValue find_write_value() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* found = ::dlsym(driver, "cuStreamWriteValue32_v2");
  return reinterpret_cast<WriteValue>(found);
}

}  // namespace duplex::cudnn
