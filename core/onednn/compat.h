// Hides the differences between oneDNN 2.0 to 3. Nothing outside this file asks for the version
// except make/probe.sh, which declines older ones.
#pragma once
#include <dnnl.hpp>

namespace duplex::onednn {

#if DNNL_VERSION_MAJOR >= 3

inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) {
  return desc.get_dims();
}

inline void append_relu(dnnl::post_ops& ops) {
  ops.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
}

/// Returns the description of an `Op` primitive, empty where oneDNN has no implementation.
template <class Op, class... Args>
typename Op::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                     const Args&... args) {
  return typename Op::primitive_desc(engine, args..., attr, true);
}

/// Returns the same of a backward `Op` that belongs to the forward one `hint`.
template <class Op, class Hint, class... Args>
typename Op::primitive_desc describe_backward(const dnnl::engine& engine,
                                              const dnnl::primitive_attr& attr, const Hint& hint,
                                              const Args&... args) {
  return typename Op::primitive_desc(engine, args..., hint, attr, true);
}

inline auto describe_pool(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                          dnnl::algorithm algorithm, const dnnl::memory::desc& x,
                          const dnnl::memory::desc& y, const dnnl::memory::dims& strides,
                          const dnnl::memory::dims& window, const dnnl::memory::dims& before,
                          const dnnl::memory::dims& after) {
  const dnnl::memory::dims dilation(strides.size(), 0);
  return describe<dnnl::pooling_forward>(engine, attr, dnnl::prop_kind::forward_training, algorithm,
                                         x, y, strides, window, dilation, before, after);
}

inline auto describe_pool_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                   const dnnl::pooling_forward::primitive_desc& hint,
                                   dnnl::algorithm algorithm, const dnnl::memory::desc& x,
                                   const dnnl::memory::desc& y, const dnnl::memory::dims& strides,
                                   const dnnl::memory::dims& window,
                                   const dnnl::memory::dims& before,
                                   const dnnl::memory::dims& after) {
  const dnnl::memory::dims dilation(strides.size(), 0);
  return describe_backward<dnnl::pooling_backward>(engine, attr, hint, algorithm, x, y, strides,
                                                   window, dilation, before, after);
}

inline auto describe_lrn(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                         const dnnl::memory::desc& x, dnnl::memory::dim size, float alpha,
                         float beta, float k) {
  return describe<dnnl::lrn_forward>(engine, attr, dnnl::prop_kind::forward_training,
                                     dnnl::algorithm::lrn_across_channels, x, x, size, alpha, beta,
                                     k);
}

inline auto describe_lrn_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                  const dnnl::lrn_forward::primitive_desc& hint,
                                  const dnnl::memory::desc& x, dnnl::memory::dim size, float alpha,
                                  float beta, float k) {
  return describe_backward<dnnl::lrn_backward>(
      engine, attr, hint, dnnl::algorithm::lrn_across_channels, x, x, x, size, alpha, beta, k);
}

inline auto describe_batch_norm(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                dnnl::prop_kind kind, const dnnl::memory::desc& x, float epsilon,
                                dnnl::normalization_flags flags) {
  return describe<dnnl::batch_normalization_forward>(engine, attr, kind, x, x, epsilon, flags);
}

inline auto describe_batch_norm_backward(
    const dnnl::engine& engine, const dnnl::primitive_attr& attr,
    const dnnl::batch_normalization_forward::primitive_desc& hint, const dnnl::memory::desc& x,
    float epsilon, dnnl::normalization_flags flags) {
  return describe_backward<dnnl::batch_normalization_backward>(
      engine, attr, hint, dnnl::prop_kind::backward, x, x, x, epsilon, flags);
}

inline auto describe_logistic(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                              const dnnl::memory::desc& x) {
  return describe<dnnl::eltwise_forward>(engine, attr, dnnl::prop_kind::forward_training,
                                         dnnl::algorithm::eltwise_logistic, x, x, 0.0F, 0.0F);
}

/// In oneDNN 2, backward counts the shift among its inputs, though it does not read it.
inline dnnl::memory::desc batch_norm_backward_shift(const dnnl::memory::desc&) {
  return {};
}

#else

inline dnnl::memory::dims dims_of(const dnnl::memory::desc& desc) {
  return desc.dims();
}

inline void append_relu(dnnl::post_ops& ops) {
  ops.append_eltwise(1.0F, dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
}

/// Returns the description of an `Op` primitive, empty where oneDNN has no implementation.
template <class Op, class... Args>
typename Op::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                     const Args&... args) {
  return typename Op::primitive_desc(typename Op::desc(args...), attr, engine, true);
}

/// Returns the same of a backward `Op` that belongs to the forward one `hint`.
template <class Op, class Hint, class... Args>
typename Op::primitive_desc describe_backward(const dnnl::engine& engine,
                                              const dnnl::primitive_attr& attr, const Hint& hint,
                                              const Args&... args) {
  return typename Op::primitive_desc(typename Op::desc(args...), attr, engine, hint, true);
}

