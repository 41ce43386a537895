// Chooses the engine of cuDNN that computes a graph: the library proposes some, those that may be
// used are timed, and the fastest that computes the right thing becomes a plan.
#pragma once
#include <cstddef>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/cudnn/engines/candidates.h"
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
  /// `threads` may have engines compiled at once; 0 takes one for each core that may be used.
  Plans(ContextPtr context, int threads);

  /// Has cuDNN make the plans of these graphs side by side, for fastest() to choose from. What it
  /// chooses, says and remembers is the same without. An error is thrown by the fastest() of its
  /// graph. Plans that nobody has asked for by the next call are dropped.
  void prepare(const std::vector<ConvGraph>& graphs);

  /// Returns the plan of the engine that is fastest on this GPU, among those that compute in the
  /// context's precision, give the same bits every time, stay within a limit of workspace, and turn
  /// out right when they are tried. Whoever runs it reserves its workspace. Returns null where
  /// there is no such engine.
  std::shared_ptr<const Plan> fastest(const ConvGraph& graph);
  /// Prints a line on standard error, the first time for each text; `more` is its end.
  void say_once(const std::string& text, const std::string& more = "");
  const ContextPtr& context() const { return context_; }

 private:
  /// Returns one handle for each thread that is worth it where so many graphs are prepared.
  std::vector<Target> targets(std::size_t at_most);
  /// Returns what has been prepared for a graph, or makes it now.
  Candidates candidates(const ConvGraph& graph, const std::string& key);
  Candidates made_anew(const ConvGraph& graph, const std::optional<Choice>& before) const;
  std::shared_ptr<const Plan> fastest_of(const std::vector<std::shared_ptr<Plan>>& usable,
                                         const ConvGraph& graph);
  bool is_right(const std::shared_ptr<const Plan>& plan, const ConvGraph& graph) const;

  ContextPtr context_;
  const std::string folder_;  ///< Of what is remembered; empty: nothing is.
  Choices choices_;
  const EngineLimits limits_;
  const std::size_t threads_;
  /// Handles of the threads beside the calling one: two threads may not use one at once. A plan
  /// refers to the handle that it was made with, so they live as long as the plans.
  std::vector<Handle<cudnnHandle_t>> handles_;
  std::map<std::string, std::future<Candidates>> prepared_;   ///< By ConvGraph::key().
  std::map<std::string, std::shared_ptr<const Plan>> plans_;  ///< Likewise.
  std::set<std::string> said_;
};

}  // namespace duplex::cudnn
