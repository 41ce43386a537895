#include "core/cudnn/breadcrumbs.h"

namespace duplex::cudnn {

Breadcrumbs::Breadcrumbs(const Context& context) : context_(context), write_(find_write_value()) {
  void* memory = nullptr;
  void* seen = nullptr;
  if (write_ == nullptr ||
      cudaHostAlloc(&memory, sizeof marks_, cudaHostAllocMapped) != cudaSuccess) {
    cudaGetLastError();  // Else the next call would report it.
    return;
  }
  memory_ = Buffer(memory, sizeof marks_, [](void* data) { cudaFreeHost(data); });
  *static_cast<std::uint32_t*>(memory) = 0;
  check(cudaHostGetDevicePointer(&seen, memory, 0), "mapping memory of the host");
  address_ = reinterpret_cast<std::uintptr_t>(seen);
}

void Breadcrumbs::mark(const std::string& name) {
  if (address_ == 0) return;
  ++marks_;
  names_[marks_ % names_.size()] = name;
  if (write_(context_.stream(), address_, marks_, 0) != 0) address_ = 0;
}

std::string Breadcrumbs::last() const {
  if (address_ == 0) return "";
  const std::uint32_t passed = *static_cast<const volatile std::uint32_t*>(memory_.data());
  return passed == 0 ? "" : names_[passed % names_.size()];
}

}  // namespace duplex::cudnn
