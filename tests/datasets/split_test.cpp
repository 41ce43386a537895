// Tests the division into samples to train on and samples to test on.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::error_of;

/// Holds classes of given sizes, whose samples are named "CLASS/NUMBER.png".
class Named : public Dataset {
 public:
  explicit Named(const std::vector<int>& sizes) : Dataset(make(sizes)) {}
  std::string source() const override { return "the named set"; }
  const std::uint8_t* read(std::size_t, std::uint8_t* scratch) const override { return scratch; }

 private:
  static Catalogue make(const std::vector<int>& sizes) {
    Catalogue catalogue;
    catalogue.shape = {1, 1, 1, 1};
    for (std::size_t c = 0; c < sizes.size(); ++c) {
      catalogue.classes.emplace_back(1, static_cast<char>('a' + c));
      for (int i = 0; i < sizes[c]; ++i) {
        const std::string number = (i < 10 ? "0" : "") + std::to_string(i);
        catalogue.samples.push_back({catalogue.classes[c] + "/" + number + ".png",
                                     static_cast<std::int32_t>(c), Use::any, 1});
      }
    }
    return catalogue;
  }
};

TEST(Split, IsTheRecordedOne) {
  // tests/oracle/philox.py drew these: they have the three lowest values of
  // RandomStream(seed, stream_of(name)).bits(0 and 1).
  const auto data = std::make_shared<Named>(std::vector<int>{10});
  EXPECT_EQ(split(data, 0.3, 0).test.samples, (std::vector<std::uint32_t>{1, 5, 8}));
  EXPECT_EQ(split(data, 0.3, 5).test.samples, (std::vector<std::uint32_t>{1, 6, 7}));
  EXPECT_EQ(split(data, 0.3, 5).train.samples, (std::vector<std::uint32_t>{0, 2, 3, 4, 5, 8, 9}));
}

TEST(Split, TakesTheShareOfEveryClass) {
  const auto data = std::make_shared<Named>(std::vector<int>{1, 2, 3, 40, 99});
  const Split parts = split(data, 0.2);
  std::vector<int> tests(5), trains(5);
  for (std::uint32_t i : parts.test.samples)
    ++tests[static_cast<std::size_t>(data->sample(i).label)];
  for (std::uint32_t i : parts.train.samples) {
    ++trains[static_cast<std::size_t>(data->sample(i).label)];
  }
  EXPECT_EQ(tests, (std::vector<int>{0, 1, 1, 8, 20}));
  EXPECT_EQ(trains, (std::vector<int>{1, 1, 2, 32, 79}));
}

TEST(Split, OneFileLessMovesAtMostOneOther) {
  const auto more = std::make_shared<Named>(std::vector<int>{50});
  const auto fewer = std::make_shared<Named>(std::vector<int>{49});
  const auto test_names = [](const Split& parts) {
    std::set<std::string> names;
    for (std::uint32_t i : parts.test.samples) names.insert(parts.test.data->sample(i).name);
    return names;
  };
  const auto a = test_names(split(more)), b = test_names(split(fewer));
  std::vector<std::string> moved;
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(moved));
  EXPECT_LE(moved.size(), 1u);
  EXPECT_EQ(a.size(), 10u);
}

TEST(Split, WithoutTests) {
  const auto data = std::make_shared<Named>(std::vector<int>{5, 5});
  EXPECT_EQ(split(data, 0).test.size(), 0u);
  EXPECT_EQ(split(data, 0).train.size(), 10u);
  EXPECT_NE(error_of([&] { split(data, 1.0); }), "");
  EXPECT_NE(error_of([&] { split(data, -0.1); }), "");
}

TEST(Digest, DiffersWithEveryPartOfTheCatalogue) {
  const Named data({3, 4});
  const std::uint64_t digest = data.digest();
  const auto changed = [&](const auto& change) {
    Catalogue catalogue = data.catalogue();
    change(catalogue);
    return datasets::digest(catalogue);
  };
  EXPECT_EQ(changed([](Catalogue&) {}), digest);
  EXPECT_EQ(changed([](Catalogue& c) { c.ignored.push_back({"x", "y"}); }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.shape = {1, 1, 2, 1}; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.classes[1] = "z"; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.samples[2].name = "z"; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.samples[2].label = 1; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.samples[2].use = Use::test; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.samples[2].source_bytes = 9; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.samples[2].checksum = 9; }), digest);
  EXPECT_NE(changed([](Catalogue& c) { c.samples.pop_back(); }), digest);
  EXPECT_NE(changed([](Catalogue& c) { std::swap(c.samples[0], c.samples[1]); }), digest);
}

}  // namespace
}  // namespace duplex::datasets
