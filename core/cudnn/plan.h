// Which engine of cuDNN computes a graph: the library proposes some, those that may be used are
// timed, and the fastest becomes a plan.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/cudnn/graph.h"

namespace duplex::cudnn {

/// Memory of the tensors of a ConvGraph; bias only where it has one.
struct ConvMemory {
  void *x = nullptr, *weights = nullptr, *y = nullptr, *bias = nullptr;
};

/// A graph that an engine has been chosen for.
class Plan {
 public:
  Plan(std::shared_ptr<const Descriptors> graph, Descriptor plan);

  std::size_t workspace() const { return workspace_; }
  /// The context has reserved workspace() bytes.
  void run(const Context& context, const ConvMemory& memory, const char* what) const;

 private:
  std::shared_ptr<const Descriptors> graph_;  ///< What the plan was made from.
  Descriptor plan_;
  std::size_t workspace_ = 0;
};

/// The plans of a device, each chosen once.
class Plans {
 public:
  explicit Plans(ContextPtr context) : context_(std::move(context)) {}

  /// Of the engines that compute in the context's precision, give the same bits every time and need
  /// no more than some workspace, which the context then has, the fastest on this GPU. Null: there
  /// is none.
  std::shared_ptr<const Plan> fastest(const ConvGraph& graph);
  const ContextPtr& context() const { return context_; }

 private:
  ContextPtr context_;
  std::map<std::string, std::shared_ptr<const Plan>> plans_;  ///< By ConvGraph::key().
};

}  // namespace duplex::cudnn
