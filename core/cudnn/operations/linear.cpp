// cuBLAS stores matrices by columns: what it calls A^T is a row-major A. With x (N, in), weights
// (out, in), y (N, out):
//   y^T = W x^T, dx^T = W^T dy^T, dW^T = x^T dy.
#include "core/cudnn/operations/linear.h"

#include "core/cudnn/staging.h"

namespace duplex::cudnn {
namespace {

/// cuBLAS multiplies tensors of the context's type. Callers keep weights in float32, and may have x
/// in another type; such tensors are staged.
class GpuLinear final : public Linear {
 public:
  GpuLinear(const ContextPtr& context, const LinearSpec& spec, const TensorDesc& desc)
      : context_(context), spec_(spec), type_(context->type()) {
    x = desc;
    y = desc_of(output_shape(spec, x.shape), Order::nchw, type_);
    weights = linear_weights(spec.outputs, x);
    if (spec.bias) {
      bias = plain_desc({spec.outputs});
      workspace_ = context->reserve(bias_workspace(*context, y));
    }
    Staging staging;
    x_ = Staged(desc_of(x.shape, view_of(x).order, type_), x, staging);
    const Staging others = staging;
    weights_ = Staged(linear_weights(spec.outputs, x, type_), weights, staging);
    room_ = StagingRoom(*context, staging, others);
    samples_ = static_cast<int>(x.shape.n());
    inputs_ = static_cast<int>(x.shape.elements() / x.shape.n());
    outputs_ = static_cast<int>(spec.outputs);
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    const Context& context = *context_;
    room_.expect(*context_, w);
    multiply("linear layer", CUBLAS_OP_T, CUBLAS_OP_N, outputs_, samples_, inputs_,
             weights_.read_weights(context, w), inputs_, x_.read(context, x_in), inputs_, y_out);
    add_bias(context, y_out, b, spec_.relu);
  }

  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    const Context& context = *context_;
    room_.expect(*context_, w);
    Tensor to = x_.room(context, dx);
    multiply("gradient of a linear layer's input", CUBLAS_OP_N, CUBLAS_OP_N, inputs_, samples_,
             outputs_, weights_.read_weights(context, w), inputs_, dy, outputs_, to);
    x_.write(context, dx);
  }

  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    multiply("gradient of a linear layer's weights", CUBLAS_OP_N, CUBLAS_OP_T, inputs_, outputs_,
             samples_, x_.read(*context_, x_in), inputs_, dy, outputs_, dw);
    if (spec_.bias) bias_gradient(*context_, db, dy);
  }

 private:
  /// c = a b, where c (m x n) is stored by columns without gaps. a and b have k common extents and
  /// the context's type.
  void multiply(const char* what, cublasOperation_t on_a, cublasOperation_t on_b, int m, int n,
                int k, const Tensor& a, int stride_a, const Tensor& b, int stride_b,
                Tensor& c) const {
    context_->enter();
    const float one = 1.0F, zero = 0.0F;
    if (type_ == Type::float32) {
      check(cublasSgemm(context_->blas(), on_a, on_b, m, n, k, &one, a.data, stride_a, b.data,
                        stride_b, &zero, c.data, m),
            what);
      return;
    }
    const cudaDataType_t result = view_of(c.desc).type == Type::bf16 ? CUDA_R_16BF : CUDA_R_32F;
    check(cublasGemmEx(context_->blas(), on_a, on_b, m, n, k, &one, a.data, CUDA_R_16BF, stride_a,
                       b.data, CUDA_R_16BF, stride_b, &zero, c.data, result, m, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT),
          what);
  }

  ContextPtr context_;
  Reservation workspace_;
  StagingRoom room_;
  LinearSpec spec_;
  Type type_;
  Staged x_, weights_;
  int samples_ = 0, inputs_ = 0, outputs_ = 0;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const ContextPtr& context, const LinearSpec& spec,
                                    const TensorDesc& x) {
  return std::make_unique<GpuLinear>(context, spec, x);
}

}  // namespace duplex::cudnn
