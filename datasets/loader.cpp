#include "datasets/loader.h"

#include <algorithm>
#include <string>
#include <system_error>

#include "core/error.h"
#include "core/mapped_memory.h"
#include "core/processor/processor_time.h"
#include "core/random.h"

namespace duplex::datasets {

Normalisation Normalisation::standard(std::int64_t channels) {
  if (channels == 1) return {{0.2860F}, {0.3530F}};
  return {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
}

Share join_share(std::int64_t batch, int rank, int ranks) {
  return {static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(ranks),
          static_cast<std::uint64_t>(batch) * static_cast<std::uint64_t>(rank), batch};
}

Share split_share(std::int64_t batch, int rank, int ranks) {
  if (batch < ranks) {
    throw Error("a batch of " + std::to_string(batch) + " cannot be split among " +
                    std::to_string(ranks) + " ranks",
                Exit::usage);
  }
  const std::int64_t least = batch / ranks, more = batch % ranks;
  return {static_cast<std::uint64_t>(batch),
          static_cast<std::uint64_t>(least * rank + std::min<std::int64_t>(rank, more)),
          least + (rank < more ? 1 : 0)};
}

std::size_t batches_held(const LoaderOptions& options) {
  return static_cast<std::size_t>(options.threads > 0 ? 1 + std::max(1, options.ahead) : 1);
}

std::vector<std::uint32_t> epoch_order(std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(size);
  for (std::size_t i = 0; i < size; ++i) order[i] = static_cast<std::uint32_t>(i);
  const RandomStream stream(seed, stream_of("shuffle"), static_cast<std::uint32_t>(epoch));
  for (std::size_t i = size; i > 1; --i) {
    std::swap(order[i - 1], order[stream.below(i - 1, static_cast<std::uint32_t>(i))]);
  }
  return order;
}

void normalise(float* to, const std::uint8_t* from, std::size_t count, float mean, float stddev) {
  const float shift = 255.0F * mean, scale = 1.0F / (255.0F * stddev);
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = (static_cast<float>(from[i]) - shift) * scale;
  }
}

namespace {

/// Copies the pixel at (y + down, x + right) of a plane to (y, x); 0 where there is none.
void move_plane(std::uint8_t* to, const std::uint8_t* from, const Shape& shape, std::int64_t down,
                std::int64_t right) {
  const std::int64_t height = shape.h(), width = shape.w();
  const std::int64_t begin = std::clamp<std::int64_t>(-right, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(width - right, begin, width);
  std::fill_n(to, height * width, std::uint8_t{0});
  for (std::int64_t y = std::max<std::int64_t>(-down, 0); y < std::min(height - down, height); ++y)
    std::copy_n(from + (y + down) * width + begin + right, end - begin, to + y * width + begin);
}

}  // namespace

BatchLoader::BatchLoader(Subset subset, const LoaderOptions& options)
    : subset_(std::move(subset)),
      options_(options),
      first_sample_(options.first_sample.value_or(options.first_step * options.share.stride)),
      opened_(options.first_step),
      next_(options.first_step) {
  const Share& share = options_.share;
  if (share.count < 1 || share.offset + static_cast<std::uint64_t>(share.count) > share.stride) {
    throw Error("a batch must have at least one sample", Exit::usage);
  }
  if (subset_.size() == 0) throw Error("there are no images to make batches of", Exit::usage);
  if (options_.pass == Pass::training && share.stride > subset_.size()) {
    throw Error("the batch is larger than the data set: a step takes " + with_commas(share.stride) +
                    " samples, and there are " + with_commas(subset_.size()) + " to train on",
                Exit::usage);
  }
  const Shape& one = subset_.data->shape();
  if (options_.normalisation.stddev[0] == 0) {
    options_.normalisation = Normalisation::standard(one.c());
  }
  grain_ = std::max<std::int64_t>(1, (std::int64_t{1} << 16) / one.elements());
  slots_.resize(batches_held(options_));
  for (Slot& slot : slots_) {
    slot.pixels =
        map_memory(static_cast<std::size_t>(share.count * one.elements()) * sizeof(float));
    slot.labels.resize(static_cast<std::size_t>(share.count));
    slot.batch.pixels = slot.values();
    slot.batch.labels = slot.labels.data();
  }
  try {
    for (int i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    end_threads();
    throw Error(std::string("a thread that decodes images cannot be started: ") + error.what());
  }
}

BatchLoader::~BatchLoader() {
  end_threads();
}

void BatchLoader::end_threads() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wanted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Shape BatchLoader::shape() const {
  const Shape& one = subset_.data->shape();
  return {options_.share.count, one.c(), one.h(), one.w()};
}

std::uint64_t BatchLoader::steps(std::uint64_t epochs) const {
  const std::uint64_t samples = epochs * subset_.size(), stride = options_.share.stride;
  if (options_.pass == Pass::evaluation) return (samples + stride - 1) / stride;
  if (samples >= first_sample_) return options_.first_step + (samples - first_sample_) / stride;
  const std::uint64_t too_many = (first_sample_ - samples + stride - 1) / stride;
  return options_.first_step - std::min(options_.first_step, too_many);
}

/// Gives the slot to a step and decides its samples. The caller holds the mutex if there are
/// threads.
void BatchLoader::open(Slot& slot, std::uint64_t step) {
  const Share& share = options_.share;
  const std::uint64_t size = subset_.size();
  slot.batch.step = step;
  slot.batch.first_sample = samples(step) + share.offset;
  slot.batch.count = share.count;
  slot.positions.clear();
  slot.taken = slot.done = 0;
  slot.failure = nullptr;
  for (std::int64_t j = 0; j < share.count; ++j) {
    const std::uint64_t number = slot.batch.first_sample + static_cast<std::uint64_t>(j);
    if (options_.pass == Pass::evaluation) {
      if (number >= size) break;
      slot.positions.push_back(static_cast<std::uint32_t>(number));
      continue;
    }
    const std::uint64_t epoch = number / size;
    if (order_.empty() || epoch != order_epoch_) {
      order_ = epoch_order(size, options_.seed, epoch);
      order_epoch_ = epoch;
    }
    slot.positions.push_back(order_[number % size]);
  }
  if (slot.positions.size() < static_cast<std::size_t>(share.count)) {
    slot.batch.count = static_cast<std::int64_t>(slot.positions.size());
    const auto valid = static_cast<std::ptrdiff_t>(slot.positions.size());
    std::fill(slot.labels.begin() + valid, slot.labels.end(), 0);
    const std::int64_t elements = subset_.data->shape().elements();
    std::fill(slot.values() + valid * elements, slot.values() + share.count * elements, 0.0F);
  }
}

/// Says which part of an image becomes the sample of that number; empty: the whole, squashed.
Framer BatchLoader::framer(std::uint64_t number) const {
  const auto height = static_cast<int>(subset_.data->shape().h());
  const auto width = static_cast<int>(subset_.data->shape().w());
  const bool training = options_.pass == Pass::training;
  if (training && options_.crop.any())
    return [this, number, height, width](ImageSize image) {
      const Box part = random_box(image, options_.crop, options_.seed, number);
      return Framing{part, height, width, 0, 0};
    };
  if (!training && options_.test_side > 0)
    return [this, height, width](ImageSize image) {
      return central(image, options_.test_side, height, width);
    };
  return {};
}

/// Writes the pixels of the sample at `position`, whose number is `number`, to `to`; if it cannot
/// be read, training takes the first one after it that can. Returns the sample's label.
std::int32_t BatchLoader::read_sample(float* to, std::uint32_t position, std::uint64_t number) {
  const Dataset& data = *subset_.data;
  static thread_local std::vector<std::uint8_t> scratch;
  scratch.resize(data.sample_bytes());
  const Framer framed = framer(number);
  const std::uint8_t* pixels = nullptr;
  for (std::size_t tried = 0; pixels == nullptr; ++tried) {
    if (tried == subset_.size()) throw Error("no image of " + data.source() + " can be read");
    const std::uint32_t index = subset_.samples[position];
    try {
      if (framed) data.read_framed(index, framed, scratch.data());
      pixels = framed ? scratch.data() : data.read(index, scratch.data());
    } catch (const Error& error) {
      if (options_.strict) throw unreadable(data, index, error.what());
      const std::lock_guard<std::mutex> lock(mutex_);
      replaced_.emplace(data.sample(index).name, error.what());
      if (options_.pass == Pass::evaluation) {
        std::fill_n(to, data.shape().elements(), 0.0F);
        return no_label;
      }
      position = static_cast<std::uint32_t>((position + std::size_t{1}) % subset_.size());
    }
  }
  place(to, pixels, number);
  return data.sample(subset_.samples[position]).label;
}

/// Normalises a sample's pixels, after it is moved and mirrored as is drawn for its number.
void BatchLoader::place(float* to, const std::uint8_t* pixels, std::uint64_t number) const {
  const Shape& shape = subset_.data->shape();
  const auto width = static_cast<std::size_t>(shape.w());
  const std::size_t area = static_cast<std::size_t>(shape.h()) * width;
  const bool training = options_.pass == Pass::training;
  const bool mirror = training && options_.mirror &&
                      RandomStream(options_.seed, stream_of("mirror")).below(number, 2) == 1;
  const bool moves = training && options_.pad > 0;
  static thread_local std::vector<std::uint8_t> moved;
  if (moves) moved.resize(area);
  const RandomStream draws(options_.seed, stream_of("pad"));
  const auto drawn = [&](std::uint64_t draw) {
    const auto places = static_cast<std::uint32_t>(2 * options_.pad + 1);
    return static_cast<std::int64_t>(draws.below(2 * number + draw, places)) - options_.pad;
  };
  for (std::size_t c = 0; c < static_cast<std::size_t>(shape.c()); ++c) {
    float* plane = to + c * area;
    const std::uint8_t* from = pixels + c * area;
    if (moves) {
      move_plane(moved.data(), from, shape, drawn(0), drawn(1));
      from = moved.data();
    }
    normalise(plane, from, area, options_.normalisation.mean[c], options_.normalisation.stddev[c]);
    if (!mirror) continue;
    for (float* row = plane; row < plane + area; row += width) std::reverse(row, row + width);
  }
}

/// Reads the samples [first, first + count) of a slot.
void BatchLoader::fill(Slot& slot, std::int64_t first, std::int64_t count) {
  const std::int64_t elements = subset_.data->shape().elements();
  for (std::int64_t j = first; j < first + count; ++j) {
    const auto i = static_cast<std::size_t>(j);
    slot.labels[i] = read_sample(slot.values() + j * elements, slot.positions[i],
                                 slot.batch.first_sample + static_cast<std::uint64_t>(j));
  }
}

const Batch& BatchLoader::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  const std::uint64_t step = next_++;
  Slot& mine = slot(step);
  if (threads_.empty()) {
    lock.unlock();
    open(mine, step);
    fill(mine, 0, mine.batch.count);
    return mine.batch;
  }
  wanted_.notify_all();
  ready_.wait(lock, [&] { return failure_ || (opened_ > step && mine.done == mine.batch.count); });
  if (failure_) std::rethrow_exception(failure_);
  if (mine.failure) std::rethrow_exception(mine.failure);
  return mine.batch;
}

/// Runs in each thread: takes samples of the newest open slot; when that has none left, opens the
/// next one as soon as the caller no longer uses the slot that it needs.
void BatchLoader::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    const std::uint64_t first = options_.first_step;
    const std::uint64_t oldest = next_ > first ? next_ - 1 : first;  // The caller has it.
    if (opened_ == first || slot(opened_ - 1).taken == slot(opened_ - 1).batch.count) {
      if (opened_ >= oldest + slots_.size()) {
        wanted_.wait(lock);
        continue;
      }
      try {
        open(slot(opened_), opened_);
      } catch (...) {  // There is no memory for an epoch's order.
        failure_ = std::current_exception();
        stop_ = true;
        ready_.notify_all();
        return;
      }
      ++opened_;
      wanted_.notify_all();
      ready_.notify_all();  // The batch may be empty.
      continue;
    }
    Slot& mine = slot(opened_ - 1);
    const std::int64_t begin = mine.taken;
    const std::int64_t count = std::min(grain_, mine.batch.count - begin);
    mine.taken += count;
    lock.unlock();
    std::exception_ptr failure;
    const double before = thread_processor_seconds();
    try {
      fill(mine, begin, count);
    } catch (...) {
      failure = std::current_exception();
    }
    const double took = thread_processor_seconds() - before;
    lock.lock();
    prepared_ += count;
    preparing_seconds_ += took;
    if (failure) mine.failure = failure;
    mine.done += count;
    if (mine.done == mine.batch.count) ready_.notify_all();
  }
}

std::vector<BatchLoader::Room> BatchLoader::rooms() {
  std::vector<Room> rooms;
  for (Slot& slot : slots_) rooms.push_back({slot.values(), slot.pixels.bytes()});
  return rooms;
}

double BatchLoader::processor_seconds_a_sample() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return prepared_ == 0 ? 0.0 : preparing_seconds_ / static_cast<double>(prepared_);
}

std::vector<LeftOut> BatchLoader::replaced() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<LeftOut> result;
  for (const auto& [name, reason] : replaced_) result.push_back({name, reason});
  return result;
}

}  // namespace duplex::datasets
