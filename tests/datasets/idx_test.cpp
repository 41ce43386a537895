// Tests that IDX files are read, that errors say what is wrong with them, and that Fashion-MNIST
// itself is read.
#include "datasets/idx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "datasets/loader.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;
using testing::error_of;
using testing::write_bytes;

/// Returns an IDX file whose bytes count up from `first`.
Bytes idx(const std::vector<std::uint32_t>& extents, std::uint8_t first) {
  Bytes file{0, 0, 8, static_cast<std::uint8_t>(extents.size())};
  std::size_t count = 1;
  for (std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) {
      file.push_back(static_cast<std::uint8_t>(extent >> shift));
    }
    count *= extent;
  }
  for (std::size_t i = 0; i < count; ++i) file.push_back(static_cast<std::uint8_t>(first + i));
  return file;
}

/// Writes three images of 2x4 to train on, with the labels 1, 2, 3, and two to test on, with the
/// labels 0, 1.
void write_all(const TemporaryFolder& folder) {
  write_bytes(folder / "train-images-idx3-ubyte", idx({3, 2, 4}, 10));
  write_bytes(folder / "train-labels-idx1-ubyte", idx({3}, 1));
  write_bytes(folder / "t10k-images-idx3-ubyte", idx({2, 2, 4}, 100));
  write_bytes(folder / "t10k-labels-idx1-ubyte", idx({2}, 0));
}

std::string refusal(const TemporaryFolder& folder) {
  return error_of([&] { open_dataset(folder.path()); });
}

void expect_refusal(const std::string& name, const Bytes& content, const std::string& reason) {
  const TemporaryFolder folder;
  write_all(folder);
  write_bytes(folder / name, content);
  EXPECT_EQ(refusal(folder), "IDX file '" + folder / name + "' cannot be read: " + reason);
}