inline auto describe_pool(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                          dnnl::algorithm algorithm, const dnnl::memory::desc& x,
                          const dnnl::memory::desc& y, const dnnl::memory::dims& strides,
                          const dnnl::memory::dims& window, const dnnl::memory::dims& before,
                          const dnnl::memory::dims& after) {
  return describe<dnnl::pooling_forward>(engine, attr, dnnl::prop_kind::forward_training, algorithm,
                                         x, y, strides, window, before, after);
}

inline auto describe_pool_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                   const dnnl::pooling_forward::primitive_desc& hint,
                                   dnnl::algorithm algorithm, const dnnl::memory::desc& x,
                                   const dnnl::memory::desc& y, const dnnl::memory::dims& strides,
                                   const dnnl::memory::dims& window,
                                   const dnnl::memory::dims& before,
                                   const dnnl::memory::dims& after) {
  return describe_backward<dnnl::pooling_backward>(engine, attr, hint, algorithm, x, y, strides,
                                                   window, before, after);
}

inline auto describe_lrn(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                         const dnnl::memory::desc& x, dnnl::memory::dim size, float alpha,
                         float beta, float k) {
  return describe<dnnl::lrn_forward>(engine, attr, dnnl::prop_kind::forward_training,
                                     dnnl::algorithm::lrn_across_channels, x, size, alpha, beta, k);
}

inline auto describe_lrn_backward(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                  const dnnl::lrn_forward::primitive_desc& hint,
                                  const dnnl::memory::desc& x, dnnl::memory::dim size, float alpha,
                                  float beta, float k) {
  return describe_backward<dnnl::lrn_backward>(
      engine, attr, hint, dnnl::algorithm::lrn_across_channels, x, x, size, alpha, beta, k);
}

inline auto describe_batch_norm(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                                dnnl::prop_kind kind, const dnnl::memory::desc& x, float epsilon,
                                dnnl::normalization_flags flags) {
  return describe<dnnl::batch_normalization_forward>(engine, attr, kind, x, epsilon, flags);
}

inline auto describe_batch_norm_backward(
    const dnnl::engine& engine, const dnnl::primitive_attr& attr,
    const dnnl::batch_normalization_forward::primitive_desc& hint, const dnnl::memory::desc& x,
    float epsilon, dnnl::normalization_flags flags) {
  return describe_backward<dnnl::batch_normalization_backward>(
      engine, attr, hint, dnnl::prop_kind::backward, x, x, epsilon, flags);
}

inline auto describe_logistic(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
                              const dnnl::memory::desc& x) {
  return describe<dnnl::eltwise_forward>(engine, attr, dnnl::prop_kind::forward_training,
                                         dnnl::algorithm::eltwise_logistic, x, 0.0F, 0.0F);
}

inline dnnl::memory::desc batch_norm_backward_shift(const dnnl::memory::desc& shift) {
  return shift;
}

#endif

#if DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 3

/// Says whether batch normalisation takes scale and shift as the two rows of one tensor, under the
/// name of the scale. The shift has no name then (0), and nothing is bound to it.
constexpr bool scale_and_shift_are_one = true;
constexpr int arg_scale = DNNL_ARG_SCALE_SHIFT, arg_shift = 0;
constexpr int arg_diff_scale = DNNL_ARG_DIFF_SCALE_SHIFT, arg_diff_shift = 0;

inline dnnl::normalization_flags scale_and_shift() {
  return dnnl::normalization_flags::use_scale_shift;
}

#else

constexpr bool scale_and_shift_are_one = false;
constexpr int arg_scale = DNNL_ARG_SCALE, arg_shift = DNNL_ARG_SHIFT;
constexpr int arg_diff_scale = DNNL_ARG_DIFF_SCALE, arg_diff_shift = DNNL_ARG_DIFF_SHIFT;

inline dnnl::normalization_flags scale_and_shift() {
  return dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
}

#endif

/// Says whether a primitive may leave old values in the padding of its result, which ought to be
/// zero: oneDNN 2.0's plain loop for LRN does, 2.2's does not.
constexpr bool leaves_padding = DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 2;

/// Returns the names of instruction sets that some versions do not know, nullptr for any other.
inline const char* newer_instruction_set([[maybe_unused]] dnnl::cpu_isa isa) {
#if DNNL_VERSION_MAJOR >= 3
  if (isa == dnnl::cpu_isa::avx512_core_fp16) return "avx512_core_fp16";
#endif
#if DNNL_VERSION_MAJOR >= 3 || DNNL_VERSION_MINOR >= 2
  if (isa == dnnl::cpu_isa::avx2_vnni) return "avx2_vnni";
#endif
  return nullptr;
}

}  // namespace duplex::onednn
