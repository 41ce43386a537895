// Where a GPU is, told by itself: what breaks there is noticed by a later call, when the host is
// layers ahead.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "core/cudnn/context.h"
#include "core/cudnn/driver.h"

namespace duplex::cudnn {

class Trail {
 public:
  explicit Trail(const Context& context);

  /// What is asked for from now on belongs to this.
  void mark(const std::string& name);
  /// The mark that the GPU passed last; empty: none, or the driver cannot tell.
  std::string last() const;

 private:
  const Context& context_;
  WriteValue write_;
  Buffer memory_;                   ///< One number, of the host's, which the GPU writes.
  unsigned long long address_ = 0;  ///< The same, as the GPU sees it.
  std::uint32_t marks_ = 0;
  std::array<std::string, 4096> names_;  ///< Of the last marks; more than a stream holds at a time.
};

}  // namespace duplex::cudnn
