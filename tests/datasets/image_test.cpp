// Compares images with what libjpeg and libpng found in them, and tests damage of every kind.
#include "datasets/decoding/image.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <string>
#include <thread>

#include "core/random.h"
#include "datasets/decoding/gzip.h"
#include "tests/datasets/files.h"

namespace duplex::datasets {
namespace {

using testing::Bytes;
using testing::error_of;
using testing::recorded;

struct Kind {
  const char* file;
  int tolerance;  ///< Decoders differ in how they round JPEG's colours, and in chroma between
                  ///< pixels.
};

class Recorded : public ::testing::TestWithParam<Kind> {};

TEST_P(Recorded, DecodesAsOtherDecodersDo) {
  const auto [name, tolerance] = GetParam();
  const Bytes file = recorded(name);
  const testing::PlainImage expected = testing::read_ppm(std::string(name) + ".ppm");
  const Image found = decode_image(file.data(), file.size(), 3);
  ASSERT_EQ(found.size.width, expected.width);
  ASSERT_EQ(found.size.height, expected.height);
  for (std::size_t i = 0; i < expected.pixels.size(); ++i) {
    ASSERT_NEAR(found.pixels.get()[i], expected.pixels[i], tolerance) << "at byte " << i;
  }
}

TEST_P(Recorded, CutShortAnywhereIsRefused) {
  const Bytes file = recorded(GetParam().file);
  for (std::size_t length = 0; length < file.size(); ++length) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_NE(error_of([&] { check_image(cut.data(), cut.size()); }), "") << length;
  }
}

// Damage inside a JPEG's pixel data cannot always be noticed, but it must neither crash nor give
// different pixels the next time.
TEST_P(Recorded, DamageIsRefusedOrDecodesTheSameEveryTime) {
  const Bytes file = recorded(GetParam().file);
  const RandomStream random(1, stream_of(GetParam().file));
  int refused = 0;
  constexpr int turns = 400;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    Bytes damaged = file;
    for (std::uint64_t i = 0; i <= turn % 4; ++i) {
      const std::uint64_t draw = 16 * turn + 2 * i;
      const std::uint32_t at = random.below(draw, static_cast<std::uint32_t>(file.size()));
      damaged[at] = static_cast<std::uint8_t>(random.below(draw + 1, 256));
    }
    Image first, second;
    const auto decode = [&](Image& to) {
      return error_of([&] { to = decode_image(damaged.data(), damaged.size(), 3); });
    };
    const std::string error = decode(first);
    ASSERT_EQ(decode(second), error);
    if (!error.empty()) {
      ++refused;
      continue;
    }
    ASSERT_EQ(first.size.width, second.size.width);
    const auto bytes = static_cast<std::size_t>(first.size.width * first.size.height * 3);
    ASSERT_EQ(std::memcmp(first.pixels.get(), second.pixels.get(), bytes), 0);
  }
  EXPECT_GT(refused, turns / 10);
}

INSTANTIATE_TEST_SUITE_P(Images, Recorded,
                         ::testing::Values(Kind{"baseline.jpg", 3}, Kind{"halved-chroma.jpg", 4},
                                           Kind{"progressive.jpg", 4}, Kind{"grey.jpg", 2},
                                           Kind{"cmyk.jpg", 4}, Kind{"colour.png", 0},
                                           Kind{"grey.png", 0}, Kind{"grey-alpha.png", 0},
                                           Kind{"alpha.png", 0}, Kind{"palette.png", 0},
                                           Kind{"bits.png", 0}, Kind{"sixteen-bits.png", 0},
                                           Kind{"interlaced.png", 0}),
                         [](const auto& info) {
                           std::string name = info.param.file;
                           for (char& letter : name) {
                             if (std::isalnum(static_cast<unsigned char>(letter)) == 0)
                               letter = '_';
                           }
                           return name;
                         });

