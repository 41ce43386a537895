// The stand-in for CUDA's runtime: memory, and what is called of streams and events
// (stream.h).
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "tests/stand_in/stand_in.h"
#include "tests/stand_in/stream.h"

namespace {

using duplex::stand_in::broken;
using duplex::stand_in::host_time;
using duplex::stand_in::Mark;
using duplex::stand_in::uncapturable;

std::atomic<bool> sleeps{false};  ///< The host sleeps in waits that are not for events.
std::atomic<long> events_made{0}, spinning_waits{0}, kernels{0};
std::atomic<long> kernels_left{-1};  ///< Kernels until the GPU breaks down; below 0, it never does.

constexpr std::size_t all_memory = std::size_t{2} << 30;

std::mutex& memory_mutex() {
  static std::mutex mutex;
  return mutex;
}
std::set<cudaStream_t>& streams() {
  static std::set<cudaStream_t> all;
  return all;
}
std::map<void*, std::size_t>& allocations() {
  static std::map<void*, std::size_t> sizes;
  return sizes;
}
/// Host memory that copies need not wait for (pinned): begin and size.
std::map<const char*, std::size_t>& registered() {
  static std::map<const char*, std::size_t> ranges;
  return ranges;
}

std::size_t used() {
  std::size_t sum = 0;
  for (const auto& [data, bytes] : allocations()) sum += bytes;
  return sum;
}

bool is_registered(const void* data) {
  const std::lock_guard lock(memory_mutex());
  const auto* at = static_cast<const char*>(data);
  auto range = registered().upper_bound(at);
  if (range == registered().begin()) return false;
  --range;
  return at < range->first + range->second;
}

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t failed(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

}  // namespace

void duplex::stand_in::enqueue(cudaStream_t stream, std::function<void()> work) {
  stream->add(0, std::move(work));
}
void duplex::stand_in::enqueue_kernel(cudaStream_t stream, Time takes, std::function<void()> work) {
  ++kernels;
  stream->add(takes, [work = std::move(work)] {
    if (kernels_left > 0 && --kernels_left == 0) broken = true;
    if (!broken) work();
  });
}

bool duplex::stand_in::may_launch(dim3 grid, dim3 block) {
  // Down, CUDA allows 65,535; that many would take a test minutes.
  constexpr unsigned most_across = 0x7FFFFFFF, most_down = 16, most_threads = 1024;
  const bool may = grid.x > 0 && grid.x <= most_across && grid.y > 0 && grid.y <= most_down &&
                   block.x > 0 && block.y > 0 && std::uint64_t{block.x} * block.y <= most_threads;
  return failed(may ? cudaSuccess : cudaErrorInvalidConfiguration) == cudaSuccess;
}

void duplex_stand_in_counts(duplex::stand_in::Counts* counts) {
  *counts = {events_made, spinning_waits, kernels, 0, 0, duplex::stand_in::graphs_launched(), 0};
  duplex::stand_in::count_plans(*counts);
}

/// Has the host wait for a stream.
static void wait_for(cudaStream_t stream) {
  if (!sleeps && !stream->idle()) ++spinning_waits;
  stream->wait();
}

/// Returns whether an event's stream has come to it. The calling thread has waited for it then.
static bool passed(cudaEvent_t event) {
  if (!event->mark) return true;
  if (!event->mark->passed()) return false;
  host_time = std::max(host_time, event->mark->wait());
  return true;
}

/// Returns what calls answer: an error once the GPU has broken down.
static cudaError_t state() {
  return failed(broken ? cudaErrorIllegalAddress : cudaSuccess);
}

cudaError_t cudaGetLastError() {
  if (broken) return cudaErrorIllegalAddress;
  return std::exchange(last_error, cudaSuccess);
}
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "an illegal memory access was encountered";
  if (error == cudaErrorInvalidConfiguration) return "invalid configuration argument";
  return error == cudaErrorMemoryAllocation ? "out of memory" : "an error of the stand-in";
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return failed(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaSetDeviceFlags(unsigned flags) {
  sleeps = (flags & cudaDeviceScheduleMask) == cudaDeviceScheduleBlockingSync;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "a stand-in for a GPU");
  properties->multiProcessorCount = 1;
  properties->major = 9;
  const char* breaks_at = std::getenv("STAND_IN_BREAKS_AT");
  kernels_left = breaks_at == nullptr ? -1 : std::atol(breaks_at);
  broken = false;
  last_error = cudaSuccess;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  const std::lock_guard lock(memory_mutex());
  if (bytes > all_memory - std::min(used(), all_memory)) return failed(cudaErrorMemoryAllocation);
  constexpr std::size_t alignment = 256;
  *data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  allocations()[*data] = bytes;
  return cudaSuccess;
}
/// Waits for all that was asked for, as CUDA's cudaFree does.
cudaError_t cudaFree(void* data) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  const std::lock_guard lock(memory_mutex());
  for (CUstream_st* stream : streams()) stream->wait();
  allocations().erase(data);
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(memory_mutex());
  *free = all_memory - std::min(used(), all_memory);
  *total = all_memory;
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void* data, std::size_t bytes, unsigned) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  const std::lock_guard lock(memory_mutex());
  registered()[static_cast<const char*>(data)] = bytes;
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* data) {
  const std::lock_guard lock(memory_mutex());
  registered().erase(static_cast<const char*>(data));
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** data, std::size_t bytes, unsigned flags) {
  *data = std::malloc(std::max<std::size_t>(bytes, 1));
  return cudaHostRegister(*data, bytes, flags);
}
cudaError_t cudaHostGetDevicePointer(void** seen, void* data, unsigned) {
  *seen = data;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  cudaHostUnregister(data);
  std::free(data);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  const std::lock_guard lock(memory_mutex());
  streams().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(memory_mutex());
    streams().erase(stream);
  }
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t status = uncapturable()) return failed(status);
  const std::lock_guard lock(memory_mutex());
  for (CUstream_st* stream : streams()) stream->wait();
  return state();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  wait_for(stream);
  return state();
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  if (!broken && !stream->idle()) return failed(cudaErrorNotReady);
  return state();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  stream->add_wait(event->mark);
  return cudaSuccess;
}
/// A copy from or to pageable memory of the host is done before the call returns.
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  stream->add(duplex::stand_in::time_of_copy(static_cast<std::int64_t>(bytes)),
              [=] { std::memcpy(to, from, bytes); });
  const bool waits = (kind == cudaMemcpyHostToDevice && !is_registered(from)) ||
                     (kind == cudaMemcpyDeviceToHost && !is_registered(to));
  if (!waits) return state();
  if (const cudaError_t status = uncapturable()) return failed(status);
  wait_for(stream);
  return state();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ++events_made;
  *event = new CUevent_st;
  (*event)->sleeps = (flags & cudaEventBlockingSync) != 0;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  event->mark = std::make_shared<Mark>();
  stream->add_mark(event->mark);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  if (!broken && !passed(event)) return failed(cudaErrorNotReady);
  return state();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t status = uncapturable()) return failed(status);
  if (!event->sleeps && !passed(event)) ++spinning_waits;
  if (event->mark) host_time = std::max(host_time, event->mark->wait());
  return state();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  for (const CUevent_st* event : {begin, end}) {
    if (!event->timed || !event->mark) return failed(cudaErrorInvalidResourceHandle);
    if (!broken && !event->mark->passed()) return failed(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>(end->mark->wait() - begin->mark->wait()) * 1e-6F;
  return state();
}
