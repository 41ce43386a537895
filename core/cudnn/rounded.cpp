#include "core/cudnn/rounded.h"

#include <utility>

#include "core/cudnn/context.h"
#include "core/cudnn/kernels/kernels.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {

std::shared_ptr<void> RoundedWeights::keep(const Context& context, const Tensor& block) {
  const auto count = static_cast<std::size_t>(block.stored());
  (*copies_)[block.data] = {count, context.allocate(count * sizeof(BFloat16))};
  context.count_move();
  follow(context, block);
  return {block.data,
          [copies = copies_](void* begin) { copies->erase(static_cast<const float*>(begin)); }};
}

BFloat16* RoundedWeights::of(const float* weights) const {
  auto copy = copies_->upper_bound(weights);
  if (copy == copies_->begin()) return nullptr;
  --copy;
  const auto offset = static_cast<std::size_t>(weights - copy->first);
  if (offset >= copy->second.count) return nullptr;
  return static_cast<BFloat16*>(copy->second.memory.data()) + offset;
}

void RoundedWeights::follow(const Context& context, const Tensor& changed) const {
  BFloat16* const copy = of(changed.data);
  if (copy == nullptr) return;
  const Shape all{changed.stored()};
  Tensor to{desc_of(all, Order::nchw, Type::bf16), reinterpret_cast<float*>(copy)};
  convert(context, to, {plain_desc(all), changed.data});
}

}  // namespace duplex::cudnn