TEST(Image, EveryFlippedByteOfAPngIsNoticed) {
  const Bytes file = recorded("colour.png");
  for (std::size_t at = 0; at < file.size(); ++at) {
    Bytes damaged = file;
    damaged[at] ^= 0x10;
    EXPECT_NE(error_of([&] { check_image(damaged.data(), damaged.size()); }), "") << at;
  }
}

TEST(Image, WhatFollowsTheEndDoesNoHarm) {
  for (const char* name : {"baseline.jpg", "colour.png"}) {
    Bytes file = recorded(name);
    file.insert(file.end(), 100, 0x5A);
    EXPECT_EQ(decode_image(file.data(), file.size(), 3).size.width, 19) << name;
  }
}

TEST(Image, GreyIsLuma) {
  const Bytes file = recorded("colour.png");
  const Image colour = decode_image(file.data(), file.size(), 3);
  const Image grey = decode_image(file.data(), file.size(), 1);
  for (int i = 0; i < 19 * 13; ++i) {
    const std::uint8_t* rgb = colour.pixels.get() + static_cast<std::ptrdiff_t>(3) * i;
    // This is the luma of Rec. 601.
    EXPECT_NEAR(grey.pixels.get()[i], 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2], 1.5);
  }
}

/// stb_image gives up at a block of the reserved kind without a reason, so that the reason of an
/// earlier image could be reported.
TEST(Image, AReservedDeflateBlockIsAnError) {
  const Bytes reserved = testing::png_around({0x78, 0x01, 0x07, 0, 0, 0, 0, 0, 0});
  const Bytes no_zlib = testing::png_around({0x00, 0x00, 0x07, 0, 0, 0, 0, 0, 0});
  check_image(reserved.data(), reserved.size());
  const auto failure = [](const Bytes& image) {
    return error_of([&] { decode_image(image.data(), image.size(), 3); });
  };
  const std::string expected = "it cannot be decoded (the decoder gives no reason)";
  std::thread([&] {  // A new thread has no earlier reason.
    EXPECT_EQ(failure(reserved), expected);
    EXPECT_EQ(failure(no_zlib).rfind("it cannot be decoded (", 0), 0U) << failure(no_zlib);
    EXPECT_NE(failure(no_zlib), expected);
    EXPECT_EQ(failure(reserved), expected);
  })
      .join();
}

/// Returns where the marker of the first segment of a JPEG with this marker begins.
std::size_t segment(const Bytes& file, std::uint8_t marker) {
  for (std::size_t at = 2; at + 4 < file.size(); at += 2 + (file[at + 2] << 8 | file[at + 3])) {
    if (file[at + 1] == marker) return at;
  }
  ADD_FAILURE() << "no segment " << int{marker};
  return 0;
}

std::string refusal(const Bytes& file) {
  return error_of([&] { check_image(file.data(), file.size()); });
}

TEST(Image, SaysWhatIsWrong) {
  const auto text = [](const char* content, std::size_t bytes) {
    return Bytes(content, content + bytes);
  };
  EXPECT_EQ(refusal({}), "it is empty");
  EXPECT_EQ(refusal(text("hello world", 11)), "it is neither a JPEG nor a PNG");
  EXPECT_EQ(refusal(text("GIF89a......", 12)), "it is a GIF, not a JPEG or PNG");
  EXPECT_EQ(refusal(text("RIFF....WEBPVP8 ", 16)), "it is a WebP, not a JPEG or PNG");
  EXPECT_EQ(refusal({'I', 'I', '*', 0, '.', '.', '.', '.', '.', '.', '.', '.'}),
            "it is a TIFF, not a JPEG or PNG");
  EXPECT_EQ(refusal(text("<!DOCTYPE html>", 15)), "it is a web page, not a JPEG or PNG");
  Bytes file = recorded("baseline.jpg");
  file.resize(file.size() - 2);
  EXPECT_EQ(refusal(file), "the JPEG is truncated");
  file = recorded("colour.png");
  file.resize(file.size() - 12);
  EXPECT_EQ(refusal(file), "the PNG is truncated");
  file = recorded("colour.png");
  file[file.size() - 20] ^= 1;
  EXPECT_EQ(refusal(file), "the PNG is corrupt: a checksum is wrong");
}

