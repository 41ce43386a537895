// Runs a training step on a plan, without numbers: it follows what each block of memory holds,
// write by write, so that a read of anything but what ought to be there shows, whatever the graph.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "layers/model.h"
#include "layers/plan/backward_plan.h"
#include "layers/plan/memory_plan.h"

namespace duplex::test {

class PlanSimulation {
 public:
  PlanSimulation(const Model& model, const BackwardPlan& plan)
      : model_(model),
        plan_(plan),
        memory_(plan_memory(plan.blocks)),
        contents_(plan.blocks.size()) {
    find_consumers();
  }

  /// Runs forward and, if asked, backward. Returns "" if all went well, else the first fault.
  std::string run(bool training) {
    for (std::size_t node = 0; node < size() && error_.empty(); ++node) forward(node);
    if (training) {
      for (std::size_t node = size() - 1; node > 0 && error_.empty(); --node) backward(node);
    } else {
      for (const BackwardPlan::NodePlan& node : plan_.nodes) {
        if (node.runs) fail("a plan without training goes backward");
      }
    }
    check(at(size() - 1).y, activation(size() - 1), "the network's output after the step");
    return error_;
  }

  std::size_t arena_bytes() const { return memory_.bytes; }

  /// Returns the bytes that live at the fullest moment; no plan can do with less.
  std::size_t peak_bytes() const {
    std::size_t most = 0;
    for (const Lifetime& moment : plan_.blocks) {
      std::size_t sum = 0;
      for (const Lifetime& block : plan_.blocks) {
        if (block.first <= moment.first && moment.first <= block.last) sum += block.bytes;
      }
      most = std::max(most, sum);
    }
    return most;
  }

 private:
  /// Names what a block holds: (node, -1) is the node's activation, (node, i) the gradient that it
  /// gives its input i, and (node, -2) the sum of what its consumers gave.
  using Tag = std::pair<int, int>;

  static Tag activation(std::size_t node) { return {static_cast<int>(node), -1}; }
  static Tag joined(std::size_t node) { return {static_cast<int>(node), -2}; }
  std::size_t size() const { return plan_.nodes.size(); }
  const BackwardPlan::NodePlan& at(std::size_t node) const { return plan_.nodes[node]; }
  const Model::Entry& entry(std::size_t node) const { return model_.nodes()[node]; }
  LayerTraits traits(std::size_t node) const {
    return entry(node).layer ? entry(node).layer->traits() : LayerTraits{};
  }

  void fail(const std::string& what) {
    if (error_.empty()) error_ = what;
  }

  /// Finds, independently of the plan, which nodes must go backward (those that lead from something
  /// with parameters to a loss) and which nodes give them gradients.
  void find_consumers() {
    std::vector<bool> learns(size()), reaches_loss(size());
    consumers_.resize(size());
    must_run_.resize(size());
    for (std::size_t node = 0; node < size(); ++node) {
      learns[node] = !model_.parameters(entry(node)).empty();
      for (int input : entry(node).inputs) {
        if (learns[static_cast<std::size_t>(input)]) learns[node] = true;
      }
    }
    for (std::size_t node = size(); node-- > 1;) {
      if (entry(node).layer->loss_weight() != 0.0F) reaches_loss[node] = true;
      must_run_[node] = learns[node] && reaches_loss[node];
      for (std::size_t i = 0; i < entry(node).inputs.size(); ++i) {
        const auto input = static_cast<std::size_t>(entry(node).inputs[i]);
        if (reaches_loss[node]) reaches_loss[input] = true;
        if (must_run_[node] && learns[input]) {
          consumers_[input].insert({static_cast<int>(node), static_cast<int>(i)});
        }
      }
    }
  }

  bool overlap(std::size_t a, std::size_t b) const {
    const std::size_t end_a = memory_.offsets[a] + plan_.blocks[a].bytes;
    const std::size_t end_b = memory_.offsets[b] + plan_.blocks[b].bytes;
    return memory_.offsets[a] < end_b && memory_.offsets[b] < end_a;
  }

  void write(int block, const Tag& tag) {
    if (block < 0) return fail("a block is missing for " + name(tag));
    for (std::size_t other = 0; other < contents_.size(); ++other) {
      if (overlap(static_cast<std::size_t>(block), other)) contents_[other].clear();
    }
    contents_[static_cast<std::size_t>(block)] = {tag};
  }

  void check(int block, const Tag& tag, const std::string& reader) {
    if (block < 0 || contents_[static_cast<std::size_t>(block)].count(tag) == 0) {
      fail(reader + " finds " + name(tag) + " overwritten");
    }
  }

  std::string name(const Tag& tag) const {
    const std::string& layer = entry(static_cast<std::size_t>(tag.first)).name;
    if (tag.second == -1) return "y of " + layer;
    if (tag.second == -2) return "dy of " + layer;
    return "dx " + std::to_string(tag.second) + " of " + layer;
  }

