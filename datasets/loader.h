// Makes batches: decides which samples a step takes, and has other threads prepare their pixels as
// floats ahead of time.
#pragma once
#include <array>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/shape.h"
#include "core/tensor.h"
#include "datasets/dataset.h"

namespace duplex::datasets {

/// Normalises pixels: a network gets (value / 255 - mean) / stddev, by channel. It is computed as
/// (value - 255 mean) * (1 / (255 stddev)), which no compiler fuses: the bits are always the same.
struct Normalisation {
  std::array<float, 3> mean{}, stddev{};

  /// Returns ImageNet's usual constants for colour, for grey those of Fashion-MNIST's training
  /// part.
  static Normalisation standard(std::int64_t channels);
};

/// Says which samples of each step a rank takes. Samples are numbered from 0 on through all epochs:
/// sample n is the one at position n mod size of epoch n / size, and the epoch's order is drawn
/// from its number. In step s, all ranks together take `stride` numbers from s * stride on; this
/// rank takes `count` of them from s * stride + offset on. So N ranks with batches of B take what
/// one machine takes with batches of N * B, nothing is left out at the end of an epoch, and a batch
/// may reach into the next. Where a training has gone on with another number of ranks, steps are
/// counted from there on (LoaderOptions::first_sample).
struct Share {
  std::uint64_t stride = 0;
  std::uint64_t offset = 0;
  std::int64_t count = 0;
};

/// Returns the share of one machine, or of a rank in sync join: each of `ranks` takes its own
/// batch.
Share join_share(std::int64_t batch, int rank = 0, int ranks = 1);
/// Returns the share of a rank in sync split: the ranks share one batch, and if it does not divide
/// evenly, the first ranks take one sample more. Throws Error(usage) if a rank is left without any.
Share split_share(std::int64_t batch, int rank, int ranks);

/// Returns the sample at each position of an epoch: the numbers below `size`, shuffled
/// (Fisher-Yates) by `seed` and `epoch`.
std::vector<std::uint32_t> epoch_order(std::size_t size, std::uint64_t seed, std::uint64_t epoch);

enum class Pass {
  training,   ///< Batches without end, shuffled, mirrored if asked.
  evaluation  ///< One time through, in order; zeros fill up the last batches.
};

struct LoaderOptions {
  Pass pass = Pass::training;
  Share share;
  std::uint64_t seed = 0;
  // Training draws these by the sample's number, so that they are the same however it is read.
  bool mirror = false;  ///< Half of the samples are flipped left to right.
  CropRange crop;       ///< A part of each image is scaled to the sample's size (random_box).
  int pad = 0;          ///< Samples are moved by up to so many pixels, and black where they end.
  /// Evaluation scales the shorter side of images to so many pixels and takes the middle (central);
  /// 0: it squashes them.
  int test_side = 0;
  bool strict = false;  ///< An image that fails to decode is an error.
  int threads = 1;      ///< Threads that prepare batches ahead; 0: next() does the work.
  int ahead = 1;        ///< Batches that are prepared while one is in use.
  std::uint64_t first_step = 0;
  /// Number of the first sample that all ranks take in first_step; none: first_step * stride.
  std::optional<std::uint64_t> first_sample;
  Normalisation normalisation;  ///< All zeros stand for Normalisation::standard.
};

/// Returns how many batches a loader has in memory at a time.
std::size_t batches_held(const LoaderOptions& options);

/// Evaluation gives this label to an image that cannot be read.
constexpr std::int32_t no_label = -1;

/// Holds the batch of one step. The arrays have share.count samples; those from `count` on are
/// zeros (label 0).
struct Batch {
  std::uint64_t step = 0;
  std::uint64_t first_sample = 0;  ///< Number of the batch's first sample.
  std::int64_t count = 0;
  const float* pixels = nullptr;         ///< (N, C, H, W), plain.
  const std::int32_t* labels = nullptr;  ///< (N).
};

/// Prepares the batches of a subset. Opening the data set has skipped images whose structure is
/// damaged; when another one fails to decode, training takes the next image of the subset that
/// decodes, which is the same on every rank, and evaluation gives it zeros and the label
/// `no_label`. Batches do not depend on the number of threads.
class BatchLoader {
 public:
  /// Throws Error(usage) if a step of training takes more samples than the subset has.
  BatchLoader(Subset subset, const LoaderOptions& options);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  Shape shape() const;  ///< Shape of a batch: (share.count, C, H, W).
  /// Returns how many steps `epochs` take, those before first_step included: rounded down in
  /// training; in evaluation, all steps that see a sample.
  std::uint64_t steps(std::uint64_t epochs = 1) const;
  /// Returns the next step's batch, valid until the next call. After its last batch, evaluation
  /// returns batches of count 0.
  const Batch& next();
  /// The loader keeps the batches' pixels in these pieces of memory as long as it lives.
  struct Room {
    float* pixels;
    std::size_t bytes;
  };
  std::vector<Room> rooms();
  /// Returns how many samples all ranks together have taken after so many steps, first_step or
  /// more.
  std::uint64_t samples(std::uint64_t steps) const {
    return first_sample_ + (steps - options_.first_step) * options_.share.stride;
  }
  std::uint64_t first_step() const { return options_.first_step; }
  std::uint64_t step_samples() const { return options_.share.stride; }
  std::uint64_t size() const { return subset_.size(); }  ///< Samples in an epoch.
  /// Returns the processor seconds that preparing a sample has taken on the average, in the
  /// loader's own threads; 0: they have prepared none.
  double processor_seconds_a_sample() const;
  /// Returns the images that could not be read so far; training has replaced them.
  std::vector<LeftOut> replaced() const;

