#include "core/cudnn/events.h"

#include "core/clock.h"

namespace duplex::cudnn {
namespace {

/// A thread that sleeps goes on about so many nanoseconds after the GPU was done.
constexpr std::int64_t time_to_wake = 20000;

/// Returns what `query` answers as soon as that is not "not ready", or after time_to_wake.
template <class Query>
cudaError_t look(const Query& query) {
  const std::int64_t end = clock_ns() + time_to_wake;
  for (;;) {
    const cudaError_t status = query();
    if (status != cudaErrorNotReady) return status;
    cudaGetLastError();  // Else the next call would report it.
    if (clock_ns() >= end) return status;
  }
}

}  // namespace

void Events::GiveBack::operator()(cudaEvent_t event) const {
  Handle<cudaEvent_t> owned(event);
  const std::lock_guard<std::mutex> lock(pool_->mutex);
  pool_->free[static_cast<std::size_t>(kind_)].push_back(std::move(owned));
}

Event Events::recorded(cudaStream_t stream, Kind kind) const {
  Handle<cudaEvent_t> event;
  {
    const std::lock_guard<std::mutex> lock(pool_->mutex);
    auto& free = pool_->free[static_cast<std::size_t>(kind)];
    if (!free.empty()) {
      event = std::move(free.back());
      free.pop_back();
    }
  }
  if (!event) {
    cudaEvent_t made = nullptr;
    const unsigned flags =
        cudaEventBlockingSync | (kind == Kind::timed ? 0U : unsigned{cudaEventDisableTiming});
    check(cudaEventCreateWithFlags(&made, flags), "making an event");
    event.reset(made);
  }
  check(cudaEventRecord(event.get(), stream), "recording an event");
  return Event(event.release(), GiveBack(pool_, kind));
}

void sleep_in_waits() {
  // Before CUDA 12 the driver refuses where the GPU is in use already, by another device of this
  // process, which has said so then.
  if (cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync) != cudaSuccess) cudaGetLastError();
}

void wait_for(cudaEvent_t event, const char* what) {
  cudaError_t status = look([event] { return cudaEventQuery(event); });
  if (status == cudaErrorNotReady) status = cudaEventSynchronize(event);
  check(status, what);
}

void wait_for(cudaStream_t stream, const char* what) {
  cudaError_t status = look([stream] { return cudaStreamQuery(stream); });
  if (status == cudaErrorNotReady) status = cudaStreamSynchronize(stream);
  check(status, what);
}

}  // namespace duplex::cudnn
