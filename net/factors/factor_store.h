// Collects the factors of all workers, and updates this rank's own copies of the layers' weights by
// them. It knows of no connections.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/exchange.h"
#include "core/factors/outer_products.h"
#include "core/optimiser.h"
#include "core/tensor.h"
#include "net/factors/factor_map.h"
#include "net/store/store.h"

namespace duplex::net {

struct FactorStoreSpec {
  int own = 0;  ///< The worker on this rank.
  MeanSpec mean;
  /// Where the mean is a sum: those whose factors a step has side by side, of which it is the mean.
  std::uint64_t micro_batches = 1;
  OptimiserSpec optimiser;
  LearningRate rate;
  std::uint64_t first_step = 0;
  int threads = 1;  ///< That an update is shared out among.
  /// Chunks of the layers' parameters that are kept as they were before the last update, too.
  std::vector<Chunk> kept;
  /// Operations a second at which a replay waits for the products instead of computing them; 0:
  /// they are computed.
  double replayed_flops = 0.0;
  /// Called when the weights and the bias of a layer are those for `step`, by the thread that
  /// updates; it did so between these times of clock_ns().
  std::function<void(std::size_t layer, std::uint64_t step, std::int64_t from, std::int64_t to)>
      updated;
  /// Called with what an update throws; no further update is made.
  std::function<void(std::exception_ptr)> failed;
};

/// The gradient of step s is the mean (3.12) of the workers' gradients, whose products are added up
/// in rank order, sample by sample: every rank computes the same bits (OuterProducts). Layers that
/// are complete at the same time are updated in forward order, since the next step needs them so.
///
/// Factors of step s + 1 may come while those of step s are still missing or being multiplied: the
/// sender has this rank's factors of step s by then, but not those of step s + 1. So there is room
/// for two steps.
class FactorStore {
 public:
  /// `spans` has every parameter; those of the map's layers are read and written. Factors of this
  /// rank's worker lie in the spans' `factors`. `map` and `spans` must outlive the store.
  FactorStore(const FactorMap& map, FactorStoreSpec spec, const std::vector<Span>& spans);
  ~FactorStore();
  FactorStore(const FactorStore&) = delete;
  FactorStore& operator=(const FactorStore&) = delete;

  /// Starts the thread that updates.
  void start();
  /// Returns where a piece of another worker's factors goes; then call commit(). Null after stop().
  /// Throws ProtocolError for a piece that is not due.
  float* reserve(std::size_t layer, int worker, std::uint32_t piece, std::uint64_t step);
  void commit(std::size_t layer, int worker, std::uint32_t piece, std::uint64_t step);
  /// This worker's own factors of a layer are in the span, where they must stay until `updated`. If
  /// others get them rounded, `rounded` has them so; otherwise it is empty.
  void submit(std::size_t layer, std::uint64_t step, std::vector<float> rounded = {});
  /// Ends all updates; any thread may call it. The destructor waits for the one that is under way.
  void stop();

  /// The optimiser's state of a parameter of a layer, states() of them, each of the parameter's
  /// size. It may be written before start().
  const std::vector<float*>& state(std::size_t parameter) const;
  std::uint64_t step_of(std::size_t layer) const;
  /// Returns the same, and none where an update has thrown. After stop() it stays so.
  std::optional<std::uint64_t> sound_step_of(std::size_t layer) const;
  /// Returns whether a layer is being updated.
  bool is_busy() const;
  /// Copies a chunk of a layer's parameter as it is for `step`, waiting for an update that is under
  /// way; none: the layer is of another step.
  std::optional<ChunkState> state_of(const Chunk& chunk, std::uint64_t step) const;

  /// Workers whose factors others, or this rank's own, have waited for since `allowed` or longer;
  /// chunk is here the layer.
  std::optional<Store::Overdue> overdue(Clock::duration allowed) const;

 private:
  /// The factors of a worker of one step.
  struct Inbox {
    std::vector<float> values;  ///< Empty for this rank's own where they lie in the span.
    std::vector<char> taken;    ///< By piece: it is on its way, or here.
    std::size_t missing = 0;    ///< Pieces that are not here.
  };
  struct Layer {
    /// By the parity of the step, then by worker; none where this rank does not train with it.
    std::vector<Inbox> inbox[2];
    std::size_t incomplete[2] = {0, 0};  ///< Workers that lack pieces.
    std::uint64_t step = 0;              ///< The step that the weights are for.
    bool busy = false;                   ///< It is being updated.
    Clock::time_point since;  ///< When the first factors of `step` were there, or a piece of them.
    bool open = false;        ///< Some have been.
    bool broken = false;      ///< An update has thrown, so the weights are of no step.
    std::vector<float*> state[2];    ///< Of weights and bias.
    std::vector<ChunkState> before;  ///< Of FactorStoreSpec::kept, those of the layer.
  };

  /// Whether this rank trains with a layer.
  bool trains(std::size_t layer) const { return map_.trains(spec_.own, layer); }
  static void open(Layer& layer);
  Inbox& due(std::size_t layer, int worker, std::uint64_t step);
  void begin_step(Layer& layer, std::size_t number, std::size_t parity) const;
  void run();
  void update(std::size_t number, Layer& layer);
  void update_rows(const Layer& layer, const FactoredLayer& shape, const OuterProducts& products,
                   const OptimiserStep& step, std::size_t first, std::size_t end) const;
  ChunkState copy_of(const Layer& layer, const FactoredLayer& shape, const Chunk& chunk) const;
  std::vector<Chunk> kept_of(const FactoredLayer& shape) const;
  std::size_t parameter_of(const FactoredLayer& shape, int which) const {
    return which == 0 ? shape.weights : shape.bias;
  }

  const FactorMap& map_;
  const FactorStoreSpec spec_;
  const std::vector<Span>& spans_;
  std::vector<float> factor_;  ///< By worker: what its products count in the mean.
  Buffer state_memory_;
  /// Guards all below, but what a layer that is `busy` has for its step: that, its weights and its
  /// state belong to the thread that updates. Receiving threads, the training thread and the one
  /// that updates take it, and take no other lock meanwhile.
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Layer> layers_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace duplex::net
