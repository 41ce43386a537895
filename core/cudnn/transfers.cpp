#include "core/cudnn/transfers.h"

#include <algorithm>

#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {
namespace {

constexpr const char* what_in = "copying to the GPU";
constexpr const char* what_out = "copying from the GPU";

Handle<cudaStream_t> make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return Handle<cudaStream_t>(stream);
}

class EventTransfer final : public Transfer {
 public:
  /// `wanted` lives as long as this transfer.
  EventTransfer(ContextPtr context, Event done, const char* what,
                std::shared_ptr<void> wanted = nullptr)
      : context_(std::move(context)),
        done_(std::move(done)),
        what_(what),
        wanted_(std::move(wanted)) {}
  ~EventTransfer() override {
    cudaSetDevice(context_->index());
    cudaEventSynchronize(done_.get());
  }
  void wait() override {
    context_->enter();
    wait_for(done_.get(), what_);
  }

 private:
  ContextPtr context_;
  Event done_;
  const char* what_;
  std::shared_ptr<void> wanted_;
};

/// Returns a plain tensor in the memory of `staging`.
Tensor plain_in(Context& context, Buffer& staging, const TensorDesc& plain) {
  context.grow(staging, plain.bytes);
  return {plain, static_cast<float*>(staging.data())};
}

}  // namespace

Transfers::Transfers(ContextPtr context)
    : context_(std::move(context)), in_(make_stream()), out_(make_stream()) {}

void Transfers::order(cudaStream_t later, cudaStream_t sooner) const {
  const Event done = context_->events().recorded(sooner);
  check(cudaStreamWaitEvent(later, done.get(), 0), "ordering streams");
}

void Transfers::hold_operations(cudaStream_t stream, double CopyWaits::*kind) {
  const Events& events = context_->events();
  Wait wait{events.recorded(context_->stream(), Events::Kind::timed),
            events.recorded(stream, Events::Kind::timed), kind};
  check(cudaStreamWaitEvent(context_->stream(), wait.done.get(), 0), "ordering streams");
  waits_.push_back(std::move(wait));
}

std::unique_ptr<Transfer> Transfers::download(float* to, const Tensor& from) {
  context_->enter();
  order(out_.get(), context_->stream());
  for_each_piece(from, [&](const Piece& piece) {
    Tensor plain = piece.stored;
    if (!from.desc.plain()) {
      plain = plain_in(*context_, staging_out_, piece.plain);
      const StreamInUse beside(*context_, out_.get());
      convert(*context_, plain, piece.stored);
    }
    check(cudaMemcpyAsync(to + piece.begin, plain.data, plain.desc.bytes, cudaMemcpyDeviceToHost,
                          out_.get()),
          what_out);
  });
  return std::make_unique<EventTransfer>(context_, context_->events().recorded(out_.get()),
                                         what_out);
}

void Transfers::upload(Tensor& to, const float* from) {
  context_->enter();
  for_each_piece(to, [&](Piece& piece) {
    const bool as_it_is = piece.stored.desc.plain();
    const Tensor plain = as_it_is ? piece.stored : plain_in(*context_, staging_in_, piece.plain);
    check(cudaMemcpyAsync(plain.data, from + piece.begin, plain.desc.bytes, cudaMemcpyHostToDevice,
                          in_.get()),
          what_in);
    const StreamInUse beside(*context_, in_.get());
    if (!as_it_is) convert(*context_, piece.stored, plain);
    context_->rounded().follow(*context_, piece.stored);
  });
  hold_operations(in_.get(), &CopyWaits::weights);
}

std::unique_ptr<Transfer> Transfers::prefetch(const float* from, std::size_t bytes) {
  context_->enter();
  context_->grow(input_, bytes);
  if (taken_) check(cudaStreamWaitEvent(in_.get(), taken_.get(), 0), "ordering streams");
  check(cudaMemcpyAsync(input_.data(), from, bytes, cudaMemcpyHostToDevice, in_.get()), what_in);
  input_from_ = from;
  input_bytes_ = bytes;
  const auto wanted = std::make_shared<char>();
  input_wanted_ = wanted;
  return std::make_unique<EventTransfer>(context_, context_->events().recorded(in_.get()), what_in,
                                         wanted);
}

bool Transfers::take(Tensor& to, const float* from) {
  const TensorDesc plain = plain_desc_of(to.desc);
  if (input_wanted_.expired() || from != input_from_ || plain.bytes != input_bytes_) return false;
  input_wanted_.reset();
  context_->enter();
  hold_operations(in_.get(), &CopyWaits::input);
  convert(*context_, to, {plain, static_cast<float*>(input_.data())});
  taken_ = context_->events().recorded(context_->stream());
  return true;
}

CopyWaits Transfers::waits() {
  CopyWaits sum;
  for (const Wait& wait : waits_) {
    float late = 0.0F;  // In milliseconds; below zero where nothing had to wait.
    wait_for(wait.done.get(), what_in);
    check(cudaEventElapsedTime(&late, wait.reached.get(), wait.done.get()), "timing a copy");
    sum.*wait.kind += std::max(static_cast<double>(late), 0.0) * 1e-3;
  }
  waits_.clear();
  return sum;
}

}  // namespace duplex::cudnn
