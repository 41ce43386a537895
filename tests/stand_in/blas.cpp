// The stand-in for cuBLAS, whose matrices are stored by columns.
#include <cublas_v2.h>

#include <cstdint>

#include "core/cudnn/kernels/bfloat16.h"
#include "tests/stand_in/stand_in.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
};

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) {
  return CUBLAS_STATUS_SUCCESS;
}

namespace {

using duplex::cudnn::BFloat16;

template <class From, class To>
void multiply(cudaStream_t stream, cublasOperation_t on_a, cublasOperation_t on_b, int m, int n,
              int k, const void* a, int stride_a, const void* b, int stride_b, void* c,
              int stride_c) {
  const std::int64_t macs = std::int64_t{m} * n * k;
  duplex::stand_in::enqueue_kernel(stream, duplex::stand_in::time_of_kernel(macs), [=] {
    const auto at = [](const void* matrix, cublasOperation_t operation, int stride, int row,
                       int column) -> float {
      return static_cast<const From*>(
          matrix)[operation == CUBLAS_OP_N ? column * stride + row : row * stride + column];
    };
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        float sum = 0.0F;
        for (int i = 0; i < k; ++i)
          sum += at(a, on_a, stride_a, row, i) * at(b, on_b, stride_b, i, column);
        static_cast<To*>(c)[column * stride_c + row] = sum;
      }
    }
  });
}

}  // namespace

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t on_a, cublasOperation_t on_b,
                              int m, int n, int k, const float* alpha, const float* a, int stride_a,
                              const float* b, int stride_b, const float* beta, float* c,
                              int stride_c) {
  if (*alpha != 1.0F || *beta != 0.0F) return CUBLAS_STATUS_NOT_SUPPORTED;
  multiply<float, float>(handle->stream, on_a, on_b, m, n, k, a, stride_a, b, stride_b, c,
                         stride_c);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t on_a, cublasOperation_t on_b,
                            int m, int n, int k, const void* alpha, const void* a,
                            cudaDataType a_type, int stride_a, const void* b, cudaDataType b_type,
                            int stride_b, const void* beta, void* c, cudaDataType c_type,
                            int stride_c, cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (*static_cast<const float*>(alpha) != 1.0F || *static_cast<const float*>(beta) != 0.0F ||
      a_type != CUDA_R_16BF || b_type != CUDA_R_16BF || compute != CUBLAS_COMPUTE_32F)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (c_type == CUDA_R_16BF) {
    multiply<BFloat16, BFloat16>(handle->stream, on_a, on_b, m, n, k, a, stride_a, b, stride_b, c,
                                 stride_c);
  } else {
    multiply<BFloat16, float>(handle->stream, on_a, on_b, m, n, k, a, stride_a, b, stride_b, c,
                              stride_c);
  }
  return CUBLAS_STATUS_SUCCESS;
}
