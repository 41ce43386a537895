// Tests batches: which samples they hold, in which order and as which floats, the same with any
// number of threads.
#include "datasets/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/random.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::all_of;
using testing::CountedDataset;
using testing::error_of;

std::shared_ptr<const Dataset> counted(std::size_t size, std::vector<std::size_t> broken = {}) {
  return std::make_shared<CountedDataset>(size, 5, Shape{1, 3, 4, 6}, std::move(broken));
}

LoaderOptions options(const Share& share, int threads = 0) {
  LoaderOptions result;
  result.share = share;
  result.seed = 7;
  result.threads = threads;
  return result;
}

struct Copy {
  Batch batch;
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
};

Copy copy(BatchLoader& loader) {
  const Batch& batch = loader.next();
  const auto all = static_cast<std::size_t>(loader.shape().elements());
  return {
      batch, {batch.pixels, batch.pixels + all}, {batch.labels, batch.labels + loader.shape().n()}};
}

std::vector<Copy> run(const Subset& subset, const LoaderOptions& how, int steps) {
  BatchLoader loader(subset, how);
  std::vector<Copy> result;
  for (int i = 0; i < steps; ++i) result.push_back(copy(loader));
  return result;
}

/// Returns the samples of a batch, known by their pixels. The batch is of a CountedDataset of at
/// most 251 samples.
std::vector<std::size_t> samples_of(const Copy& copy) {
  std::vector<std::size_t> samples;
  const Normalisation normal = Normalisation::standard(3);
  for (std::int64_t j = 0; j < copy.batch.count; ++j) {
    const double value = copy.pixels[static_cast<std::size_t>(j) * 72];
    const long level = std::lround((value * normal.stddev[0] + normal.mean[0]) * 255);
    std::size_t index = 0;
    while (CountedDataset::value(index) != level) {
      if (++index == 251) throw Error("no sample has the value " + std::to_string(level));
    }
    samples.push_back(index);
  }
  return samples;
}

TEST(EpochOrder, IsTheRecordedOne) {
  // The draws of tests/oracle/philox.py shuffle the numbers so.
  using Order = std::vector<std::uint32_t>;
  EXPECT_EQ(epoch_order(10, 0, 0), (Order{1, 5, 9, 4, 7, 8, 0, 3, 6, 2}));
  EXPECT_EQ(epoch_order(10, 7, 0), (Order{6, 7, 8, 1, 4, 9, 0, 2, 5, 3}));
  EXPECT_EQ(epoch_order(10, 7, 1), (Order{1, 8, 5, 2, 9, 4, 0, 3, 6, 7}));
  const Order large = epoch_order(60000, 1, 2);
  EXPECT_EQ(Order(large.begin(), large.begin() + 4), (Order{36621, 42709, 48071, 14558}));
  EXPECT_EQ(Order(large.end() - 4, large.end()), (Order{37353, 41657, 44841, 2693}));
}

TEST(Loader, EveryEpochTakesEverySampleOnceInItsOrder) {
  const auto data = counted(10);
  BatchLoader loader(all_of(data), options(join_share(4)));
  EXPECT_EQ(loader.shape(), (Shape{4, 3, 4, 6}));
  EXPECT_EQ(loader.steps(1), 2u);
  EXPECT_EQ(loader.steps(2), 5u);
  std::vector<std::uint32_t> expected = epoch_order(10, 7, 0), second = epoch_order(10, 7, 1);
  expected.insert(expected.end(), second.begin(), second.end());
  std::vector<std::size_t> found;
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Copy one = copy(loader);
    EXPECT_EQ(one.batch.step, step);
    EXPECT_EQ(one.batch.first_sample, 4 * step);
    EXPECT_EQ(one.batch.count, 4);
    const std::vector<std::size_t> samples = samples_of(one);
    for (std::size_t j = 0; j < 4; ++j) EXPECT_EQ(one.labels[j], data->sample(samples[j]).label);
    found.insert(found.end(), samples.begin(), samples.end());
  }
  EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end()));
}

TEST(Loader, ASubsetIsAddressedByItsOwnPositions) {
  const Subset odd{counted(20), {1, 3, 5, 7, 9, 11, 13, 15, 17, 19}};
  const Copy one = run(odd, options(join_share(10)), 1)[0];
  const std::vector<std::uint32_t> order = epoch_order(10, 7, 0);
  for (std::size_t j = 0; j < 10; ++j) EXPECT_EQ(samples_of(one)[j], 2 * order[j] + 1);
}

