#include "core/cudnn/engines/engines.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace duplex::cudnn {
namespace {

/// cuDNN compiles some engines when they are asked for, which takes up to a second each. At most so
/// many of these are taken.
constexpr std::size_t compiled_at_most = 2;
/// cuDNN's lists of proposals: what it recommends, then the rest.
constexpr std::array<cudnnBackendHeurMode_t, 2> modes{CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};

/// Returns the engine configurations that cuDNN proposes, the best first; none where it knows none.
Descriptors proposals(const Descriptor& graph, const Target& target, cudnnBackendHeurMode_t mode) {
  Descriptor heuristic = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
#if CUDNN_VERSION >= 90800
  if (target.described) set(heuristic, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.described);
#else
  static_cast<void>(target);
#endif
  if (cudnnBackendFinalize(heuristic.get()) != CUDNN_STATUS_SUCCESS) return {};
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count,
                               nullptr) != CUDNN_STATUS_SUCCESS)
    return {};
  Descriptors configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < count; ++i) {
    configurations.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configurations.back().get());
  }
  if (cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                               raw.data()) != CUDNN_STATUS_SUCCESS)
    return {};
  configurations.resize(static_cast<std::size_t>(count));
  return configurations;
}

/// Returns the engine of a configuration, or null where cuDNN does not say.
Descriptor engine_of(const Descriptor& configuration) {
  Descriptor engine = make(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                               CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                               &raw) != CUDNN_STATUS_SUCCESS)
    engine.reset();
  return engine;
}

std::int64_t index_of(const Descriptor& engine) {
  std::int64_t index = Engine::unknown, count = 0;
  return cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
                                  &count, &index) == CUDNN_STATUS_SUCCESS
             ? index
             : Engine::unknown;
}

/// Returns cuDNN's notes on an engine, of which there are at most `kinds` kinds. Returns nullopt
/// where cuDNN does not say.
template <class Note>
std::optional<std::vector<Note>> notes_of(const Descriptor& engine,
                                          cudnnBackendAttributeName_t name,
                                          cudnnBackendAttributeType_t type, std::int64_t kinds) {
  std::vector<Note> notes(static_cast<std::size_t>(kinds));
  std::int64_t count = 0;
  if (cudnnBackendGetAttribute(engine.get(), name, type, kinds, &count, notes.data()) !=
      CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  notes.resize(static_cast<std::size_t>(std::min(count, kinds)));
  return notes;
}

std::optional<std::vector<cudnnBackendNumericalNote_t>> notes_on(const Descriptor& engine) {
  return notes_of<cudnnBackendNumericalNote_t>(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                               CUDNN_TYPE_NUMERICAL_NOTE,
                                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
}

/// Returns whether an engine may be used: it gives the same bits every time, rounds no more than a
/// sum does, and rounds its inputs only as the precision says. TF32 has the range of float32; an
/// engine that converts its inputs down to fp16 keeps as many bits of a number, but loses small
/// ones, such as gradients.
bool is_allowed(const Descriptor& engine, Precision precision) {
  const auto notes = notes_on(engine);
  if (!notes) return false;
  const bool strict = precision == Precision::float32;
  return std::none_of(notes->begin(), notes->end(), [&](cudnnBackendNumericalNote_t note) {
    return (strict && note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ||
           note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
#if CUDNN_VERSION >= 8300
           || note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13
#endif
        ;
  });
}

/// Returns whether cuDNN compiles the engine when it is asked for.
bool is_compiled_here(const Descriptor& engine) {
#if CUDNN_VERSION >= 8300
  const auto notes = notes_of<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                                          CUDNN_TYPE_BEHAVIOR_NOTE,
                                                          CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  return notes && std::find(notes->begin(), notes->end(),
                            CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION) != notes->end();
#else
  static_cast<void>(engine);
  return false;
#endif
}

/// Returns an execution plan, or null where the engine cannot compute this after all.
Descriptor plan_of(const Descriptor& configuration, const Target& target) {
  Descriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  if (target.handle != nullptr)
    set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
#if CUDNN_VERSION >= 90800
  if (target.described) set(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.described);
#endif
  set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) plan.reset();
  return plan;
}

/// Returns the plan's workspace in bytes, or nullopt where cuDNN does not say.
std::optional<std::size_t> workspace_of(const Descriptor& plan) {
  std::int64_t bytes = 0, count = 0;
  if (cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                               CUDNN_TYPE_INT64, 1, &count, &bytes) != CUDNN_STATUS_SUCCESS)
    return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

/// Has cuDNN make a plan of a configuration, which is moved from then. Returns nullopt where it
/// cannot, or needs more workspace.
std::optional<Engine> made_of(Descriptor& configuration, const Target& target,
                              std::size_t workspace_limit, const Choice& place) {
  Descriptor plan = plan_of(configuration, target);
  const auto workspace = plan ? workspace_of(plan) : std::nullopt;
  if (!workspace || *workspace > workspace_limit) return std::nullopt;
  return Engine{std::move(configuration), std::move(plan), *workspace, place.engine, place};
}

}  // namespace

std::optional<std::vector<cudnnBackendNumericalNote_t>> numerical_notes(
    const Descriptor& configuration) {
  const Descriptor engine = engine_of(configuration);
  return engine ? notes_on(engine) : std::nullopt;
}

std::vector<Engine> engines_of(const Descriptor& graph, const Target& target, Precision precision,
                               std::size_t workspace_limit, std::size_t at_most) {
  std::vector<Engine> usable;
  std::size_t compiled = 0;
  for (std::size_t mode = 0; mode < modes.size(); ++mode) {
    Choice place{static_cast<int>(mode), -1, Engine::unknown, 0.0F};
    for (Descriptor& configuration : proposals(graph, target, modes[mode])) {
      ++place.position;
      if (usable.size() == at_most) return usable;
      const Descriptor engine = engine_of(configuration);
      if (!engine || !is_allowed(engine, precision)) continue;
      if (is_compiled_here(engine) && ++compiled > compiled_at_most) continue;
      place.engine = index_of(engine);
      if (auto made = made_of(configuration, target, workspace_limit, place))
        usable.push_back(std::move(*made));
    }
  }
  return usable;
}

std::optional<Engine> engine_at(const Choice& place, const Descriptor& graph, const Target& target,
                                Precision precision, std::size_t workspace_limit) {
  Descriptors all = proposals(graph, target, modes.at(static_cast<std::size_t>(place.mode)));
  if (static_cast<std::size_t>(place.position) >= all.size()) return std::nullopt;
  Descriptor& configuration = all[static_cast<std::size_t>(place.position)];
  const Descriptor engine = engine_of(configuration);
  if (!engine || index_of(engine) != place.engine || !is_allowed(engine, precision))
    return std::nullopt;
  return made_of(configuration, target, workspace_limit, place);
}

}  // namespace duplex::cudnn
