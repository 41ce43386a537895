// Accuracy: a network's outputs on the test part against its labels.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "datasets/loader.h"
#include "layers/network.h"
#include "tools/display/display.h"
#include "tools/run_directory/run_summary.h"

namespace duplex::tools {

struct Accuracy {
  std::uint64_t samples = 0;      ///< Images that were read, and so tested.
  std::uint64_t not_finite = 0;   ///< How many of them have an output that is not finite.
  double top1 = 0.0, top5 = 0.0;  ///< Fractions of `samples`.
  double loss = 0.0;              ///< Mean loss, of the kind that the network is trained with; NaN
                                  ///< if an output is not finite.
  std::vector<datasets::LeftOut> unreadable;  ///< Images that were not tested.

  std::string str() const;  ///< "top-1 89.12%, top-5 99.80% of 10,000 test images".
};

/// The part of it that summary.json has.
AccuracySummary summary_of(const Accuracy& accuracy);

/// Says how the logits of one sample fit its label.
struct Judgement {
  bool finite = true;    ///< Whether all logits are finite numbers.
  std::size_t rank = 0;  ///< Rank of the label's logit among all, 0 for the greatest; of equal ones
                         ///< the class with the lower number comes first. `classes` if not finite.
  double loss = 0.0;     ///< By LossKind (core/operations.h), in double precision.
};

/// `logits` has `classes` values.
Judgement judge(LossKind kind, const float* logits, std::size_t classes, std::int32_t label);

/// Runs the network over the whole test part, in batches of its size; its observer is told nothing
/// of that. `reading` says how images become pixels, by how many threads, and whether one that
/// cannot be read is left out or throws Error. Calls `after_batch` after every batch, unless it is
/// empty. `display` shows how far it is.
Accuracy evaluate(Network& network, const datasets::Subset& test, datasets::LoaderOptions reading,
                  const std::function<void()>& after_batch = {},
                  const Display& display = Display::here());

}  // namespace duplex::tools
