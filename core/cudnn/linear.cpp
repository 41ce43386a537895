// cuBLAS counts by columns: what it calls A^T is a row-major A. With x (N, in), weights (out, in),
// y (N, out):
//   y^T = W x^T, dx^T = W^T dy^T, dW^T = x^T dy.
#include "core/cudnn/linear.h"

#include "core/cudnn/kernels.h"
#include "core/cudnn/layout.h"

namespace duplex::cudnn {
namespace {

class GpuLinear final : public Linear {
 public:
  GpuLinear(const ContextPtr& context, const LinearSpec& spec, const TensorDesc& desc)
      : context_(context), spec_(spec) {
    x = desc;
    y = plain_desc(output_shape(spec, x.shape));
    weights = linear_weights(spec.outputs, x);
    if (spec.bias) {
      bias = plain_desc({spec.outputs});
      context->reserve(bias_workspace(*context, y));
    }
    samples_ = static_cast<int>(x.shape.n());
    inputs_ = static_cast<int>(x.shape.elements() / x.shape.n());
    outputs_ = static_cast<int>(spec.outputs);
  }

  void forward(Tensor& y_out, const Tensor& x_in, const Tensor& w, const Tensor& b) override {
    multiply("linear layer", CUBLAS_OP_T, CUBLAS_OP_N, outputs_, samples_, inputs_, w.data, inputs_,
             x_in.data, inputs_, y_out.data);
    if (spec_.bias) {
      add_bias(*context_, y_out, b, spec_.relu);
    } else if (spec_.relu) {
      rectify(*context_, y_out);
    }
  }

  void backward_data(Tensor& dx, const Tensor& dy, const Tensor& w) override {
    multiply("gradient of a linear layer's input", CUBLAS_OP_N, CUBLAS_OP_N, inputs_, samples_,
             outputs_, w.data, inputs_, dy.data, outputs_, dx.data);
  }

  void backward_weights(Tensor& dw, Tensor& db, const Tensor& dy, const Tensor& x_in) override {
    multiply("gradient of a linear layer's weights", CUBLAS_OP_N, CUBLAS_OP_T, inputs_, outputs_,
             samples_, x_in.data, inputs_, dy.data, outputs_, dw.data);
    if (spec_.bias) bias_gradient(*context_, db, dy);
  }

 private:
  /// c (m x n, by columns, without gaps) = a b, of k common extents.
  void multiply(const char* what, cublasOperation_t on_a, cublasOperation_t on_b, int m, int n,
                int k, const float* a, int stride_a, const float* b, int stride_b, float* c) const {
    context_->enter();
    const float one = 1.0F, zero = 0.0F;
    check(cublasSgemm(context_->blas(), on_a, on_b, m, n, k, &one, a, stride_a, b, stride_b, &zero,
                      c, m),
          what);
  }

  ContextPtr context_;
  LinearSpec spec_;
  int samples_ = 0, inputs_ = 0, outputs_ = 0;
};

}  // namespace

std::unique_ptr<Linear> make_linear(const ContextPtr& context, const LinearSpec& spec,
                                    const TensorDesc& x) {
  return std::make_unique<GpuLinear>(context, spec, x);
}

}  // namespace duplex::cudnn
