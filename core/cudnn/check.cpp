#include "core/cudnn/check.h"

#include <array>

#include "core/error.h"

namespace duplex::cudnn {
namespace {

[[noreturn]] void fail(const char* what, const std::string& why) {
  throw Error(std::string("cuda: ") + what + ": " + why);
}

/// Returns our own text, because cuBLAS has texts of its own only since CUDA 11.4.
std::string text_of(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "cuBLAS could not start, often for lack of memory";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "cuBLAS has no memory left";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "cuBLAS does not support this GPU";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "a kernel of cuBLAS failed";
    default:
      return "cuBLAS reports error " + std::to_string(static_cast<int>(status));
  }
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail(what, cudaGetErrorString(status));
}

void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(what, text_of(status));
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string why = cudnnGetErrorString(status);
#if CUDNN_VERSION >= 90000
  std::array<char, 512> more{};
  cudnnGetLastErrorString(more.data(), more.size());
  for (char& letter : more)
    if (letter == '\n') letter = ' ';
  if (more[0] != '\0') why += std::string(": ") + more.data();
#endif
  fail(what, why);
}

}  // namespace duplex::cudnn
