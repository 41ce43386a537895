// The stand-in for cuDNN: softmax, and convolutions through the backend interface.
#include <cudnn.h>
#include <cudnn_backend.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/stand_in/convolution.h"
#include "tests/stand_in/descriptor.h"
#include "tests/stand_in/stand_in.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  std::atomic<bool> in_use{false};
};
struct cudnnTensorStruct {
  int samples = 0, channels = 0;
};

namespace {

using namespace duplex::stand_in;

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
      return 8;
    case CUDNN_TYPE_FLOAT:
      return sizeof(float);
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return sizeof(void*);
    default:
      return sizeof(int);  // An enumeration.
  }
}

Described& described(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<Described*>(descriptor);
}

std::atomic<long> plans{0}, plans_now{0}, plans_at_once{0}, shared_handles{0};

/// A handle that one thread uses for the time of a call. cuDNN forbids two at once.
class InUse {
 public:
  explicit InUse(cudnnHandle_t handle) : handle_(handle) {
    if (handle_ != nullptr && handle_->in_use.exchange(true)) ++shared_handles;
  }
  ~InUse() {
    if (handle_ != nullptr) handle_->in_use = false;
  }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  cudnnHandle_t handle_;
};

/// Returns the handle that a descriptor was given, or null where it has none of its own.
cudnnHandle_t handle_of(const Described& it) {
  for (const auto name : {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_ATTR_EXECUTION_PLAN_HANDLE})
    if (it.attributes.count(name) != 0) return it.one<cudnnHandle_t>(name);
  return it.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
             ? handle_of(it.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH))
             : nullptr;
}

/// Takes the time in which threads that ask for plans side by side meet. STAND_IN_MEETS=N in the
/// environment has each wait for N of them, once, and at most for some seconds.
void take_time_for_a_plan() {
  static std::atomic<bool> met{false};
  const char* meets = std::getenv("STAND_IN_MEETS");
  if (meets == nullptr) met = false;
  ++plans;
  const long now = ++plans_now;
  for (long most = plans_at_once; now > most && !plans_at_once.compare_exchange_weak(most, now);) {
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (meets != nullptr && !met) {
    met = met || plans_now >= std::atol(meets) || std::chrono::steady_clock::now() > end;
    std::this_thread::yield();
  }
  --plans_now;
}

bool is_even(const Described& convolution) {
  return convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) ==
         convolution.all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
}

}  // namespace

void duplex::stand_in::count_plans(Counts& counts) {
  counts.plans = plans;
  counts.plans_at_once = plans_at_once;
  counts.shared_handles = shared_handles;
}

std::size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
/// STAND_IN_CUDA=12 in the environment makes it the cuDNN for another CUDA.
std::size_t cudnnGetCudartVersion() {
  const char* other = std::getenv("STAND_IN_CUDA");
  return other == nullptr ? CUDART_VERSION : std::stoul(other) * 1000;
}
#if CUDNN_VERSION >= 90000
void cudnnGetLastErrorString(char* message, std::size_t) {
  message[0] = '\0';
}
#endif
const char* cudnnGetErrorString(cudnnStatus_t) {
  return "an error of the stand-in";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  *descriptor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor, cudnnTensorFormat_t,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
  if (type != CUDNN_DATA_FLOAT || h != 1 || w != 1) return CUDNN_STATUS_NOT_SUPPORTED;
  *descriptor = {n, c};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t, const void*,
                                  const cudnnTensorDescriptor_t shape, const void* from,
                                  const void*, const cudnnTensorDescriptor_t, void* to) {
  if (algorithm != CUDNN_SOFTMAX_LOG) return CUDNN_STATUS_NOT_SUPPORTED;
  const auto samples = static_cast<std::size_t>(shape->samples);
  const auto channels = static_cast<std::size_t>(shape->channels);
  enqueue_kernel(handle->stream, time_of_copy(8 * shape->samples * shape->channels), [=] {
    for (std::size_t n = 0; n < samples; ++n) {
      const float* x = static_cast<const float*>(from) + n * channels;
      float* y = static_cast<float*>(to) + n * channels;
      float most = -std::numeric_limits<float>::infinity();
      for (std::size_t c = 0; c < channels; ++c) most = std::max(most, x[c]);
      double sum = 0.0;
      for (std::size_t c = 0; c < channels; ++c) sum += std::exp(static_cast<double>(x[c] - most));
      for (std::size_t c = 0; c < channels; ++c)
        y[c] = x[c] - most - static_cast<float>(std::log(sum));
    }
  });
  return CUDNN_STATUS_SUCCESS;
}

