#include "layers/plan/backward_plan.h"

#include <algorithm>

namespace duplex {
namespace {

class Planner {
 public:
  Planner(const Model& model, const std::vector<TensorDesc>& y, const std::vector<int>& joins)
      : model_(model),
        y_(y),
        count_(static_cast<int>(y.size())),
        wanted_(depends_on_parameters(model)),
        contributions_(y.size()) {
    plan_.nodes.resize(y.size());
    for (std::size_t node = 0; node < joins.size(); ++node) plan_.nodes[node].joins = joins[node];
  }

  BackwardPlan run(bool training) {
    for (int node = 0; node < count_; ++node) place_activation(node, training);
    if (training) {
      for (int node = count_ - 1; node > 0; --node) plan_node(node);
    }
    return std::move(plan_);
  }

 private:
  struct Contribution {
    int block;
    bool masked;
  };

  int backward(int node) const { return 2 * count_ - node; }
  LayerTraits traits(int node) const {
    const auto& layer = model_.entry(node).layer;
    return layer ? layer->traits() : LayerTraits{};
  }
  BackwardPlan::NodePlan& at(int node) { return plan_.nodes[static_cast<std::size_t>(node)]; }
  const TensorDesc& desc(int node) const { return y_[static_cast<std::size_t>(node)]; }
  Lifetime& lifetime(int block) { return plan_.blocks[static_cast<std::size_t>(block)]; }
  int& uses(int block) { return uses_[static_cast<std::size_t>(block)]; }

  int new_block(std::size_t bytes, int moment) {
    plan_.blocks.push_back({bytes, moment, moment});
    uses_.push_back(0);
    return static_cast<int>(plan_.blocks.size()) - 1;
  }

  void keep(int block, int moment) {
    lifetime(block).last = std::max(lifetime(block).last, moment);
  }

  void place_activation(int node, bool training) {
    const bool joins = at(node).joins != BackwardPlan::none;
    if (!joins) at(node).y = new_block(desc(node).bytes, node);
    const int computed = joins ? at(node).joins : node;
    const bool reads_x = traits(node).backward_reads_x;
    for (Model::Node input : model_.entry(node).inputs) {
      if (at(input).y == BackwardPlan::none) continue;
      keep(at(input).y, training && reads_x ? backward(node) : computed);
    }
    if (training && traits(node).backward_reads_y) keep(at(node).y, backward(node));
    if (node == model_.output()) keep(at(node).y, 2 * count_);
  }

  void plan_node(int node) {
    BackwardPlan::NodePlan& plan = at(node);
    const bool begins =
        model_.entry(node).layer->loss_weight() != 0.0F || traits(node).takes_gradient;
    plan.runs = wanted_[static_cast<std::size_t>(node)] &&
                (begins || !contributions_[static_cast<std::size_t>(node)].empty());
    plan.dx.assign(model_.entry(node).inputs.size(), BackwardPlan::none);
    if (!plan.runs) return;
    if (!begins) join_contributions(node);
    hand_out_gradients(node);
  }

  void join_contributions(int node) {
    BackwardPlan::NodePlan& plan = at(node);
    bool masked = true;
    int free = BackwardPlan::none;  // The sum may overwrite a block that nothing else will read.
    for (const Contribution& part : contributions_[static_cast<std::size_t>(node)]) {
      plan.contributions.push_back(part.block);
      masked = masked && part.masked;
      if (uses(part.block) == 1) free = part.block;
      keep(part.block, backward(node));
    }
    plan.mask = traits(node).relu && !masked;
    plan.sum = plan.mask || plan.contributions.size() > 1;
    if (!plan.sum) {
      plan.dy = plan.contributions[0];
    } else {
      plan.dy = free != BackwardPlan::none ? free : new_block(desc(node).bytes, backward(node));
    }
    if (plan.mask) keep(plan.y, backward(node));
    for (int block : plan.contributions) --uses(block);
  }

  void hand_out_gradients(int node) {
    BackwardPlan::NodePlan& plan = at(node);
    const LayerTraits own = traits(node);
    const std::vector<Model::Node>& inputs = model_.entry(node).inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Model::Node input = inputs[i];
      if (!wanted_[static_cast<std::size_t>(input)]) {
        if (own.writes_every_dx) plan.dx[i] = new_block(desc(input).bytes, backward(node));
        continue;
      }
      const bool alike = plan.dy != BackwardPlan::none && same_storage(desc(node), desc(input));
      int block = BackwardPlan::none;
      if (alike && (own.gradient_passes || (own.gradient_in_place && uses(plan.dy) == 0))) {
        block = plan.dy;
      } else {
        block = new_block(desc(input).bytes, backward(node));
        plan.convert = plan.convert || own.gradient_passes;
      }
      ++uses(block);
      plan.dx[i] = block;
      contributions_[static_cast<std::size_t>(input)].push_back(
          {block, own.masks_slices && traits(input).relu});
    }
  }

  const Model& model_;
  const std::vector<TensorDesc>& y_;
  int count_;
  BackwardPlan plan_;
  std::vector<bool> wanted_;
  std::vector<std::vector<Contribution>> contributions_;
  std::vector<int> uses_;  ///< Contributions of a block that are not joined yet.
};

/// Returns whether a gradient that another rank gives is awaited on the way back from one node to
/// another. The next micro-batch may get in between there, and its gradients of parameters lie
/// where those of this one do.
bool awaits_between(const Model& model, std::size_t sum, Model::Node node) {
  for (std::size_t each = sum; --each > static_cast<std::size_t>(node);)
    if (model.nodes()[each].layer->traits().takes_gradient) return true;
  return false;
}

}  // namespace

std::vector<bool> depends_on_parameters(const Model& model) {
  std::vector<bool> depends;
  for (const Model::Entry& entry : model.nodes()) {
    bool here =
        !model.parameters(entry).empty() || (entry.layer && entry.layer->traits().returns_gradient);
    for (Model::Node input : entry.inputs) here = here || depends[static_cast<std::size_t>(input)];
    depends.push_back(here);
  }
  return depends;
}

std::vector<int> joined_sums(const Model& model,
                             const std::function<bool(Model::Node, Model::Node other)>& can_join) {
  const auto size = model.nodes().size();
  std::vector<int> readers(size, 0), joins(size, BackwardPlan::none);
  for (const Model::Entry& entry : model.nodes())
    for (const Model::Node input : entry.inputs) ++readers[static_cast<std::size_t>(input)];
  for (std::size_t sum = 1; sum < size; ++sum) {
    const Model::Entry& entry = model.nodes()[sum];
    if (!entry.layer->traits().gradient_passes || entry.inputs.size() != 2) continue;
    for (const std::size_t first : {0, 1}) {
      const Model::Node node = entry.inputs[first], other = entry.inputs[1 - first];
      if (readers[static_cast<std::size_t>(node)] > 1 ||
          model.entry(node).training_only != entry.training_only ||
          awaits_between(model, sum, node) || !can_join(node, other))
        continue;
      joins[static_cast<std::size_t>(node)] = static_cast<int>(sum);
      break;
    }
  }
  return joins;
}

BackwardPlan plan_backward(const Model& model, const std::vector<TensorDesc>& y, bool training,
                           const std::vector<int>& joins) {
  return Planner(model, y, joins).run(training);
}

}  // namespace duplex
