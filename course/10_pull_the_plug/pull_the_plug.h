// Exercise 10: docs/course/10-pull-the-plug.md. The student writes pull_the_plug.cpp.
#pragma once
#include <cstdint>

namespace exercise {

/// Returns how many steps a synchronous training of several machines has to do again, if the power
/// fails after `done` steps and a checkpoint is written after every `every` steps (0: none is).
std::int32_t steps_again(std::int32_t done, std::int32_t every);

/// Returns the seconds of an asynchronous training in which each of `workers` workers, at least two
/// of them, has `batches` batches, and every worker takes `grad` seconds for one. When each has
/// done `done` of them, one worker is lost for good; the others share out evenly what it leaves, in
/// whole batches. Transfers take no time.
double async_seconds(std::int32_t workers, std::int32_t batches, double grad, std::int32_t done);

/// Returns which part of its time a training loses that writes a checkpoint every `interval`
/// seconds, each of which takes `cost` seconds, if power fails every `between` seconds on average:
/// what the checkpoints take, and the half of an interval that is lost with each failure.
double lost_part(double interval, double cost, double between);

/// Returns the interval for which lost_part() is least (Young 1974).
double best_interval(double cost, double between);

}  // namespace exercise
