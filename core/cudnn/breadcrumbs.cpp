#include "core/cudnn/breadcrumbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

namespace duplex::cudnn {
namespace {

constexpr const char* variable = "DUPLEX_BREADCRUMBS";

bool are_wanted(const std::string& note) {
  if (const char* said = std::getenv(variable)) return said == std::string("on");
  return !note.empty() && ::access(note.c_str(), F_OK) == 0;
}

}  // namespace

Breadcrumbs::Breadcrumbs(const Context& context, std::string note)
    : context_(context), note_(std::move(note)), wanted_(are_wanted(note_)) {
  if (!wanted_) return;
  write_ = find_write_value();
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

Breadcrumbs::~Breadcrumbs() {
  if (wanted_ && !note_.empty()) ::unlink(note_.c_str());
}

bool Breadcrumbs::ask_next() const {
  if (note_.empty() || std::getenv(variable) != nullptr) return false;
  const int file = ::open(note_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  ::close(file);
  return true;
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