  void check_inputs(std::size_t node, const std::string& reader) {
    for (int input : entry(node).inputs) {
      const auto i = static_cast<std::size_t>(input);
      check(at(i).y, activation(i), reader);
    }
  }

  void forward(std::size_t node) {
    const std::string here = "forward of " + entry(node).name;
    if (at(node).joins != BackwardPlan::none) {
      if (at(node).y != BackwardPlan::none) fail(here + " has memory for what joins a sum");
      return;
    }
    write(at(node).y, activation(node));
    for (int input : entry(node).inputs) {
      const auto i = static_cast<std::size_t>(input);
      if (at(i).joins == static_cast<int>(node)) {
        check_inputs(i, here);
      } else {
        check(at(i).y, activation(i), here);
      }
    }
  }

  void backward(std::size_t node) {
    const BackwardPlan::NodePlan& plan = at(node);
    const std::string here = "backward of " + entry(node).name;
    if (plan.runs != must_run_[node]) fail(here + " ought to run exactly where it does not");
    if (!plan.runs) return;
    const bool is_loss = entry(node).layer->loss_weight() != 0.0F;
    if (!is_loss) join(node, here);

    const LayerTraits own = traits(node);
    bool converts = false;
    for (std::size_t i = 0; i < plan.dx.size(); ++i) {
      const Tag tag{static_cast<int>(node), static_cast<int>(i)};
      const bool wanted =
          consumers_[static_cast<std::size_t>(entry(node).inputs[i])].count(tag) != 0;
      if (!wanted && !own.writes_every_dx) {
        if (plan.dx[i] != BackwardPlan::none) fail(here + " makes a gradient that nobody wants");
        continue;
      }
      if (is_loss || plan.dx[i] != plan.dy) {
        write(plan.dx[i], tag);
        converts = converts || own.gradient_passes;
      } else if (own.gradient_passes) {
        contents_[static_cast<std::size_t>(plan.dy)].insert(tag);
      } else if (own.gradient_in_place) {
        write(plan.dx[i], tag);
        in_place_ = true;
      } else {
        fail(here + " writes over the gradient that it reads");
      }
    }
    if (converts != plan.convert) fail(here + ": conversion wanted and planned differ");
    if (own.backward_reads_x) check_inputs(node, here);
    if (own.backward_reads_y) check(plan.y, activation(node), here);
    if (!is_loss && !in_place_) check(plan.dy, joined(node), here);
    in_place_ = false;
  }

  /// Joins the dy of a node from its consumers' contributions.
  void join(std::size_t node, const std::string& here) {
    const BackwardPlan::NodePlan& plan = at(node);
    if (plan.contributions.size() != consumers_[node].size()) {
      return fail(here + " has " + std::to_string(plan.contributions.size()) +
                  " contributions, not " + std::to_string(consumers_[node].size()));
    }
    // Each consumer's contribution must be in some block of the list, each once.
    std::multiset<int> blocks(plan.contributions.begin(), plan.contributions.end());
    bool masked = true;
    for (const Tag& consumer : consumers_[node]) {
      const auto from = static_cast<std::size_t>(consumer.first);
      const int block = at(from).dx[static_cast<std::size_t>(consumer.second)];
      const auto found = blocks.find(block);
      if (found == blocks.end()) return fail(here + " leaves out " + name(consumer));
      blocks.erase(found);
      check(block, consumer, here);
      masked = masked && traits(from).masks_slices;
    }
    const bool must_mask = traits(node).relu && !masked;
    if (plan.mask != must_mask) fail(here + ": ReLU's mask wanted and planned differ");
    if (!plan.sum) {
      if (plan.mask || plan.contributions.size() != 1) fail(here + " leaves out the sum");
      if (plan.dy != plan.contributions[0]) fail(here + " reads no contribution");
      contents_[static_cast<std::size_t>(plan.dy)].insert(joined(node));
      return;
    }
    write(plan.dy, joined(node));
    for (const Tag& consumer : consumers_[node]) {  // They are read while dy is written.
      const int block = at(static_cast<std::size_t>(consumer.first))
                            .dx[static_cast<std::size_t>(consumer.second)];
      if (block != plan.dy) check(block, consumer, here);
    }
    if (plan.mask) check(plan.y, activation(node), here);
  }

  const Model& model_;
  const BackwardPlan& plan_;
  MemoryPlan memory_;
  std::vector<std::set<Tag>> contents_;  ///< Contents of each block.
  std::vector<std::set<Tag>> consumers_;
  std::vector<bool> must_run_;
  bool in_place_ = false;
  std::string error_;
};

}  // namespace duplex::test
