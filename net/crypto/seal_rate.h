// Measures how fast this machine seals.
#pragma once

namespace duplex::net {

/// Measures the bytes a second that one processor seals, in messages of 512 KiB; opening takes as
/// long. It takes some tens of milliseconds.
double seal_rate();

}  // namespace duplex::net
