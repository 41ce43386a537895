// This is the check of exercise 5.
#pragma once
#include "course/05_transfer/transfer.h"
#include "course/harness/exercise.h"

namespace duplex::course {

using PayloadRate = decltype(exercise::payload_rate);
using TransferSeconds = decltype(exercise::transfer_seconds);

Exercise transfer_exercise(PayloadRate* rate, TransferSeconds* seconds);

}  // namespace duplex::course
