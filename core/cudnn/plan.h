// Which engine of cuDNN computes a graph: the library proposes some, those that may be used are
// timed, and the fastest becomes a plan.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "core/cudnn/graph.h"

namespace duplex::cudnn {

/// Memory of the tensors of a ConvGraph; bias only where it has one.
struct ConvMemory {
  void *x = nullptr, *weights = nullptr, *y = nullptr, *bias = nullptr;

  bool operator==(const ConvMemory& other) const {
    return x == other.x && weights == other.weights && y == other.y && bias == other.bias;
  }
};

/// A graph that an engine has been chosen for.
class Plan {
 public:
  /// `workspace`: what it needs, in bytes.
  Plan(std::shared_ptr<const Descriptors> graph, Descriptor plan, std::size_t workspace)
      : graph_(std::move(graph)), plan_(std::move(plan)), workspace_(workspace) {}

  std::size_t workspace() const { return workspace_; }

 private:
  friend class Runner;
  std::shared_ptr<const Descriptors> graph_;  ///< What the plan was made from.
  Descriptor plan_;
  std::size_t workspace_ = 0;
};

/// One user's way to run a plan: what cuDNN wants to know of the memory is told again only where it
/// is other memory than the last time.
class Runner {
 public:
  Runner() = default;
  explicit Runner(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  explicit operator bool() const { return plan_ != nullptr; }
  /// `workspace`: the plan's workspace() bytes.
  void run(const Context& context, const ConvMemory& memory, void* workspace, const char* what);

 private:
  std::shared_ptr<const Plan> plan_;
  ConvMemory memory_;
  void* workspace_ = nullptr;
  Descriptor pack_;  ///< Of memory_ and workspace_.
};

/// The plans of a device, each chosen once.
class Plans {
 public:
  explicit Plans(ContextPtr context) : context_(std::move(context)) {}

  /// Of the engines that compute in the context's precision, give the same bits every time and need
  /// no more than some workspace, which the context then has, the fastest on this GPU. Null: there
  /// is none.
  std::shared_ptr<const Plan> fastest(const ConvGraph& graph);
  /// A line on standard error, the first time for each text.
  void say_once(const std::string& text);
  const ContextPtr& context() const { return context_; }

 private:
  ContextPtr context_;
  std::map<std::string, std::shared_ptr<const Plan>> plans_;  ///< By ConvGraph::key().
  std::set<std::string> said_;
};

}  // namespace duplex::cudnn