TEST(Loader, RanksShareWhatOneMachineTakes) {
  const Subset all = all_of(counted(50));
  for (const bool join : {true, false}) {
    const std::int64_t batch = join ? 4 : 13;
    const auto share = [&](int rank) {
      return join ? join_share(batch, rank, 3) : split_share(batch, rank, 3);
    };
    LoaderOptions whole = options(join_share(join ? 12 : 13));
    whole.mirror = true;
    const std::vector<Copy> alone = run(all, whole, 6);
    std::vector<std::vector<float>> pixels(6);
    std::vector<std::vector<std::int32_t>> labels(6);
    for (int rank = 0; rank < 3; ++rank) {
      LoaderOptions part = whole;
      part.share = share(rank);
      const std::vector<Copy> own = run(all, part, 6);
      for (std::size_t step = 0; step < 6; ++step) {
        EXPECT_EQ(own[step].batch.first_sample,
                  alone[step].batch.first_sample + labels[step].size());
        pixels[step].insert(pixels[step].end(), own[step].pixels.begin(), own[step].pixels.end());
        labels[step].insert(labels[step].end(), own[step].labels.begin(), own[step].labels.end());
      }
    }
    for (std::size_t step = 0; step < 6; ++step) {
      EXPECT_EQ(pixels[step], alone[step].pixels);
      EXPECT_EQ(labels[step], alone[step].labels);
    }
  }
}

TEST(Loader, ThreadsChangeNothing) {
  const Subset all = all_of(counted(97, {3, 4, 50}));
  LoaderOptions how = options(join_share(16));
  how.mirror = true;
  const std::vector<Copy> expected = run(all, how, 25);
  for (const auto& [threads, ahead] : {std::pair{1, 1}, {2, 1}, {3, 4}, {8, 2}}) {
    how.threads = threads;
    how.ahead = ahead;
    const std::vector<Copy> found = run(all, how, 25);
    for (std::size_t step = 0; step < 25; ++step) {
      ASSERT_EQ(found[step].pixels, expected[step].pixels) << threads << " threads, step " << step;
      ASSERT_EQ(found[step].labels, expected[step].labels);
      ASSERT_EQ(found[step].batch.first_sample, expected[step].batch.first_sample);
    }
  }
}

TEST(Loader, ABatchStaysUntilTheNextIsAskedFor) {
  const Subset all = all_of(counted(200));
  LoaderOptions how = options(join_share(8), 4);
  how.ahead = 2;
  BatchLoader loader(all, how);
  for (int step = 0; step < 100; ++step) {
    const Batch& batch = loader.next();
    const std::vector<float> before(batch.pixels, batch.pixels + 8 * 72);
    std::this_thread::yield();
    ASSERT_TRUE(std::equal(before.begin(), before.end(), batch.pixels));
  }
}

TEST(Loader, StartsAtAnyStep) {
  const Subset all = all_of(counted(23));
  const std::vector<Copy> expected = run(all, options(join_share(5)), 20);
  for (int threads : {0, 2}) {
    LoaderOptions how = options(join_share(5), threads);
    how.first_step = 13;
    const std::vector<Copy> found = run(all, how, 7);
    for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(found[i].pixels, expected[13 + i].pixels);
  }
}

TEST(Loader, MirrorsByTheNumberOfTheSample) {
  /// Every pixel is 10 times its column.
  class Columns : public CountedDataset {
   public:
    Columns() : CountedDataset(16, 1, {1, 3, 4, 6}) {}
    const std::uint8_t* read(std::size_t, std::uint8_t* scratch) const override {
      for (std::size_t i = 0; i < 72; ++i) scratch[i] = static_cast<std::uint8_t>(10 * (i % 6));
      return scratch;
    }
  };
  LoaderOptions how = options(join_share(16));
  how.seed = 3;
  how.mirror = true;
  const Copy one = run(all_of(std::make_shared<Columns>()), how, 1)[0];
  // tests/oracle/philox.py gives these as the top bits of RandomStream(3, stream_of("mirror")).
  const bool mirrored[] = {true, false, false, true, true, true,  false, true,
                           true, true,  false, true, true, false, false, false};
  for (std::size_t j = 0; j < 16; ++j) {
    for (std::size_t i = 0; i < 72; ++i) {
      const std::size_t column = mirrored[j] ? 5 - i % 6 : i % 6, channel = i / 24;
      const Normalisation normal = Normalisation::standard(3);
      const double expected = (10.0 * static_cast<double>(column) / 255 - normal.mean[channel]) /
                              normal.stddev[channel];
      ASSERT_NEAR(one.pixels[72 * j + i], expected, 1e-6) << "sample " << j << " element " << i;
    }
  }
}

TEST(Loader, NormalisesEveryLevel) {
  std::vector<std::uint8_t> levels(256);
  for (std::size_t i = 0; i < 256; ++i) levels[i] = static_cast<std::uint8_t>(i);
  std::vector<float> found(256);
  normalise(found.data(), levels.data(), 256, 0.485F, 0.229F);
  for (std::size_t i = 0; i < 256; ++i) {
    const double expected = (static_cast<double>(i) / 255 - 0.485) / 0.229;
    EXPECT_NEAR(found[i], expected, 4e-7 * (1 + std::abs(expected))) << i;
  }
}

