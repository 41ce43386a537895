// Exercise 5: docs/course/05-transfer.md. The student writes transfer.cpp.
#pragma once

namespace exercise {

/// Returns how many bits of payload a second TCP carries over an Ethernet link of `bits_per_second`
/// with packets of at most `mtu` bytes.
double payload_rate(double bits_per_second, double mtu);

/// Returns t_comm: the seconds in which all weights of a network, `parameters` numbers of float32,
/// cross such a link once.
double transfer_seconds(double parameters, double bits_per_second, double mtu);

}  // namespace exercise
