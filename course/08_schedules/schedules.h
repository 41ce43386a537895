// Exercise 8: docs/course/08-schedules.md. The student writes schedules.cpp.
#pragma once

namespace exercise {

/// Each returns the seconds of one synchronous iteration, by t_comm and t_grad in seconds.
double central_best(int workers, double comm, double grad);   ///< (4.4)
double central_worst(int workers, double comm, double grad);  ///< (4.7)
double distributed(int workers, double comm, double grad);    ///< (4.12)

/// Returns with how many workers, from 1 to `most`, sync split with a central server is fastest by
/// the worst schedule (4.7). Each worker computes the gradient of its part of the batch in
/// grad / workers seconds. Among equals it is the least number.
int peak_of_split(int most, double comm, double grad);

}  // namespace exercise
