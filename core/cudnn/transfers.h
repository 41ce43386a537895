// Copies between host and GPU that run beside the operations, in a stream for each direction.
#pragma once
#include <memory>
#include <vector>

#include "core/cudnn/context.h"
#include "core/transfer.h"

namespace duplex::cudnn {

class Transfers {
 public:
  explicit Transfers(ContextPtr context);

  /// These do what core/device.h says of start_download, start_upload, prefetch and copy_waits.
  std::unique_ptr<Transfer> download(float* to, const Tensor& from);
  void upload(Tensor& to, const float* from);
  std::unique_ptr<Transfer> prefetch(const float* from, std::size_t bytes);
  CopyWaits waits();

  /// Copies what was prefetched from `from` to `to`, behind the work that the operations' stream
  /// already has. Returns false where something else was prefetched.
  bool take(Tensor& to, const float* from);

 private:
  /// A place in the operations' stream, and the copy that had to be done before the stream went on.
  struct Wait {
    Event reached, done;
    double CopyWaits::*kind;
  };

  /// Makes what is asked of `later` from now on wait for what was asked of `sooner`.
  void order(cudaStream_t later, cudaStream_t sooner) const;
  /// Makes operations from now on wait for what `stream` has to do, and counts the wait in `kind`.
  void hold_operations(cudaStream_t stream, double CopyWaits::*kind);

  ContextPtr context_;
  Handle<cudaStream_t> in_, out_;
  Buffer staging_in_, staging_out_;    ///< Plain copies of pieces of tensors that have a layout.
  Event taken_;                        ///< Recorded behind the last read of input_.
  Buffer input_;                       ///< The prefetched values.
  const float* input_from_ = nullptr;  ///< The host memory that they were copied from.
  std::size_t input_bytes_ = 0;
  std::weak_ptr<void> input_wanted_;  ///< Expired where there are none, or they were taken.
  std::vector<Wait> waits_;           ///< Waits since the last call of waits().
};

}  // namespace duplex::cudnn
