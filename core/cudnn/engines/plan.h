// Chooses the engine of cuDNN that computes a graph: the library proposes some, those that may be
// used are timed, and the fastest that computes the right thing becomes a plan.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cudnn/engines/choices.h"
#include "core/cudnn/engines/graph.h"

namespace duplex::cudnn {

/// A graph with the engine that has been chosen for it.
class Plan {
 public:
  /// `workspace` is what the plan needs, in bytes; `place` is that of its engine.
  Plan(std::shared_ptr<const Descriptors> graph, Descriptor plan, std::size_t workspace,
       const Choice& place)
      : graph_(std::move(graph)), plan_(std::move(plan)), workspace_(workspace), place_(place) {}

  std::size_t workspace() const { return workspace_; }
  std::int64_t engine() const { return place_.engine; }
  /// Returns how long it took when it was tried.
  float milliseconds() const { return place_.milliseconds; }

 private:
  friend class Runner;
  friend class Plans;
  std::shared_ptr<const Descriptors> graph_;  ///< The plan was made from these.
  Descriptor plan_;
  std::size_t workspace_ = 0;
  Choice place_;
};

/// Runs a plan for one user. It tells cuDNN about the memory (in a variant pack) only where that is
/// not the memory of the last run.
class Runner {
 public:
  Runner() = default;
  explicit Runner(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

  explicit operator bool() const { return plan_ != nullptr; }
  /// `workspace` has the plan's workspace() bytes.
  void run(const Context& context, const ConvMemory& memory, void* workspace, const char* what);

 private:
  std::shared_ptr<const Plan> plan_;
  ConvMemory memory_;
  void* workspace_ = nullptr;
  Descriptor pack_;  ///< The variant pack of memory_ and workspace_.
};

/// The plans of a device, each of which is chosen once.
class Plans {
 public:
  explicit Plans(ContextPtr context);

  /// Returns the plan of the engine that is fastest on this GPU, among those that compute in the
  /// context's precision, give the same bits every time, stay within a limit of workspace, and turn
  /// out right when they are tried. Whoever runs it reserves its workspace. Returns null where
  /// there is no such engine.
  std::shared_ptr<const Plan> fastest(const ConvGraph& graph);
  /// Prints a line on standard error, the first time for each text; `more` is its end.
  void say_once(const std::string& text, const std::string& more = "");
  const ContextPtr& context() const { return context_; }

 private:
  std::shared_ptr<const Plan> fastest_of(const std::vector<std::shared_ptr<Plan>>& usable,
                                         const ConvGraph& graph);

  std::shared_ptr<const Plan> remembered(const ConvGraph& graph, const Target& target,
                                         const std::shared_ptr<Descriptors>& parts);

  ContextPtr context_;
  const std::string folder_;  ///< Of what is remembered; empty: nothing is.
  Choices choices_;
  std::map<std::string, std::shared_ptr<const Plan>> plans_;  ///< By ConvGraph::key().
  std::set<std::string> said_;
};

}  // namespace duplex::cudnn
