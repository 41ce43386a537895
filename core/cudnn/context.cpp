#include "core/cudnn/context.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/cudnn/kernels/readiness.h"
#include "core/error.h"

namespace duplex::cudnn {
namespace {

std::string mebibytes(std::size_t bytes) {
  return std::to_string(bytes >> 20) + " MiB";
}

int gpus() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw Error("cuda: this machine has no NVIDIA GPU; --device cpu trains without");
  if (status == cudaErrorInsufficientDriver)
    throw Error("cuda: there is no NVIDIA driver here, or one too old for CUDA " +
                std::to_string(CUDART_VERSION / 1000) + "; --device cpu trains without");
  check(status, "counting the GPUs");
  return count;
}

/// cudnnGetVersion() gives major * 1000 + minor * 100 before cuDNN 9, and major * 10000 + minor *
/// 100 from then on. Returns the factor of the major version in such a number.
std::size_t unit_of(std::size_t number) {
  return number < 90000 ? 1000 : 10000;
}
std::size_t major_of(std::size_t number) {
  return number / unit_of(number);
}

/// "9.19".
std::string cudnn_version(std::size_t number) {
  return std::to_string(major_of(number)) + "." + std::to_string(number % unit_of(number) / 100);
}

/// A library that is older than the headers, or of another major version, may lack what the program
/// asks for, or answer otherwise. libcudnn.so.9 is the name of those for CUDA 12 and for CUDA 13.
void check_cudnn() {
  constexpr std::size_t cuda = CUDART_VERSION / 1000;
  if (cudnnGetCudartVersion() / 1000 != cuda)
    throw Error("cuda: this program was built with CUDA " + std::to_string(cuda) +
                ", but finds cuDNN for CUDA " + std::to_string(cudnnGetCudartVersion() / 1000) +
                " here; put the other first in LD_LIBRARY_PATH, or build again (make probe)");
  const std::size_t here = cudnnGetVersion(), built = CUDNN_VERSION;
  if (here >= built && major_of(here) == major_of(built)) return;
  throw Error("cuda: this program was built with cuDNN " + cudnn_version(CUDNN_VERSION) +
              ", but finds cuDNN " + cudnn_version(cudnnGetVersion()) +
              " here; put the other first in LD_LIBRARY_PATH, or build again (make probe)");
}

}  // namespace

std::string Context::cudnn() {
  return "cuDNN " + cudnn_version(cudnnGetVersion());
}

Context::Context(const GpuOptions& options)
    : index_(options.index),
      precision_(options.precision),
      graphs_(options.graphs),
      order_(options.channels_last ? Order::nhwc : Order::nchw) {
  const int count = gpus();
  if (index_ < 0 || index_ >= count)
    throw Error("cuda: there is no GPU " + std::to_string(index_) + "; this machine has " +
                    (count == 1 ? "one, number 0" : "0 to " + std::to_string(count - 1)),
                Exit::failed);
  check_cudnn();
  enter();
  sleep_in_waits();
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index_), "asking for the GPU's properties");
  gpu_ = properties.name;
  place_ = std::to_string(properties.pciDomainID) + "." + std::to_string(properties.pciBusID) +
           "." + std::to_string(properties.pciDeviceID);
  memory_bytes_ = properties.totalGlobalMem;
  multiprocessors_ = properties.multiProcessorCount;
  if (!kernels_fit())
    throw Error("cuda: this program has no code for GPU " + std::to_string(index_) + ", " + gpu_ +
                ", of compute capability " + std::to_string(properties.major) + "." +
                std::to_string(properties.minor) +
                "; build it again on this machine (make probe), with a CUDA that compiles for it");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  stream_.reset(stream);
  in_use_ = stream;
  cudnnHandle_t dnn = nullptr;
  check(cudnnCreate(&dnn), "starting cuDNN");
  dnn_.reset(dnn);
  check(cudnnSetStream(dnn, stream), "starting cuDNN");
  cublasHandle_t blas = nullptr;
  check(cublasCreate(&blas), "starting cuBLAS");
  blas_.reset(blas);
  check(cublasSetStream(blas, stream), "starting cuBLAS");
  if (precision_ == Precision::tf32)
    check(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH), "starting cuBLAS");
  if (precision_ == Precision::bf16)  // Else cuBLAS may keep partial sums in bf16.
    check(cublasSetMathMode(blas, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
          "starting cuBLAS");
  if (graphs_) {
    // This is as much as cuBLAS takes by itself, so that it chooses the same algorithms. It forgets
    // this memory when it is given a stream.
    const std::size_t bytes = std::size_t{properties.major >= 9 ? 32U : 4U} << 20;
    blas_workspace_ = allocate(bytes);
    check(cublasSetWorkspace(blas, blas_workspace_.data(), bytes), "starting cuBLAS");
  }
}

Buffer Context::allocate(std::size_t bytes) const {
  enter();
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // Else the next call would report it.
    std::size_t free = 0, all = 0;
    cudaMemGetInfo(&free, &all);
    throw OutOfMemory("cuda: out of memory on " + gpu_ + ": " + mebibytes(bytes) + " asked for, " +
                          mebibytes(free) + " of " + mebibytes(all) + " free",
                      bytes, free);
  }
  check(status, "allocating memory");
  *allocated_ += bytes;
  return {data, bytes, [index = index_, allocated = allocated_, bytes](void* memory) {
            cudaSetDevice(index);
            cudaFree(memory);
            *allocated -= bytes;
          }};
}

void Context::grow(Buffer& buffer, std::size_t bytes) const {
  if (bytes > buffer.bytes()) replace(buffer, bytes);
}

void Context::replace(Buffer& buffer, std::size_t bytes) const {
  enter();
  check(cudaDeviceSynchronize(), "waiting for the GPU");
  count_move();
  buffer = Buffer();
  if (bytes > 0) buffer = allocate(bytes);
}

void Context::choose_order(Order order) {
  order_ = order;
  count_move();
  workspace_.trim(*this);
  staging_.trim(*this);
}

Buffer Context::pinned(std::size_t bytes) const {
  enter();
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault), "pinning memory");
  return {data, bytes, [](void* memory) { cudaFreeHost(memory); }};
}

std::shared_ptr<void> Context::pin(void* data, std::size_t bytes) const {
  enter();
  if (bytes == 0 || cudaHostRegister(data, bytes, cudaHostRegisterPortable) != cudaSuccess) {
    cudaGetLastError();  // Else the next call would report it.
    if (bytes > 0 && !std::exchange(refused_pin_, true))
      std::fprintf(
          stderr,
          "cuda: the driver pins no %s of host memory (ulimit -l?); every copy from and to "
          "it keeps the host waiting\n",
          mebibytes(bytes).c_str());
    return nullptr;
  }
  return {data, [](void* memory) { cudaHostUnregister(memory); }};
}

void Context::start_copy_in(void* to, const void* from, std::size_t bytes) const {
  enter();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream()), "copying to the GPU");
}

void Context::copy_in(void* to, const void* from, std::size_t bytes) const {
  start_copy_in(to, from, bytes);
  synchronize();
}

void Context::copy_out(void* to, const void* from, std::size_t bytes) const {
  enter();
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream()), "copying from the GPU");
  synchronize();
}

}  // namespace duplex::cudnn
