// The device of NVIDIA GPUs uses cuDNN, cuBLAS, and our own kernels for what neither has.
#include "core/device.h"

#include <vector>

#include "core/cudnn/breadcrumbs.h"
#include "core/cudnn/cache.h"
#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/kernels/readiness.h"
#include "core/cudnn/layout.h"
#include "core/cudnn/operations/activation.h"
#include "core/cudnn/operations/add.h"
#include "core/cudnn/operations/batch_norm.h"
#include "core/cudnn/operations/concat.h"
#include "core/cudnn/operations/conv.h"
#include "core/cudnn/operations/dropout.h"
#include "core/cudnn/operations/linear.h"
#include "core/cudnn/operations/loss.h"
#include "core/cudnn/operations/lrn.h"
#include "core/cudnn/operations/pool.h"
#include "core/cudnn/recorded_graph.h"
#include "core/cudnn/transfers.h"
#include "core/gpu/library.h"

namespace duplex {
namespace {

using namespace cudnn;

class CudnnDevice final : public Device {
 public:
  explicit CudnnDevice(const GpuOptions& options)
      : context_(std::make_shared<Context>(options)),
        plans_(std::make_shared<Plans>(context_, options.threads)),
        transfers_(context_),
        breadcrumbs_(*context_, cache_file(cache_folder(), "breadcrumbs " + context_->gpu() + " " +
                                                               context_->place())) {}

  std::string name() const override { return "cudnn"; }
  std::string description() const override {
    constexpr int cuda = CUDART_VERSION;
    return context_->gpu() + ", CUDA " + std::to_string(cuda / 1000) + "." +
           std::to_string(cuda % 1000 / 10) + ", " + Context::cudnn() + ", " +
           name_of(context_->precision()) +
           (context_->order() == Order::nhwc ? ", NHWC" : ", NCHW");
  }

  bool choose_channels_last(bool last) override {
    context_->choose_order(last ? Order::nhwc : Order::nchw);
    return true;
  }

  Buffer allocate(std::size_t bytes) override { return context_->allocate(bytes); }
  std::size_t allocated_bytes() const override { return context_->allocated_bytes(); }

  void upload(Tensor& to, const float* from) override {
    if (transfers_.take(to, from)) return;
    if (to.desc.plain()) {
      context_->copy_in(to.data, from, to.desc.bytes);
      follow(to);
      return;
    }
    for_each_piece(to, [&](Piece& piece) {
      const Tensor plain = staging(piece.plain);
      context_->copy_in(plain.data, from + piece.begin, plain.desc.bytes);
      cudnn::convert(*context_, piece.stored, plain);
    });
    follow(to);
    context_->synchronize();
  }
  void download(float* to, const Tensor& from) override {
    if (from.desc.plain()) return context_->copy_out(to, from.data, from.desc.bytes);
    for_each_piece(from, [&](const Piece& piece) {
      Tensor plain = staging(piece.plain);
      cudnn::convert(*context_, plain, piece.stored);
      context_->copy_out(to + piece.begin, plain.data, plain.desc.bytes);
    });
  }
  void convert(Tensor& to, const Tensor& from) override {
    cudnn::convert(*context_, to, from);
    follow(to);
  }
  void fill(Tensor& tensor, float value) override {
    cudnn::fill(*context_, tensor, value);
    follow(tensor);
  }
  bool finite(const std::vector<Tensor>& tensors) override {
    return cudnn::finite(*context_, tensors);
  }
  void keep_nan(bool on) override { context_->keep_nan(on); }
  bool keeps_nan() const override { return context_->keeps_nan(); }
  void accumulate(Tensor& to, const Tensor& from) override {
    cudnn::accumulate(*context_, to, from);
    follow(to);
  }
  void update(const OptimiserStep& step, Tensor& weights, const Tensor& gradient,
              std::vector<Tensor>& state) override {
    cudnn::update(*context_, step, weights, gradient, state);
  }
  std::shared_ptr<void> keep_rounded(const Tensor& weights) override {
    if (context_->type() == Type::float32) return nullptr;
    return context_->rounded().keep(*context_, weights);
  }
  void synchronize() override {
    context_->enter();
    context_->synchronize();
  }

  bool records() const override { return context_->graphs() && !breadcrumbs_.wanted(); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    return cudnn::record(context_, work);
  }

