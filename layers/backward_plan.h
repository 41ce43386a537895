// The plan of a training step's memory: which block holds each activation and each gradient, and
// for every layer how the gradient of its output comes about.
//
// Moments: forward of node i is moment i, its backward is moment 2 * nodes - i. A gradient that a
// layer hands to one of its inputs is a contribution; a node's dy is the sum of its contributions,
// masked by its ReLU. Where there is one contribution and nothing to mask, dy is that contribution
// itself.
#pragma once
#include <vector>

#include "layers/layer.h"
#include "layers/memory_plan.h"
#include "layers/model.h"

namespace duplex {

struct BackwardPlan {
  static constexpr int none = -1;

  struct NodePlan {
    int y = none;                    ///< Block of the activation.
    bool runs = false;               ///< Whether backward runs here at all.
    std::vector<int> contributions;  ///< Blocks to sum; empty for losses.
    int dy = none;         ///< Block of the sum; one of the contributions where it can be.
    bool sum = false;      ///< A GradientSum is needed.
    bool mask = false;     ///< ... and masks by y.
    std::vector<int> dx;   ///< A block for each input; none where backward needs none.
    bool convert = false;  ///< dx differ from dy in layout only (addition of unlike layouts).
  };

  std::vector<NodePlan> nodes;
  std::vector<Lifetime> blocks;
};

/// Whether a node, or one that it depends on, has parameters: whether a gradient by its output is
/// wanted.
std::vector<bool> depends_on_parameters(const Model& model);

/// `y`: the description of every node's output, as bound. `training` off: activations only.
BackwardPlan plan_backward(const Model& model, const std::vector<TensorDesc>& y, bool training);

}  // namespace duplex