 private:
  struct Slot {
    Batch batch;
    Buffer pixels;  ///< Floats, on pages of their own, since a device may pin them.
    float* values() const { return static_cast<float*>(pixels.data()); }
    std::vector<std::int32_t> labels;
    std::vector<std::uint32_t> positions;  ///< Positions of this step's samples in the subset.
    std::int64_t taken = 0, done = 0;      ///< Samples begun and finished.
    std::exception_ptr failure;
  };

  Slot& slot(std::uint64_t step) { return slots_[step % slots_.size()]; }
  void open(Slot& slot, std::uint64_t step);
  void fill(Slot& slot, std::int64_t first, std::int64_t count);
  std::int32_t read_sample(float* to, std::uint32_t position, std::uint64_t number);
  void place(float* to, const std::uint8_t* pixels, std::uint64_t number) const;
  Framer framer(std::uint64_t number) const;
  void end_threads();
  void work();

  const Subset subset_;
  LoaderOptions options_;
  std::uint64_t first_sample_;
  std::int64_t grain_;  ///< Samples that a thread takes at a time.
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> order_;  ///< Order of the epoch order_epoch_.
  std::uint64_t order_epoch_ = 0;

  /// Guards all below, and the slots' counters. The caller's thread and those that prepare batches
  /// take it, and take no other lock meanwhile.
  mutable std::mutex mutex_;
  std::condition_variable wanted_, ready_;
  std::uint64_t opened_;  ///< Steps below this one have, or had, a slot.
  std::uint64_t next_;    ///< Next step to return; the caller may still use the one before.
  bool stop_ = false;
  std::exception_ptr failure_;  ///< The exception that ended a thread.
  std::map<std::string, std::string> replaced_;
  std::int64_t prepared_ = 0;       ///< Samples, by threads_.
  double preparing_seconds_ = 0.0;  ///< Processor seconds that these took.
  std::vector<std::thread> threads_;
};

/// Normalises `count` bytes of one channel.
void normalise(float* to, const std::uint8_t* from, std::size_t count, float mean, float stddev);

}  // namespace duplex::datasets
