// Uses oneDNN in all the ways that core/onednn does, once each: make/probe.sh builds this to find
// out whether a version will do.
#include "core/onednn/compat.h"

int main() {
  namespace onednn = duplex::onednn;
  using Tag = dnnl::memory::format_tag;
  using Kind = dnnl::prop_kind;
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops relu;
  onednn::append_relu(relu);
  const auto plain = [](const dnnl::memory::dims& dims, Tag tag) {
    return dnnl::memory::desc(dims, dnnl::memory::data_type::f32, tag);
  };
  const dnnl::memory::dims one{1, 1}, none{0, 0};
  const auto x = plain({1, 16, 4, 4}, Tag::nchw), w = plain({16, 16, 1, 1}, Tag::any);
  const auto direct = dnnl::algorithm::convolution_direct;
  const auto conv = onednn::describe<dnnl::convolution_forward>(
      engine, attributes, Kind::forward_training, direct, x, w, dnnl::memory::desc(), x, one, none,
      none);
  const auto by_x = onednn::describe_backward<dnnl::convolution_backward_data>(
      engine, attributes, conv, direct, x, w, x, one, none, none);
  const auto norm = onednn::describe_batch_norm(engine, attributes, Kind::forward_training, x,
                                                1e-5F, onednn::scale_and_shift());
  const auto norm_back = onednn::describe_batch_norm_backward(engine, attributes, norm, x, 1e-5F,
                                                              onednn::scale_and_shift());
  const auto average = dnnl::algorithm::pooling_avg_exclude_padding;
  const auto pool = onednn::describe_pool(engine, attributes, average, x, x, one, one, none, none);
  const auto pool_back =
      onednn::describe_pool_backward(engine, attributes, pool, average, x, x, one, one, none, none);
  const auto lrn = onednn::describe_lrn(engine, attributes, x, 5, 1.0F, 0.75F, 1.0F);
  const auto lrn_back =
      onednn::describe_lrn_backward(engine, attributes, lrn, x, 5, 1.0F, 0.75F, 1.0F);
  const auto sigmoid = onednn::describe_logistic(engine, attributes, x);
  return by_x && norm_back && pool_back && lrn_back && sigmoid && onednn::dims_of(x).size() == 4
             ? 0
             : 1;
}
