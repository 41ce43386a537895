// Seconds a layer, as a profile has measured them or as one t_grad shared out. Replays wait so
// long, and simulations reckon with it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "layers/model.h"
#include "tools/run_directory/profile_file.h"

namespace duplex::tools {

/// Seconds of a batch, by the layer's number in Model::nodes.
struct LayerTimes {
  std::vector<double> forward, backward;
  std::optional<std::int64_t> batch;  ///< Images, where that is known.

  double sum() const;  ///< The sum is t_grad.
  void scale(double factor);
};

/// Reads profile.json of local or dist --profile, for batches of `batch` images or, without, of as
/// many as it is of. Throws Error if it is damaged, of another network, naming the first layer that
/// does not fit, or of another batch; one that does not say its batch is taken for any.
LayerTimes read_profile(const std::string& path, const Model& model,
                        std::optional<std::int64_t> batch);

/// The same of a profile that was read from `path`.
LayerTimes times_of(const ProfileFile& profile, const std::string& path, const Model& model,
                    std::optional<std::int64_t> batch);

/// Shares one t_grad out by the layers' multiply-adds: a third forward, two thirds backward.
LayerTimes share_out(double t_grad, const Model& model);

/// replay_source() returns PROFILE of "replay:PROFILE", and "" if `device` is something else.
/// PROFILE is a file, or t_grad in seconds; layer_times() takes either, for batches of `batch`
/// images.
std::string replay_source(const std::string& device);
LayerTimes layer_times(const std::string& source, const Model& model, std::int64_t batch);

}  // namespace duplex::tools
