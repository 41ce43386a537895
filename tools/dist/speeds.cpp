#include "tools/dist/speeds.h"

#include <algorithm>
#include <cstdlib>

#include "core/clock.h"
#include "core/error.h"
#include "net/link_survey.h"
#include "tools/prediction/layer_times.h"
#include "tools/text/quartiles.h"
#include "tools/training/random_steps.h"

namespace duplex::tools {
namespace {

/// Seconds of steps that count.
constexpr double enough = 2.0;

/// Seconds that this rank computes for an image; 0: it does not train.
double image_seconds(const DistSpec& spec) {
  if (!spec.mesh.topology.is_worker(spec.rank())) return 0.0;
  const TrainingSpec& training = spec.training;
  const Model model = training.model.build();
  if (training.replays())
    return layer_times(replay_source(training.computing.device), model, training.batch).sum() /
           static_cast<double>(training.batch);
  constexpr int warm_up = 2;
  constexpr std::size_t least_steps = 3;
  const std::int64_t images = spec.share_of(spec.rank(), 0).count;
  const auto device = training.computing.make();
  const auto network = training.computing.build(model, *device, images);
  network->initialise(training.seed);
  const std::int64_t begin = clock_ns();
  const RandomSteps steps = time_random_steps(*network, warm_up, [&](std::size_t counted) {
    return counted >= least_steps && seconds(clock_ns() - begin) >= enough;
  });
  return quartiles_of(steps.seconds).median / static_cast<double>(images);
}

net::MeshSpec mesh_spec(const DistSpec& spec) {
  net::MeshSpec mesh = spec.mesh;
  mesh.topology = {net::ServerMode::distributed, spec.mesh.topology.size, 0};
  mesh.identity.job += ", speeds";
  mesh.identity.model = spec.training.model.fingerprint(spec.training.model.build());
  mesh.identity.data = net::fingerprint("no images");
  mesh.identity.start = net::fingerprint("no weights");
  mesh.identity.settings = net::fingerprint(spec.settings());
  mesh.takes_back = false;
  for (const net::Address& address : mesh.addresses)
    if (address.host.empty())
      throw Error("dist: --share by speed needs the addresses of all ranks: give --nodefile",
                  Exit::usage);
  return mesh;
}

}  // namespace

std::vector<std::int64_t> shares_by_speed(const DistSpec& spec,
                                          const std::optional<KnownSpeed>& known) {
  net::Mesh mesh = net::Mesh::join(mesh_spec(spec));
  const double own =
      known && known->image_seconds > 0.0 ? known->image_seconds : image_seconds(spec);
  // Before the training, networks are made whose sizes differ.
  const std::vector<std::string> texts = net::share_texts(
      mesh, std::to_string(own * 1e9), spec.mesh.timeout + std::chrono::minutes(known ? 1 : 10));
  std::vector<double> seconds;
  for (const int worker : spec.mesh.topology.workers()) {
    const std::string& text = texts[static_cast<std::size_t>(worker)];
    seconds.push_back(std::strtod(text.c_str(), nullptr));
    if (!(seconds.back() > 0.0))
      throw Error("rank " + std::to_string(worker) + " tells of '" + text.substr(0, 40) +
                  "' nanoseconds an image");
  }
  DistSpec other = spec;
  other.parallel.shares =
      proportional_shares(seconds, spec.parallel.sharing == Sharing::by_speed_if_uneven);
  if (!known) return other.parallel.shares;
  try {
    for (const int worker : spec.mesh.topology.workers()) other.share_of(worker);
  } catch (const Error& error) {
    spec.mesh.warn(std::string(error.what()) + ": the shares stay as they were");
    return spec.parallel.shares;
  }
  return other.parallel.shares;
}

void tell_shares_cannot_be_found(const DistSpec& spec, const net::AbortReason& reason) {
  net::Mesh::tell_cannot_start(mesh_spec(spec), reason);
}

}  // namespace duplex::tools