/// STAND_IN_PROPOSES_NOT in the environment has it fail where engines are asked for.
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  if (type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
      std::getenv("STAND_IN_PROPOSES_NOT") != nullptr)
    return CUDNN_STATUS_ALLOC_FAILED;
  auto made = std::make_unique<Described>();
  made->type = type;
  *descriptor = made.release();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<Described*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  const auto* bytes = static_cast<const char*>(values);
  described(descriptor).attributes[name] = {
      bytes, bytes + static_cast<std::size_t>(count) * bytes_of(type)};
  return CUDNN_STATUS_SUCCESS;
}

/// Refuses what engines of the real cuDNN refuse as well.
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  const Described& it = described(descriptor);
  const InUse handle(handle_of(it));
  if (it.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR) {
    const Described& node = *nodes_of(it.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)).at(0);
    if (!is_even(node.part(names_of(node.type).convolution))) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (it.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    take_time_for_a_plan();
    const Described& configuration = it.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    if (!engines().at(static_cast<std::size_t>(configuration.engine)).has_plan)
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, std::int64_t room,
                                       std::int64_t* count, void* values) {
  const Described& it = described(descriptor);
  const auto parts = [&](std::int64_t i) -> Described& {
    return described(static_cast<cudnnBackendDescriptor_t*>(values)[i]);
  };
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      const bool first =
          it.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) != CUDNN_HEUR_MODE_FALLBACK;
      *count = 0;
      for (std::size_t i = 0; i < engines().size(); ++i) {
        if (engines()[i].proposed != first) continue;
        if (*count < room) {
          parts(*count).engine = static_cast<int>(i);
          parts(*count).attributes = it.attributes;
        }
        ++*count;
      }
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE:
      *count = 1;
      parts(0).engine = it.engine;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const Engine& engine = engines().at(static_cast<std::size_t>(it.engine));
      *count = static_cast<std::int64_t>(engine.notes.size());
      std::copy(engine.notes.begin(), engine.notes.end(),
                static_cast<cudnnBackendNumericalNote_t*>(values));
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE:
      *count = engines().at(static_cast<std::size_t>(it.engine)).compiled ? 1 : 0;
      if (*count == 1)
        *static_cast<cudnnBackendBehaviorNote_t*>(values) = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE: {
      const Described& configuration = it.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      *static_cast<std::int64_t*>(values) =
          engines().at(static_cast<std::size_t>(configuration.engine)).workspace;
      return CUDNN_STATUS_SUCCESS;
    }
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const InUse used(handle);
  const Described& configuration = described(plan).part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Engine& engine = engines().at(static_cast<std::size_t>(configuration.engine));
  const auto nodes = nodes_of(configuration.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
  const auto numbers = described(pack).all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = described(pack).all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto* workspace = described(pack).one<char*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  std::map<std::int64_t, void*> memory;
  for (std::size_t i = 0; i < numbers.size(); ++i) memory[numbers[i]] = pointers[i];
  enqueue_kernel(handle->stream, time_of_graph(nodes, engine), [=, &engine] {
    std::memset(workspace, 0xFF, static_cast<std::size_t>(engine.workspace));
    if (engine.computes) run_graph(nodes, engine, memory);
  });
  return CUDNN_STATUS_SUCCESS;
}
