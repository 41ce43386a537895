#include "tools/simulation/share.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "net/connection/receive_window.h"
#include "tools/simulation/draw.h"

namespace duplex::tools::simulation {
namespace {

/// Bytes that a socket holds beyond those in flight: the kernel asks for more when half of what
/// net/wire/socket_setup.cpp lets it hold is left.
constexpr double unsent_bytes = 32 << 10;

/// The window with which TCP leaves slow start when it meets a queue (HyStart; Ha and Rhee 2008):
/// about `first_window`, with a stddev of its logarithm of `first_spread`, since the window doubles
/// until then and chance says when. If the queue is in its own host, it goes on until the window
/// holds twice what waits there. docs/decisions/prediction.md says what the numbers are fitted to.
constexpr double first_window = 100e3, first_spread = 0.7, host_window = 2 * Share::host_bytes;

/// A part of a port is drawn for so many bytes.
constexpr double drawn_for = 512 << 10;

/// From there a window grows by this part of the bytes sent while nothing is lost, as with Linux's
/// CUBIC. Nothing is lost, since a rank narrows its peers' windows until its port holds them
/// (net/connection/receive_window.h).
constexpr double growth = 0.05;

/// Connections to a rank meet if this many times as much is sent to it as it sends.
constexpr double crowded = 1.1;

}  // namespace

Share::Share(const Spec& spec, int to, std::size_t in, double crowd, std::uint64_t number)
    : unfairness_(spec.unfairness), random_(spec.seed, stream_of("share") + number) {
  if (spec.queue <= 0.0) return;
  const bool dedicated = spec.topology.mode == net::ServerMode::central;
  meets_ = crowd > crowded;
  // New weights leave a synchronous server for all workers at once, one after another.
  differs_ = meets_ || (dedicated && spec.sync != net::Sync::none);
  own_queue_ = meets_ ? unsent_bytes : unsent_bytes + host_bytes;
  most_ = spec.queue / static_cast<double>(in);
  const auto bound = net::window_of(in, !spec.topology.is_worker(to), spec.semaphore);
  if (bound) most_ = std::min(most_, static_cast<double>(*bound));
  window_ = std::min(meets_ ? first_window * drawn(first_spread) : host_window, most_);
}

/// Draws a factor whose logarithm has this stddev.
double Share::drawn(double stddev) {
  return unfairness_ > 0.0 ? std::exp(stddev * normal(random_, draws_++)) : 1.0;
}

double Share::ahead() const {
  return own_queue_ + waiting();
}

double Share::weight() {
  if (!differs_) return 1.0;
  // Connections share a port by the bytes that they have in flight there.
  if (drawn_left_ <= 0.0) {
    unfair_ = drawn(unfairness_);
    drawn_left_ = drawn_for;
  }
  return unfair_ * (meets_ ? window_ / most_ : 1.0);
}

double Share::limit(double back) const {
  return back > 0.0 ? window_ / back : std::numeric_limits<double>::infinity();
}

void Share::sent(double bytes, bool limited) {
  drawn_left_ -= bytes;
  if (!meets_ && !limited) return;
  window_ = std::min(window_ + bytes * growth, most_);
}

}  // namespace duplex::tools::simulation
