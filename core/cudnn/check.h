// What CUDA and its libraries answer, as Error.
#pragma once
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <string>

namespace duplex::cudnn {

/// Throw Error("cuda: WHAT: why") unless the call succeeded. Calls that only start something may
/// bring the error of an earlier one.
void check(cudaError_t status, const char* what);
void check(cublasStatus_t status, const char* what);
void check(cudnnStatus_t status, const char* what);

}  // namespace duplex::cudnn
