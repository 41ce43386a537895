// Plans the memory of a training step: which block holds each activation and each gradient, and for
// every layer how the gradient of its output comes about.
//
// Forward of node i is moment i, and its backward is moment 2 * nodes - i. A gradient that a layer
// hands to one of its inputs is a contribution; a node's dy is the sum of its contributions, masked
// by its ReLU. If there is one contribution and nothing to mask, dy is that contribution itself.
#pragma once
#include <functional>
#include <vector>

#include "layers/layer.h"
#include "layers/model.h"
#include "layers/plan/memory_plan.h"

namespace duplex {

struct BackwardPlan {
  static constexpr int none = -1;

  struct NodePlan {
    int y = none;                    ///< Block of the activation; none where it joins a sum.
    int joins = none;                ///< The addition that computes this node with itself.
    bool runs = false;               ///< Whether backward runs for this node.
    std::vector<int> contributions;  ///< Blocks to sum; empty where backward begins.
    int dy = none;         ///< Block of the sum; one of the contributions where it can be.
    bool sum = false;      ///< A GradientSum is needed.
    bool mask = false;     ///< The GradientSum masks by y.
    std::vector<int> dx;   ///< A block for each input; none where backward needs none.
    bool convert = false;  ///< dx differ from dy in layout only (addition of unlike layouts).
  };

  std::vector<NodePlan> nodes;
  std::vector<Lifetime> blocks;
};

/// Returns for each node whether it, or one that it depends on, has parameters or returns its
/// gradient to another rank, so that a gradient by its output is wanted.
std::vector<bool> depends_on_parameters(const Model& model);

/// Returns for each node the addition that can compute it with itself (BoundLayer::joins_sum), or
/// BackwardPlan::none. The addition is the only one to read it, and no gradient of another rank is
/// awaited between the two. `can_join` says whether a node's
/// layer can, beside which other node.
std::vector<int> joined_sums(const Model& model,
                             const std::function<bool(Model::Node, Model::Node other)>& can_join);

/// `y` holds the description of every node's output, as bound. With `training` off, the plan holds
/// activations only. `joins` is empty, or has what joined_sums() returns: such nodes have no y.
BackwardPlan plan_backward(const Model& model, const std::vector<TensorDesc>& y, bool training,
                           const std::vector<int>& joins = {});

}  // namespace duplex