  bool asynchronous() const override { return true; }
  void begin_layer(const std::string& name) override { breadcrumbs_.mark(name); }
  std::string broken_in() const override {
    if (!context_->broken()) return "";
    const std::string layer = breadcrumbs_.last();
    if (!layer.empty()) return layer;
    if (breadcrumbs_.wanted()) return "unknown";
    return breadcrumbs_.ask_next() ? "unknown (the next run on this GPU will tell)"
                                   : "unknown (DUPLEX_BREADCRUMBS=on tells)";
  }
  std::shared_ptr<void> pin(void* data, std::size_t bytes) override {
    return context_->pin(data, bytes);
  }
  std::unique_ptr<Transfer> start_download(float* to, const Tensor& from) override {
    return transfers_.download(to, from);
  }
  void start_upload(Tensor& to, const float* from) override { transfers_.upload(to, from); }
  std::unique_ptr<Transfer> prefetch(const float* from, std::size_t bytes) override {
    return transfers_.prefetch(from, bytes);
  }
  CopyWaits copy_waits() override { return transfers_.waits(); }

  void announce(const std::vector<ConvOn>& convs) override {
    plans_->prepare(conv_graphs(*context_, convs));
  }
  std::unique_ptr<Conv> conv(const ConvSpec& spec, const TensorDesc& x) override {
    return make_conv(plans_, spec, x);
  }
  std::unique_ptr<Linear> linear(const LinearSpec& spec, const TensorDesc& x) override {
    return make_linear(context_, spec, x);
  }
  std::unique_ptr<Pool> pool(const PoolSpec& spec, const TensorDesc& x) override {
    return make_pool(context_, spec, x);
  }
  std::unique_ptr<Lrn> lrn(const LrnSpec& spec, const TensorDesc& x) override {
    return make_lrn(context_, spec, x);
  }
  std::unique_ptr<BatchNorm> batch_norm(const BatchNormSpec& spec, const TensorDesc& x) override {
    return make_batch_norm(context_, spec, x);
  }
  std::unique_ptr<Activation> activation(ActivationKind kind, const TensorDesc& x) override {
    return make_activation(context_, kind, x);
  }
  std::unique_ptr<Dropout> dropout(float rate, const TensorDesc& x) override {
    return make_dropout(context_, rate, x);
  }
  std::unique_ptr<Concat> concat(const std::vector<TensorDesc>& x) override {
    return make_concat(context_, x);
  }
  std::unique_ptr<Add> add(bool relu, const TensorDesc& a, const TensorDesc& b) override {
    return make_add(context_, relu, a, b);
  }
  std::unique_ptr<PadChannels> pad_channels(std::int64_t channels, const TensorDesc& x) override {
    return make_pad_channels(context_, channels, x);
  }
  std::unique_ptr<GradientSum> gradient_sum(const TensorDesc& y) override {
    return make_gradient_sum(context_, y);
  }
  std::unique_ptr<Loss> loss(const LossSpec& spec, const TensorDesc& x) override {
    return make_loss(context_, spec, x);
  }

 private:
  /// Returns a plain tensor in memory that only upload() and download() use.
  Tensor staging(const TensorDesc& plain) {
    context_->grow(staging_, plain.bytes);
    return {plain, static_cast<float*>(staging_.data())};
  }

  /// Every call that writes tensors of the caller, and is no operation, ends with it; update() and
  /// Transfers do the same themselves.
  void follow(const Tensor& changed) const { context_->rounded().follow(*context_, changed); }

  ContextPtr context_;
  std::shared_ptr<Plans> plans_;
  Transfers transfers_;
  Breadcrumbs breadcrumbs_;
  Buffer staging_;
};

}  // namespace
}  // namespace duplex

extern "C" duplex::cudnn::MakeDevice duplex_make_cudnn_device;
extern "C" duplex::cudnn::CountDevices duplex_count_cudnn_devices;

duplex::Device* duplex_make_cudnn_device(const duplex::GpuOptions& options) {
  return std::make_unique<duplex::CudnnDevice>(options).release();
}

int duplex_count_cudnn_devices() {
  using namespace duplex::cudnn;
  int count = 0, fit = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) count = 0;
  cudaGetLastError();  // Else the next call would report it.
  while (fit < count && may_fit(fit)) ++fit;
  return fit;
}
