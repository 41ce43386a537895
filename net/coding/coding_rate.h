// Measures how fast this machine codes values for the wire.
#pragma once
#include "net/coding/coding.h"

namespace duplex::net {

/// Bytes of float32 a second, of one processor.
struct CodingRate {
  double encode = 0.0, decode = 0.0;
};

/// Measures a coding of weights or gradients on chunks of 512 KiB that lie in a processor's cache,
/// and on as much memory as no cache holds, whichever is slower. The values are drawn: weights from
/// a normal distribution, with updates a 1,400th as wide, and gradients from another. It takes a
/// second.
CodingRate coding_rate(Coding coding, Values what);

}  // namespace duplex::net