TEST(Idx, ReadsImagesLabelsAndUses) {
  const TemporaryFolder folder;
  write_all(folder);
  const auto data = open_dataset(folder.path());
  ASSERT_EQ(data->size(), 5u);
  EXPECT_EQ(data->shape(), (Shape{1, 1, 2, 4}));
  EXPECT_EQ(data->classes(), (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_EQ(data->sample(2).name, "train/00002");
  EXPECT_EQ(data->sample(2).label, 3);
  EXPECT_EQ(data->sample(4).label, 1);
  Bytes scratch(8);
  EXPECT_EQ(data->read(2, scratch.data())[3], 10 + 2 * 8 + 3);
  EXPECT_EQ(data->read(4, scratch.data())[0], 108);
  const Split parts = split(data, 0.5);
  EXPECT_EQ(parts.train.samples, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(parts.test.samples, (std::vector<std::uint32_t>{3, 4}));
}

TEST(Idx, WithoutATestPartSomeIsSetAside) {
  const TemporaryFolder folder;
  write_bytes(folder / "train-images-idx3-ubyte", idx({20, 2, 2}, 0));
  Bytes labels = idx({20}, 0);
  for (std::size_t i = 8; i < labels.size(); ++i) labels[i] &= 1;
  write_bytes(folder / "train-labels-idx1-ubyte", labels);
  const Split parts = split(open_dataset(folder.path()), 0.2);
  EXPECT_EQ(parts.train.size(), 16u);
  EXPECT_EQ(parts.test.size(), 4u);
}

TEST(Idx, SaysWhatIsWrong) {
  const std::string images = "train-images-idx3-ubyte", labels = "train-labels-idx1-ubyte";
  Bytes file = idx({3, 2, 4}, 0);
  file[0] = 1;
  expect_refusal(images, file, "it is no IDX file");
  expect_refusal(images, {}, "it is no IDX file");
  file = idx({3, 2, 4}, 0);
  file[2] = 0x0D;
  expect_refusal(images, file,
                 "it is an IDX file of element type 13 and rank 3; needed are type 8 (bytes) and "
                 "rank 3");
  expect_refusal(images, idx({3}, 0),
                 "it is an IDX file of element type 8 and rank 1; needed are type 8 (bytes) and "
                 "rank 3");
  file = idx({3, 2, 4}, 0);
  file.pop_back();
  expect_refusal(images, file, "it holds 23 bytes, but its header announces 24");
  file.resize(10);
  expect_refusal(images, file, "it is truncated");
  expect_refusal(labels, idx({0}, 0), "its extent 0 is out of range");
  expect_refusal(images, idx({1, 1, 70000}, 0), "its extent 70000 is out of range");
  file = {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, 2, 3};
  expect_refusal("t10k-labels-idx1-ubyte", file, "the gzip file is truncated");
}

TEST(Idx, SaysWhatDoesNotFit) {
  const TemporaryFolder folder;
  write_all(folder);
  write_bytes(folder / "train-labels-idx1-ubyte", idx({4}, 0));
  EXPECT_EQ(refusal(folder), "IDX files do not fit: 3 images in '" +
                                 folder / "train-images-idx3-ubyte" + "', 4 labels in '" +
                                 folder / "train-labels-idx1-ubyte" + "'");
  write_all(folder);
  write_bytes(folder / "t10k-images-idx3-ubyte", idx({2, 4, 2}, 0));
  EXPECT_EQ(refusal(folder), "IDX files do not fit: images of 1x1x4x2 in '" +
                                 folder / "t10k-images-idx3-ubyte" +
                                 "', but of 1x1x2x4 to train on");
  std::filesystem::remove(folder / "t10k-images-idx3-ubyte");
  EXPECT_EQ(refusal(folder),
            "IDX file '" + folder / "t10k-images-idx3-ubyte" + "' (or with .gz) is missing");
}

TEST(Idx, ScalesAndColoursWhereAsked) {
  const TemporaryFolder folder;
  write_all(folder);
  DatasetOptions options;
  options.channels = 3;
  options.height = options.width = 4;
  const auto data = open_dataset(folder.path(), options);
  EXPECT_EQ(data->shape(), (Shape{1, 3, 4, 4}));
  EXPECT_EQ(data->sample(2).name, "train/00002");
  Bytes scratch(48);
  const std::uint8_t* pixels = data->read(0, scratch.data());
  // The source has the rows 10 11 12 13 and 14 15 16 17; the new rows between them lie at a quarter
  // and at three quarters.
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(pixels[16 * c], 10);
    EXPECT_EQ(pixels[16 * c + 4], 11);
    EXPECT_EQ(pixels[16 * c + 8 + 3], 16);
    EXPECT_EQ(pixels[16 * c + 12 + 3], 17);
  }
  EXPECT_NE(data->digest(), open_dataset(folder.path())->digest());
}

TEST(Idx, FashionMnist) {
  const std::string packaged = "usr/share/datasets/fashion-mnist";
  const std::string unpacked = ".deps/" + packaged;  // make deps puts it there without root.
  const std::string folder = IdxDataset::is_there(unpacked) ? unpacked : "/" + packaged;
  if (!IdxDataset::is_there(folder)) {
    GTEST_SKIP() << "Fashion-MNIST is not in " << folder << " (package dataset-fashion-mnist)";
  }
  const auto data = open_dataset(folder);
  EXPECT_EQ(data->shape(), (Shape{1, 1, 28, 28}));
  EXPECT_EQ(data->classes().size(), 10u);
  const Split parts = split(data);
  ASSERT_EQ(parts.train.size(), 60000u);
  ASSERT_EQ(parts.test.size(), 10000u);
  std::vector<int> members(10);
  for (std::uint32_t i : parts.train.samples) {
    ++members[static_cast<std::size_t>(data->sample(i).label)];
  }
  EXPECT_EQ(members, std::vector<int>(10, 6000));
  // The reader that the data set's authors publish prints these labels.
  const int first_train[] = {9, 0, 0, 3, 0, 2, 7, 2, 5, 5};
  const int first_test[] = {9, 2, 1, 1, 6, 1, 4, 6, 5, 7};
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(data->sample(parts.train.samples[i]).label, first_train[i]);
    EXPECT_EQ(data->sample(parts.test.samples[i]).label, first_test[i]);
  }
  double sum = 0, squares = 0;
  for (std::uint32_t i : parts.train.samples) {
    const std::uint8_t* pixels = data->read(i, nullptr);
    for (std::size_t j = 0; j < 784; ++j) {
      sum += pixels[j];
      squares += static_cast<double>(pixels[j]) * pixels[j];
    }
  }
  const double count = 60000.0 * 784, mean = sum / count / 255;
  const double stddev = std::sqrt(squares / count / 255 / 255 - mean * mean);
  EXPECT_NEAR(mean, Normalisation::standard(1).mean[0], 1e-4);
  EXPECT_NEAR(stddev, Normalisation::standard(1).stddev[0], 1e-4);
}

}  // namespace
}  // namespace duplex::datasets
