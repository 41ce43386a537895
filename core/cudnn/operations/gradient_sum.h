// Describes a sum of gradients to the kernels that compute it.
#pragma once
#include <cstddef>
#include <vector>

#include "core/cudnn/context.h"
#include "core/cudnn/kernels/elements.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {

/// The addresses of tensors, in the GPU's memory. They are copied there when others come than the
/// last time, which is once for a network that is trained step by step.
class AddressList {
 public:
  /// Returns the list; it stays as it is for the kernels that the stream has before the next call.
  template <class Value>
  const Value* const* of(const Context& context, const std::vector<Tensor>& tensors) {
    std::vector<const void*> wanted;
    wanted.reserve(tensors.size());
    for (const Tensor& tensor : tensors) wanted.push_back(tensor.data);
    if (wanted != listed_) {
      const std::size_t bytes = wanted.size() * sizeof(const void*);
      listed_.clear();  // It lists nothing where the copy fails.
      context.grow(memory_, bytes);
      context.start_copy_in(memory_.data(), wanted.data(), bytes);
      listed_ = std::move(wanted);
    }
    return static_cast<const Value* const*>(memory_.data());
  }

 private:
  std::vector<const void*> listed_;
  Buffer memory_;
};

/// Calls take(sum) with the MaskedSum of any number of inputs. Few have a kernel of their own,
/// which knows their addresses when it starts.
template <class Value, class Take>
void with_masked_sum(const Context& context, AddressList& list, Tensor& out,
                     const std::vector<Tensor>& inputs, const Tensor* y, const Take& take) {
  Value* const to = elements<Value>(out);
  const Value* const mask = y == nullptr ? nullptr : elements<Value>(*y);
  const int count = static_cast<int>(inputs.size());
  if (count > summed_at_once) {
    ListedInputs<Value> listed{list.of<Value>(context, inputs), true};
    for (const Tensor& input : inputs)
      listed.in_groups = listed.in_groups && aligned<group_of<Value>>(elements<Value>(input));
    return take(MaskedSum<Value, ListedInputs<Value>>{to, mask, listed, count});
  }
  GivenInputs<Value> given{};
  for (std::size_t k = 0; k < inputs.size(); ++k) given.at[k] = elements<Value>(inputs[k]);
  take(MaskedSum<Value>{to, mask, given, count});
}

}  // namespace duplex::cudnn
