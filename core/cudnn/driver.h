// What the driver has and the runtime does not pass on.
#pragma once
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>

namespace duplex::cudnn {

/// cuStreamWriteValue32: writes a value to memory when the stream gets there; 0: it will. `flags`:
/// 0, since this version of it takes none.
using WriteValue = int (*)(cudaStream_t stream, unsigned long long address, std::uint32_t value,
                           unsigned flags);

/// Null: this driver has none. Its library is there already: the runtime has opened it.
inline WriteValue find_write_value() {
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* found = ::dlsym(driver, "cuStreamWriteValue32_v2");
  return reinterpret_cast<WriteValue>(found);
}

}  // namespace duplex::cudnn
