// Exercise 6: docs/course/06-central-server.md. The student writes central_server.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// A central server keeps this of one tensor.
struct Tensor {
  std::int32_t count;       ///< It has so many elements.
  std::int32_t workers;     ///< So many workers compute gradients of it.
  float* weights;           ///< [count]: the weights that the workers have
  float* gradients;         ///< [workers][count]: the gradients that were collected in this step
  std::int32_t* collected;  ///< [workers]: 1 where the worker's gradient is there, otherwise 0
};

/// Collects the gradient of worker `worker`, 0 <= worker < workers, for this step: copies it to its
/// place, since the caller's memory is overwritten afterwards. Returns how many workers' gradients
/// are still missing. Where the worker's gradient is there already, returns -1 and changes nothing.
///   gradient [count]
std::int32_t collect(Tensor& tensor, std::int32_t worker, const float* gradient);

/// Averages (3.12): the mean of all workers' gradients, which are added in the order of the
/// workers.
///   mean [count]: overwritten
void average(const Tensor& tensor, float* mean);

/// Makes the weights of the next step, weight - rate * mean, in place. Of that step nothing is
/// collected yet.
///   mean [count]
void publish(Tensor& tensor, const float* mean, float rate);

}  // namespace exercise
