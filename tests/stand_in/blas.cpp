// cuBLAS: matrices by columns.
#include <cublas_v2.h>

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

cublasStatus_t cublasSgemm_v2(cublasHandle_t handle, cublasOperation_t on_a, cublasOperation_t on_b,
                              int m, int n, int k, const float* alpha, const float* a, int stride_a,
                              const float* b, int stride_b, const float* beta, float* c,
                              int stride_c) {
  if (*alpha != 1.0F || *beta != 0.0F) return CUBLAS_STATUS_NOT_SUPPORTED;
  duplex::stand_in::enqueue(handle->stream, [=] {
    const auto at = [](const float* matrix, cublasOperation_t operation, int stride, int row,
                       int column) {
      return operation == CUBLAS_OP_N ? matrix[column * stride + row]
                                      : matrix[row * stride + column];
    };
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        float sum = 0.0F;
        for (int i = 0; i < k; ++i)
          sum += at(a, on_a, stride_a, row, i) * at(b, on_b, stride_b, i, column);
        c[column * stride_c + row] = sum;
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
