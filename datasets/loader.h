// Batches: which samples a step takes, and their pixels as floats, prepared ahead by other threads.
#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/shape.h"
#include "datasets/dataset.h"

namespace duplex::datasets {

/// What a network sees of a pixel: (value / 255 - mean) / deviation, by channel, computed as
/// (value - 255 mean) * (1 / (255 deviation)), which no compiler fuses: the same bits everywhere.
struct Normalisation {
  std::array<float, 3> mean{}, deviation{};

  /// Colour: ImageNet's usual constants. Grey: those of Fashion-MNIST's training pictures.
  static Normalisation standard(std::int64_t channels);
};

/// The samples are numbered from 0 on through all epochs: sample n is the one at position n mod
/// size of epoch n / size, and the epoch's order is drawn from its number. Step s takes the numbers
/// from s * stride on, on all ranks together; this rank's are [s * stride + offset, + count). So N
/// ranks with batches of B take what one machine takes with batches of N * B, nothing is left out
/// at the end of an epoch, and a batch may reach into the next.
struct Share {
  std::uint64_t stride = 0;
  std::uint64_t offset = 0;
  std::int64_t count = 0;
};

/// One machine, and sync join: each of `ranks` takes a batch of its own.
Share join_share(std::int64_t batch, int rank = 0, int ranks = 1);
/// Sync split: the ranks share one batch; the first take one more where it does not divide. Throws
/// Error(usage) if that leaves a rank without samples.
Share split_share(std::int64_t batch, int rank, int ranks);

/// Where an epoch's positions point: the numbers below `size`, shuffled (Fisher-Yates) by `seed`.
std::vector<std::uint32_t> epoch_order(std::size_t size, std::uint64_t seed, std::uint64_t epoch);

enum class Pass {
  training,   ///< Endless, shuffled, mirrored if asked.
  evaluation  ///< Once through, in order; the last batches are filled up with zeros.
};

struct LoaderOptions {
  Pass pass = Pass::training;
  Share share;
  std::uint64_t seed = 0;
  bool mirror = false;  ///< Half of the samples, by draw on the sample's number, left to right.
  bool strict = false;  ///< A picture that fails to decode is an error.
  int threads = 1;      ///< That prepare batches ahead; 0: next() does the work itself.
  int ahead = 1;        ///< Batches that are prepared while one is in use.
  std::uint64_t first_step = 0;
  Normalisation normalisation;  ///< All zero: Normalisation::standard.
};

/// In evaluation, the label of a picture that cannot be read.
constexpr std::int32_t no_label = -1;

/// Of one step. The arrays hold share.count samples; those from `count` on are zeros (label 0).
struct Batch {
  std::uint64_t step = 0;
  std::uint64_t first_sample = 0;  ///< Number of sample 0.
  std::int64_t count = 0;
  const float* pixels = nullptr;         ///< (N, C, H, W), plain.
  const std::int32_t* labels = nullptr;  ///< (N).
};

/// A picture that turns out not to decode when its turn comes (what can be known beforehand was
/// skipped when the data set was opened) is in training replaced by the next one of the subset that
/// does, the same on every rank; in evaluation it is zeros, with the label `no_label`. Batches do
/// not depend on the number of threads.
class BatchLoader {
 public:
  /// Throws Error(usage) if a step of training takes more samples than the subset has.
  BatchLoader(Subset subset, const LoaderOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  Shape shape() const;  ///< Of a batch: (share.count, C, H, W).
  /// Steps that `epochs` take: in training rounded down, in evaluation all that see a sample.
  std::uint64_t steps(std::uint64_t epochs = 1) const;
  /// The next step's batch, valid until the next call. In evaluation, after the last one, batches
  /// of count 0.
  const Batch& next();
  /// The memory that the batches' pixels lie in, all along.
  struct Room {
    float* pixels;
    std::size_t bytes;
  };
  std::vector<Room> rooms();
  /// Samples that all ranks together have taken after so many steps.
  std::uint64_t samples(std::uint64_t steps) const { return steps * options_.share.stride; }
  std::uint64_t size() const { return subset_.size(); }  ///< Samples of an epoch.
  /// Pictures that could not be read so far, in training replaced.
  std::vector<LeftOut> replaced() const;

 private:
  struct Slot {
    Batch batch;
    std::vector<float> pixels;
    std::vector<std::int32_t> labels;
    std::vector<std::uint32_t> positions;  ///< In the subset, of this step's samples.
    std::int64_t taken = 0, done = 0;      ///< Samples begun and finished.
    std::exception_ptr failure;
  };

  Slot& slot(std::uint64_t step) { return slots_[step % slots_.size()]; }
  void open(Slot& slot, std::uint64_t step);
  void fill(Slot& slot, std::int64_t first, std::int64_t count);
  std::int32_t read_sample(float* to, std::uint32_t position, bool mirror);
  void work();

  const Subset subset_;
  LoaderOptions options_;
  std::int64_t grain_;  ///< Samples that a thread takes at a time.
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> order_;  ///< Of order_epoch_.
  std::uint64_t order_epoch_ = 0;

  mutable std::mutex mutex_;  ///< Guards all below, and the slots' counters.
  std::condition_variable wanted_, ready_;
  std::uint64_t opened_;  ///< Steps below have, or had, a slot.
  std::uint64_t
      next_;  ///< The step that next() will return; the caller may still use the one before.
  bool stop_ = false;
  std::map<std::string, std::string> replaced_;
  std::vector<std::thread> threads_;
};

/// Normalises `count` bytes of one channel.
void normalise(float* to, const std::uint8_t* from, std::size_t count, float mean, float deviation);

}  // namespace duplex::datasets
