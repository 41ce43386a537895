// Tests that packed files hold their source's samples, and that every damage to one is noticed.
#include "datasets/packed.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "datasets/folder.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;
using testing::CountedDataset;
using testing::draw_png;
using testing::error_of;
using testing::write_bytes;

PackResult pack(const Dataset& data, const std::string& path, bool strict = false) {
  return pack_dataset(data, path, 2, strict, [](std::uint64_t) {});
}

DatasetOptions small() {
  DatasetOptions options;
  options.height = 20;
  options.width = 24;
  return options;
}

std::string refusal(const std::string& path) {
  return error_of([&] { open_dataset(path); });
}

TEST(Packed, HoldsWhatTheFolderHolds) {
  const TemporaryFolder folder;
  for (unsigned i = 0; i < 9; ++i) {
    const std::string name =
        "images/" + std::string(i % 2 == 0 ? "even" : "odd") + "/" + std::to_string(i);
    const char* jpegs[] = {"large.jpg", "grey.jpg", "progressive.jpg"};
    if (i % 3 == 0) {
      write_bytes(folder / (name + ".jpg"), testing::recorded(jpegs[i / 3]));
    } else {
      write_bytes(folder / (name + ".png"),
                  draw_png(20 + 3 * static_cast<int>(i), 31, i, i == 4 ? 1 : 3));
    }
  }
  const auto source = open_dataset(folder / "images", small());
  const PackResult result = pack(*source, folder / "pack");
  EXPECT_EQ(result.packed, 9u);
  EXPECT_EQ(result.bytes, std::filesystem::file_size(folder / "pack"));
  const auto packed = open_dataset(folder / "pack");
  ASSERT_EQ(packed->size(), source->size());
  EXPECT_EQ(packed->shape(), source->shape());
  EXPECT_EQ(packed->classes(), source->classes());
  EXPECT_EQ(packed->digest(), source->digest());
  Bytes a(source->sample_bytes()), b(source->sample_bytes());
  for (std::size_t i = 0; i < packed->size(); ++i) {
    EXPECT_EQ(packed->sample(i).name, source->sample(i).name);
    EXPECT_EQ(packed->sample(i).label, source->sample(i).label);
    EXPECT_EQ(std::memcmp(packed->read(i, a.data()), source->read(i, b.data()), a.size()), 0) << i;
  }
  EXPECT_EQ(folder.files().size(), 10u) << "a temporary file is left";
}

TEST(Packed, LeavesOutWhatFailsToDecode) {
  const TemporaryFolder folder;
  const CountedDataset source(40, 4, {1, 3, 5, 7}, {0, 17, 18, 39});
  const PackResult result = pack(source, folder / "pack");
  EXPECT_EQ(result.packed, 36u);
  ASSERT_EQ(result.skipped.size(), 4u);
  EXPECT_EQ(result.skipped[1].name, "sample17");
  EXPECT_EQ(result.skipped[1].reason, "it is broken");
  const auto packed = open_dataset(folder / "pack");
  ASSERT_EQ(packed->size(), 36u);
  for (std::size_t i = 0; i < packed->size(); ++i) {
    const std::size_t original = std::stoul(packed->sample(i).name.substr(6));
    EXPECT_EQ(packed->sample(i).source_bytes, 100 + original);
    Bytes scratch(packed->sample_bytes());
    EXPECT_EQ(packed->read(i, scratch.data())[104], CountedDataset::value(original));
  }
  EXPECT_EQ(error_of([&] { pack(source, folder / "strict", true); }),
            "image 'sample0' of the counted set cannot be read: it is broken");
  EXPECT_EQ(folder.files(), (std::vector<std::string>{"pack"}));
}

/// A file that another program cuts while it is in use is an error, not the end of the program.
TEST(Packed, BecomesShorterWhileItIsInUse) {
  const TemporaryFolder folder;
  for (const char* name : {"images/a/1.png", "images/b/1.png"})
    write_bytes(folder / name, draw_png(20, 24, 1, 3));
  pack(*open_dataset(folder / "images", small()), folder / "pack");
  const auto packed = open_dataset(folder / "pack");
  Bytes scratch(packed->sample_bytes());
  packed->read(1, scratch.data());
  std::filesystem::resize_file(folder / "pack", 4096 + packed->sample_bytes());
  packed->read(0, scratch.data());
  EXPECT_NE(error_of([&] { packed->read(1, scratch.data()); }).find("became shorter"),
            std::string::npos);
}

