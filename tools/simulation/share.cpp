#include "tools/simulation/share.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "net/incast.h"
#include "tools/simulation/draw.h"

namespace duplex::tools::simulation {
namespace {

/// What a socket takes beyond what is in flight, as net/socket_setup.cpp has it.
constexpr double unsent_bytes = 128 << 10;

/// With what window TCP leaves slow start where it meets a queue, and by how many bytes a second it
/// grows from there: as figures 6.9 to 6.11 are on the lab.
constexpr double first_window = 100e3, window_growth = 400e3;

/// Windows of so many bytes are so often full that shares differ by Spec::unfairness; larger ones
/// are emptier, and differ by more, with their square.
constexpr double steady_window = 256 << 10, unsteady_at_most = 4.0;

}  // namespace

Share::Share(const Spec& spec, int to, std::size_t in, std::size_t out, std::uint64_t number)
    : unfairness_(spec.unfairness), seed_(spec.seed), number_(number) {
  if (spec.queue <= 0.0) return;
  // Its narrowest place is the receiver's port of the switch, where it meets other senders'
  // connections, or its sender's own link (as narrow in a mesh), which the sender's kernel shares
  // out evenly and where it keeps little.
  meets_others_ = in > out;
  most_ = meets_others_ ? spec.queue / static_cast<double>(in) : unsent_bytes;
  const auto bound = net::window_of(spec.part.size(), spec.semaphore);
  if (meets_others_ && bound && !spec.topology.is_worker(to)) {
    most_ = std::min(most_, static_cast<double>(*bound));
    const double larger = most_ / steady_window;
    unfairness_ *= std::clamp(larger * larger, 1.0, unsteady_at_most);
  }
  ahead_ = unsent_bytes + most_;
}

double Share::weight(std::uint64_t round, bool alone) {
  if (unfairness_ <= 0.0) return 1.0;
  if (round != round_) {
    round_ = round;
    drawn_ =
        std::exp(unfairness_ * normal(RandomStream(seed_, stream_of("share") + number_), round));
  }
  if (!meets_others_) return drawn_;
  // Connections share a port by what they have in flight. Whose first frame finds nobody there soon
  // has all that it may have; behind its queue the others' slow start ends early, and their windows
  // grow slowly from there.
  if (window_ == 0.0)
    window_ = alone ? most_ : std::min(first_window, most_);
  else
    window_ = std::min(window_ + sent_for_ * window_growth, most_);
  sent_for_ = 0.0;
  return drawn_ * window_ / most_;
}

}  // namespace duplex::tools::simulation
