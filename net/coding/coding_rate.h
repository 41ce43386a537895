// Measures how fast this machine codes values for the wire.
#pragma once
#include "net/coding/coding.h"

namespace duplex::net {

/// Bytes of float32 a second, of one processor.
struct CodingRate {
  double encode = 0.0, decode = 0.0;
};

/// Measures a coding on chunks of 512 KiB that lie in a processor's cache, and on as much memory as
/// no cache holds, whichever is slower. It takes some tenths of a second.
CodingRate coding_rate(Coding coding);

}  // namespace duplex::net