TEST(Packed, AClassMustNotBecomeEmpty) {
  const TemporaryFolder folder;
  const CountedDataset source(6, 3, {1, 1, 2, 2}, {2, 3});
  EXPECT_EQ(error_of([&] { pack(source, folder / "pack"); }),
            "class 'class1' of the counted set holds no image that can be read");
  EXPECT_TRUE(folder.files().empty());
}

TEST(Packed, WhatStopsTheWorkLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_bytes(folder / "pack", {1, 2, 3});
  const CountedDataset source(40, 4, {1, 3, 50, 50});
  const auto stop = [](std::uint64_t) { throw Error("interrupted"); };
  EXPECT_EQ(error_of([&] { pack_dataset(source, folder / "pack", 1, false, stop); }),
            "interrupted");
  EXPECT_EQ(testing::read(folder / "pack"), (Bytes{1, 2, 3}));
  EXPECT_EQ(folder.files().size(), 1u);
}

/// While it lives, no file may grow beyond `bytes`.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST(Packed, NoSpaceIsAnErrorAndLeavesNothing) {
  const TemporaryFolder folder;
  const CountedDataset source(40, 4, {1, 3, 50, 50});
  std::string message;
  {
    const FileLimit limit(100000);
    message = error_of([&] { pack(source, folder / "pack"); });
  }
  EXPECT_EQ(message, folder / "pack" + " cannot be written: File too large");
  EXPECT_TRUE(folder.files().empty());
  EXPECT_EQ(error_of([&] { pack(source, folder / "nowhere/pack"); }),
            folder / "nowhere/pack" + " cannot be created: No such file or directory");
  EXPECT_EQ(error_of([&] { pack(source, folder.path()); }),
            folder.path() + " cannot be created: Is a directory");
  EXPECT_TRUE(folder.files().empty());
}

TEST(Packed, SaysBeforehandIfTheDiskIsTooSmall) {
  const TemporaryFolder folder;
  const CountedDataset source(std::size_t{1} << 20, 4, {1, 3, 16384, 16384});  // 0.8 PB.
  EXPECT_NE(error_of([&] { pack(source, folder / "pack"); }).find("bytes, and the disk has"),
            std::string::npos);
  EXPECT_TRUE(folder.files().empty());
}

class DamagedPack : public ::testing::Test {
 protected:
  DamagedPack() {
    pack(CountedDataset(6, 3, {1, 1, 4, 5}), folder_ / "pack");
    file_ = testing::read(folder_ / "pack");
  }
  std::string reason(const Bytes& content) const {
    write_bytes(folder_ / "damaged", content);
    const std::string before = "packed file '" + folder_ / "damaged" + "' cannot be read: ";
    const std::string message = refusal(folder_ / "damaged");
    return message.rfind(before, 0) == 0 ? message.substr(before.size()) : message;
  }

  TemporaryFolder folder_;
  Bytes file_;
};

TEST_F(DamagedPack, EveryBitOfTheHeaderCounts) {
  for (std::size_t at = 0; at < 52; ++at) {
    for (std::uint8_t bit = 1; bit != 0; bit = static_cast<std::uint8_t>(bit << 1)) {
      Bytes damaged = file_;
      damaged[at] ^= bit;
      EXPECT_NE(reason(damaged), "") << "byte " << at;
    }
  }
}

TEST_F(DamagedPack, EveryByteOfTheTableCounts) {
  for (std::size_t at = 4096 + 6 * 20; at < file_.size(); ++at) {
    Bytes damaged = file_;
    damaged[at] ^= static_cast<std::uint8_t>(1u << (at % 8));
    EXPECT_NE(reason(damaged), "") << "byte " << at;
  }
}

