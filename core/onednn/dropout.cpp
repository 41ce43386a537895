#include "core/onednn/dropout.h"

#include "core/error.h"
#include "core/onednn/layout.h"
#include "core/onednn/parallel.h"
#include "core/random.h"

namespace duplex::onednn {
namespace {

class OneDnnDropout final : public Dropout {
 public:
  OneDnnDropout(const ContextPtr& context, float rate, const TensorDesc& desc)
      : context_(context), rate_(rate) {
    if (!(rate >= 0.0F && rate < 1.0F)) {
      throw Error("dropout: the rate " + std::to_string(rate) + " is not in [0, 1)");
    }
    x = y = desc;
    const dnnl::memory::desc memory = memory_of(desc);
    to_layout_ = Conversion(context, plain_memory(dims_of(desc.shape)), memory, Context::slot_y);
    plain_factors_ = allocate_aligned(plain_desc(desc.shape).bytes);
    if (!desc.plain()) blocked_factors_ = allocate_aligned(desc.bytes);
  }

  void forward(Tensor& y_out, const Tensor& x_in, const DropoutDraw& draw) override {
    context_->enter();
    this->draw(draw);
    apply(y_out, x_in);
  }

  void backward(Tensor& dx, const Tensor& dy) override {
    context_->enter();
    apply(dx, dy);
  }

 private:
  void draw(const DropoutDraw& draw) {
    const std::int64_t count = x.shape.elements();
    const auto sample = static_cast<std::uint64_t>(count / x.shape.n());
    const RandomStream random(draw.seed, draw.stream);
    auto* factors = static_cast<float*>(plain_factors_.data());
    const float kept = 1.0F / (1.0F - rate_);
    // The samples of a batch follow each other, in memory as in the numbering of draws.
    parallel_elements(count, [&](std::int64_t begin, std::int64_t end) {
      random.fill_uniform(factors + begin, static_cast<std::uint64_t>(end - begin),
                          draw.first_sample * sample + static_cast<std::uint64_t>(begin));
      for (std::int64_t i = begin; i < end; ++i) factors[i] = factors[i] < rate_ ? 0.0F : kept;
    });
  }

  ContextPtr context_;
  float rate_;
  Buffer plain_factors_, blocked_factors_;
  Conversion to_layout_;
};

}  // namespace

}  // namespace duplex::onednn