TEST(Image, RefusesWhatTheDecoderMustNotSee) {
  Bytes file = recorded("baseline.jpg");
  const std::size_t frame = segment(file, 0xC0);
  Bytes changed = file;
  changed[frame + 1] = 0xC9;
  EXPECT_NE(refusal(changed).find("arithmetic"), std::string::npos);
  changed = file;
  changed[frame + 4] = 12;
  EXPECT_EQ(refusal(changed), "it is a JPEG of 12 bits; 8 bits are read");
  changed = file;
  for (std::size_t at = frame + 5; at < frame + 9; ++at) changed[at] = 0xFF;
  EXPECT_EQ(refusal(changed), "it has 65535x65535 pixels, more than the limit of 67108864");
  changed = file;
  changed[frame + 5] = changed[frame + 6] = 0;
  EXPECT_EQ(refusal(changed), "it has no pixels");
  changed = file;
  const std::size_t table = segment(file, 0xC4);
  for (std::size_t at = table + 5; at < table + 21; ++at) changed[at] = 255;
  EXPECT_EQ(refusal(changed), "the JPEG's Huffman tables are corrupt");
  changed.assign(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(segment(file, 0xDA)));
  changed.push_back(0xFF);
  changed.push_back(0xD9);
  EXPECT_EQ(refusal(changed), "the JPEG has no pixel data");
}

void mend_header(Bytes& png) {
  const std::uint32_t sum = crc32(png.data() + 12, 17);
  for (std::size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
}

TEST(Image, RefusesHugePngs) {
  Bytes file = recorded("colour.png");
  file[16] = file[20] = 0x7F;
  mend_header(file);
  EXPECT_NE(refusal(file).find("more than the limit of 67108864"), std::string::npos);
}

// A header of some bytes would else take memory for all these pixels.
TEST(Image, RefusesMorePixelsThanTheFileCanHold) {
  Bytes file = recorded("baseline.jpg");
  const std::size_t frame = segment(file, 0xC0);
  file[frame + 5] = file[frame + 7] = 0x10;
  EXPECT_EQ(refusal(file), "it has 4115x4109 pixels, more than a file of " +
                               std::to_string(file.size()) + " bytes can hold");
  file = recorded("colour.png");
  file[18] = file[22] = 0x10;
  mend_header(file);
  EXPECT_NE(refusal(file).find("it has 4115x4109 pixels, more than"), std::string::npos);
}

TEST(Image, RefusesMoreScansThanAnImageNeeds) {
  for (const auto& [name, most] : {std::pair("baseline.jpg", "4"), {"progressive.jpg", "100"}}) {
    Bytes file = recorded(name);
    const auto scan = file.begin() + static_cast<std::ptrdiff_t>(segment(file, 0xDA));
    const Bytes header(scan, scan + 2 + scan[3]);
    file.resize(file.size() - 2);
    for (int i = 0; i < 100; ++i) file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), {0xFF, 0xD9});
    EXPECT_EQ(refusal(file), std::string("the JPEG has more than ") + most + " scans");
  }
}

TEST(Image, KnowsImagesByTheirNames) {
  for (const char* name : {"a.jpg", "001_0001.JPG", "b.c.jpeg", "x.Png", "y.gif"}) {
    EXPECT_TRUE(has_image_name(name)) << name;
  }
  for (const char* name : {"Thumbs.db", "RENAME2", "readme.txt", "jpg", "x.jpg.part"}) {
    EXPECT_FALSE(has_image_name(name)) << name;
  }
}

}  // namespace
}  // namespace duplex::datasets