TEST(Loader, EvaluationGoesOnceThroughAndFillsUp) {
  const Subset all = all_of(counted(10));
  for (int threads : {0, 2}) {
    LoaderOptions how = options(join_share(4), threads);
    how.pass = Pass::evaluation;
    how.mirror = true;
    BatchLoader loader(all, how);
    EXPECT_EQ(loader.steps(), 3u);
    std::vector<std::size_t> found;
    for (std::int64_t valid : {4, 4, 2, 0, 0}) {
      const Copy one = copy(loader);
      ASSERT_EQ(one.batch.count, valid);
      for (std::size_t i = 72 * static_cast<std::size_t>(valid); i < one.pixels.size(); ++i) {
        ASSERT_EQ(one.pixels[i], 0.0F);
      }
      for (auto j = static_cast<std::size_t>(valid); j < 4; ++j) ASSERT_EQ(one.labels[j], 0);
      for (std::size_t sample : samples_of(one)) found.push_back(sample);
    }
    EXPECT_EQ(found, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  }
}

TEST(Loader, EvaluationAmongRanksTakesEachSampleOnce) {
  const Subset all = all_of(counted(10));
  std::multiset<std::size_t> found;
  for (int rank = 0; rank < 3; ++rank) {
    LoaderOptions how = options(join_share(2, rank, 3));
    how.pass = Pass::evaluation;
    BatchLoader loader(all, how);
    EXPECT_EQ(loader.steps(), 2u);
    for (int step = 0; step < 2; ++step) {
      for (std::size_t sample : samples_of(copy(loader))) found.insert(sample);
    }
  }
  EXPECT_EQ(found, (std::multiset<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Loader, InTrainingABrokenImageIsReplacedByTheNextSoundOne) {
  const std::vector<std::uint32_t> order = epoch_order(10, 1, 0);
  for (int threads : {0, 2}) {
    LoaderOptions how = options(join_share(10), threads);
    how.seed = 1;
    BatchLoader loader(all_of(counted(10, {2, 8, 9})), how);
    std::vector<std::size_t> expected;
    for (const std::size_t sample : order)
      expected.push_back(sample == 2 ? 3 : sample >= 8 ? 0 : sample);
    EXPECT_EQ(samples_of(copy(loader)), expected);
    const std::vector<LeftOut> replaced = loader.replaced();
    ASSERT_EQ(replaced.size(), 3u);
    EXPECT_EQ(replaced[0].name, "sample2");
    EXPECT_EQ(replaced[0].reason, "it is broken");
  }
}

TEST(Loader, InEvaluationABrokenImageHasNoLabel) {
  for (int threads : {0, 2}) {
    LoaderOptions how = options(join_share(10), threads);
    how.pass = Pass::evaluation;
    BatchLoader loader(all_of(counted(10, {2, 9})), how);
    const Copy one = copy(loader);
    ASSERT_EQ(one.batch.count, 10);
    for (std::size_t j = 0; j < 10; ++j) {
      EXPECT_EQ(one.labels[j] == no_label, j == 2 || j == 9) << j;
    }
    for (std::size_t i = 2 * 72; i < std::size_t{3 * 72}; ++i) ASSERT_EQ(one.pixels[i], 0.0F);
    EXPECT_EQ(loader.replaced().size(), 2u);
  }
}

TEST(Loader, ABrokenImageIsAnErrorIfStrict) {
  for (int threads : {0, 3}) {
    for (const Pass pass : {Pass::training, Pass::evaluation}) {
      LoaderOptions how = options(join_share(10), threads);
      how.pass = pass;
      how.strict = true;
      BatchLoader loader(all_of(counted(10, {2})), how);
      EXPECT_EQ(error_of([&] { loader.next(); }),
                "image 'sample2' of the counted set cannot be read: it is broken");
    }
  }
}

TEST(Loader, WithoutAnySoundImageItSaysSo) {
  BatchLoader loader(all_of(counted(3, {0, 1, 2})), options(join_share(2), 2));
  EXPECT_EQ(error_of([&] { loader.next(); }), "no image of the counted set can be read");
}

TEST(Loader, RefusesABatchLargerThanTheDataSet) {
  const Subset all = all_of(counted(11));
  try {
    BatchLoader loader(all, options(join_share(4, 1, 3)));
    FAIL() << "a step of 12 of 11 samples";
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    EXPECT_STREQ(error.what(),
                 "the batch is larger than the data set: a step takes 12 samples, "
                 "and there are 11 to train on");
  }
  EXPECT_NE(error_of([&] { BatchLoader loader(all, options(join_share(0))); }), "");
  EXPECT_NE(error_of([&] { split_share(2, 0, 3); }), "");
}

TEST(Loader, EndsWithBatchesUnderway) {
  for (int i = 0; i < 50; ++i) {
    BatchLoader loader(all_of(counted(100)), options(join_share(32), 4));
    if (i % 2 == 0) loader.next();
  }
}

}  // namespace
}  // namespace duplex::datasets
