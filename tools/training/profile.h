// A profile has the seconds of every layer, forward and backward. It is measured while training,
// alone or with others, and told as a table and as profile.json.
#pragma once
#include <string>
#include <vector>

#include "layers/network.h"
#include "tools/run_directory/profile_file.h"
#include "tools/text/sampled_values.h"

namespace duplex::tools {

class Profile {
 public:
  /// Observes the network from now on, beside whoever did so before. `warm_up`: steps that do not
  /// count. It must outlive all steps of the network, and the network must outlive it.
  Profile(Network& network, std::uint64_t warm_up);
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// A table of layer, type, output, and median seconds and GFLOP/s forward and backward. A
  /// multiply-add is two operations; backward counts twice the forward's, or once for a layer whose
  /// input wants no gradient.
  std::string table() const;
  /// Seconds of all layers, forward and backward: the sum of their medians.
  double sum() const;
  /// The table for the user, with the sum of all medians before it.
  std::string report() const;
  /// The content of profile.json.
  ProfileFile file() const;

 private:
  /// Seconds of a layer's steps in one direction.
  struct Times {
    SampledValues counted;    ///< Without the warm-up.
    std::uint64_t steps = 0;  ///< With it.
    double median() const { return counted.quartiles().median; }
  };
  struct Layer {
    Times forward, backward;
  };
  struct Cost {
    double forward_flop, backward_flop;
  };

  Cost cost(std::size_t node) const;

  Network& network_;
  std::uint64_t warm_up_;
  std::vector<Layer> layers_;  ///< By node.
};

}  // namespace duplex::tools
