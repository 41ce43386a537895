// The GPU leaves breadcrumbs: it writes to host memory which mark in its stream it has passed. CUDA
// reports a failed kernel only in a later call, when the host is layers ahead, so the last mark
// tells in which layer the GPU failed. Every mark makes the GPU finish what came before, so they
// are left only where somebody wants them.
#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "core/cudnn/context.h"
#include "core/cudnn/driver.h"

namespace duplex::cudnn {

class Breadcrumbs {
 public:
  /// They are left where DUPLEX_BREADCRUMBS is "on" in the environment; and, unless it is set,
  /// where a process before this one has called ask_next(). `note` is the path of a file that may
  /// be written for that, or empty.
  Breadcrumbs(const Context& context, std::string note);
  /// A process that has left breadcrumbs takes the note away.
  ~Breadcrumbs();
  Breadcrumbs(const Breadcrumbs&) = delete;
  Breadcrumbs& operator=(const Breadcrumbs&) = delete;

  /// Returns whether breadcrumbs were wanted. There are none nevertheless where the driver has no
  /// marks.
  bool wanted() const { return wanted_; }
  /// Has the next process on this GPU leave breadcrumbs. Returns whether it will: not where that
  /// cannot be written down, or where the environment decides.
  bool ask_next() const;
  /// Says that the work asked for from now on belongs to `name`, a layer.
  void mark(const std::string& name);
  /// Returns the name of the mark that the GPU passed last. Returns an empty name where the GPU has
  /// passed none, or where the driver cannot write marks.
  std::string last() const;

 private:
  const Context& context_;
  const std::string note_;
  const bool wanted_;
  WriteValue write_ = nullptr;
  Buffer memory_;                   ///< One number in host memory, which the GPU writes.
  unsigned long long address_ = 0;  ///< Its address on the GPU; 0 where the driver has no marks.
  std::uint32_t marks_ = 0;
  std::array<std::string, 4096> names_;  ///< Names of the last marks, more than a stream queues.
};

}  // namespace duplex::cudnn
