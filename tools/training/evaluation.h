// Accuracy: a network's outputs on images against their labels.
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

/// Returns what the network says of each class, from the logits of one sample, in double precision:
/// the probabilities, which add up to 1, after a softmax; by squared error, the outputs themselves,
/// which training brings towards them.
std::vector<double> probabilities(LossKind kind, const float* logits, std::size_t classes);

/// Returns the loss that the model ends in. Throws Error if it ends in none.
LossKind loss_of(const Model& model);

/// A pass over images that the network is not trained with.
struct PassOptions {
  /// It says how images become pixels, by how many threads, and whether one that cannot be read is
  /// left out or throws Error. The pass decides which images, and in which batches.
  datasets::LoaderOptions reading;
  std::function<void()> after_batch;  ///< Is called after every batch, unless it is empty.
  std::string doing = "testing";      ///< For the line that shows how far it is.
  Display display = Display::here();  ///< Shows that line.
};

/// One image, and what the network made of it.
struct Output {
  std::size_t position = 0;  ///< In the subset.
  std::int32_t label = 0;
  const float* logits = nullptr;  ///< [classes], valid until the next image's.
};

/// Runs the network over all images of a subset, in their order and in batches of its size, and
/// hands each to `take`; its observer is told nothing of that. Returns the images that could not be
/// read, which `take` does not get.
std::vector<datasets::LeftOut> run_over(Network& network, const datasets::Subset& images,
                                        const PassOptions& options,
                                        const std::function<void(const Output&)>& take);

/// Tests the network on a subset. `each` is called with every image that could be read, unless it
/// is empty. Throws Error where none could.
Accuracy evaluate(Network& network, const datasets::Subset& test, const PassOptions& options,
                  const std::function<void(const Output&, const Judgement&)>& each = {});

}  // namespace duplex::tools
