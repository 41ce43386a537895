// Copies between host and GPU beside the operations: a stream for each direction.
#pragma once
#include <memory>
#include <vector>

#include "core/cudnn/context.h"
#include "core/transfer.h"

namespace duplex::cudnn {

class Transfers {
 public:
  explicit Transfers(ContextPtr context);

  /// As core/device.h's start_download, start_upload, prefetch and copy_waits.
  std::unique_ptr<Transfer> download(float* to, const Tensor& from);
  void upload(Tensor& to, const float* from);
  std::unique_ptr<Transfer> prefetch(const float* from, std::size_t bytes);
  CopyWaits waits();

  /// to = what was prefetched from there, behind what the operations' stream has to do. False: that
  /// was something else.
  bool take(Tensor& to, const float* from);

 private:
  using Event = Handle<cudaEvent_t>;

  /// A place in the operations' stream, and what had to be done before it went on.
  struct Wait {
    Event reached, done;
    double CopyWaits::*kind;
  };

  static Event event(unsigned flags);
  static Event recorded(cudaStream_t stream, unsigned flags = cudaEventDisableTiming);
  /// What is asked of `later` from now on comes behind what was asked of `sooner`.
  static void order(cudaStream_t later, cudaStream_t sooner);
  /// Operations from now on wait for what `stream` has to do.
  void hold_operations(cudaStream_t stream, double CopyWaits::*kind);

  ContextPtr context_;
  Handle<cudaStream_t> in_, out_;
  Buffer staging_in_, staging_out_;    ///< For tensors in a layout, as plain ones.
  Event taken_;                        ///< Behind the reading of input_.
  Buffer input_;                       ///< What was prefetched,
  const float* input_from_ = nullptr;  ///< from here,
  std::size_t input_bytes_ = 0;
  std::weak_ptr<void> input_wanted_;  ///< as long as this lives; none: nothing, or it was taken.
  std::vector<Wait> waits_;           ///< Since waits() was asked.
};

}  // namespace duplex::cudnn
