// This is the check of exercise 6.
#pragma once
#include <string>

#include "course/06_central_server/central_server.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using Collect = decltype(exercise::collect);
using Average = decltype(exercise::average);
using Publish = decltype(exercise::publish);

/// `program` is the program whose central server works by these functions.
Exercise central_server_exercise(Collect* collect, Average* average, Publish* publish,
                                 const std::string& program);

}  // namespace duplex::course
