// Turns the error codes of CUDA, cuBLAS and cuDNN into Error.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string>

namespace duplex::cudnn {

/// Throw Error("cuda: WHAT: why") unless the call succeeded. An asynchronous call may report the
/// error of an earlier one.
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

}  // namespace duplex::cudnn