TEST_F(DamagedPack, AnotherLengthIsRefused) {
  for (std::size_t length : {std::size_t{8}, std::size_t{51}, std::size_t{52}, std::size_t{4096},
                             file_.size() - 1, file_.size() + 1}) {
    Bytes damaged = file_;
    damaged.resize(length);
    EXPECT_NE(reason(damaged), "") << length;
  }
  EXPECT_NE(reason({}).find("is not recognised"), std::string::npos);
}

TEST_F(DamagedPack, SaysWhatIsWrong) {
  EXPECT_EQ(reason(file_), "");
  Bytes damaged = file_;
  damaged[8] = 1;
  EXPECT_EQ(reason(damaged),
            "it has version 1 of the format, this program reads 2; pack the data set again");
  damaged = file_;
  damaged.pop_back();
  EXPECT_EQ(reason(damaged), "it has " + std::to_string(file_.size() - 1) +
                                 " bytes, but its header announces " +
                                 std::to_string(file_.size()));
  damaged = file_;
  damaged[12] = 2;
  EXPECT_EQ(reason(damaged), "its header is damaged");
  damaged = file_;
  damaged[40] ^= 1;
  EXPECT_EQ(reason(damaged), "its header or table is damaged");
}

/// Pixels are checked as they are read: the image is named, and what reads it goes on without it.
TEST_F(DamagedPack, EveryByteOfThePixelsCounts) {
  for (std::size_t at = 4096; at < 4096 + 6 * 20; ++at) {
    Bytes damaged = file_;
    damaged[at] ^= static_cast<std::uint8_t>(1u << (at % 8));
    write_bytes(folder_ / "damaged", damaged);
    const auto data = open_dataset(folder_ / "damaged");
    std::vector<std::uint8_t> scratch(data->sample_bytes());
    for (std::size_t i = 0; i < data->size(); ++i) {
      if (i == (at - 4096) / 20)
        EXPECT_THROW(data->read(i, scratch.data()), Error) << "byte " << at;
      else
        EXPECT_NO_THROW(data->read(i, scratch.data())) << "byte " << at;
    }
  }
}

TEST(Packed, TheFormatIsTheDocumentedOne) {
  const TemporaryFolder folder;
  pack(CountedDataset(2, 1, {1, 1, 1, 2}), folder / "pack");
  const Bytes file = testing::read(folder / "pack");
  const Bytes head{'D', 'U', 'P', 'L', 'P', 'A', 'C', 'K', 2, 0, 0, 0, 1, 0, 0, 0,
                   1,   0,   0,   0,   2,   0,   0,   0,   1, 0, 0, 0, 2, 0, 0, 0};
  ASSERT_EQ(file.size(), 4096u + 4 + 10 + 2 * (21 + 4 + 7));
  EXPECT_EQ(Bytes(file.begin(), file.begin() + 32), head);
  EXPECT_EQ(Bytes(file.begin() + 32, file.begin() + 40),
            (Bytes{static_cast<std::uint8_t>(file.size()),
                   static_cast<std::uint8_t>(file.size() >> 8), 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(Bytes(file.begin() + 52, file.begin() + 4096), Bytes(4044, 0));
  const Bytes rest{
      0, 0, 7, 7,                                               // Pixels.
      6, 0, 0, 0, 'c',  'l',  'a',  's',  's', '0',             // Class.
      0, 0, 0, 0, 0,    100,  0,    0,    0,   0,   0,   0, 0,  // Label, use, size.
      0, 0, 0, 0, 0xD2, 0x77, 0x61, 0xF1,  // Checksums in the source and of the pixels.
      7, 0, 0, 0, 's',  'a',  'm',  'p',  'l', 'e', '0',        //
      0, 0, 0, 0, 0,    101,  0,    0,    0,   0,   0,   0, 0,  //
      0, 0, 0, 0, 0x7C, 0xDA, 0xC6, 0x5F,                       //
      7, 0, 0, 0, 's',  'a',  'm',  'p',  'l', 'e', '1'};
  EXPECT_EQ(Bytes(file.begin() + 4096, file.end()), rest);
}

}  // namespace
}  // namespace duplex::datasets
