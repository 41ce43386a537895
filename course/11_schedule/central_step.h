// Synchronous training with a central server, played in virtual time.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "course/11_schedule/schedule.h"

namespace duplex::course {

using NextTransfer = std::int32_t(const exercise::Transfer* waiting, std::int32_t count,
                                  std::int32_t last);

/// A network with its times, and the machines.
struct CentralTraining {
  std::int32_t workers = 2;
  std::vector<double> comm;  ///< By tensor: seconds over a link.
  /// By tensor: seconds of computing. The backward pass begins with the last tensor.
  std::vector<double> forward, backward;

  /// Returns the seconds of all tensors over a link, t_comm.
  double comm_seconds() const;
  /// Returns the seconds in which a worker computes a gradient, t_grad.
  double grad_seconds() const;
  /// Returns a bound that no schedule beats: what the link carries in one direction, or what a
  /// worker computes.
  double least_seconds() const;
};

/// Plays eight steps. A worker computes tensor by tensor, forward as soon as its weights are there.
/// A tensor's weights are new, and leave for all workers, when the gradients of all have come.
/// Worker w computes w hundredths slower than worker 0. Returns the seconds of a step, the first
/// four left out. Throws Error where a function returns what does not wait.
double step_seconds(const CentralTraining& training, NextTransfer* next_gradient,
                    NextTransfer* next_weights);

/// This is the queued semaphore: whoever had the link goes on while it has anything, then the one
/// that has waited longest comes.
std::int32_t queued_semaphore(const exercise::Transfer* waiting, std::int32_t count,
                              std::int32_t last);

}  // namespace duplex::course
