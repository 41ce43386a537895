// Tests safetensors files: round trips, a file that PyTorch's library wrote, and files whose
// headers do not fit.
#include "core/files/safetensors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "core/error.h"
#include "tests/temporary_folder.h"

namespace duplex {
namespace {

class Safetensors : public testing::Test {
 protected:
  std::string path(const std::string& name = "a.safetensors") const { return folder_ / name; }

  /// Writes a file with this JSON header (its length put before it) and this many bytes of data.
  std::string write(const std::string& header, std::size_t data_bytes) const {
    const std::uint64_t length = header.size();
    std::string content(reinterpret_cast<const char*>(&length), sizeof length);
    return write_raw(content + header + std::string(data_bytes, '\0'));
  }
  std::string write_raw(const std::string& content) const {
    std::ofstream(path(), std::ios::binary) << content;
    return path();
  }

  /// Returns the message of the error that opening the file throws.
  static std::string refusal(const std::string& file) {
    try {
      SafetensorsFile opened(file);
      return "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, Exit::failed);
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(file), std::string::npos) << error.what();
      return error.what();
    }
  }
  static void expect_refusal(const std::string& file, const std::string& why) {
    const std::string message = refusal(file);
    EXPECT_NE(message.find(why), std::string::npos) << message;
  }
  std::size_t files() const { return folder_.files().size(); }

 private:
  TemporaryFolder folder_;
};

/// Writes `arrays` in the order of `entries`.
void save(const std::string& path, const std::vector<SafetensorsEntry>& entries,
          const std::vector<std::vector<float>>& arrays,
          const std::map<std::string, std::string>& metadata = {}) {
  save_safetensors(path, entries, metadata, [&](std::size_t index, float* values) {
    std::copy(arrays[index].begin(), arrays[index].end(), values);
  });
}

TEST_F(Safetensors, RoundTripKeepsEveryBit) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float tiny = std::numeric_limits<float>::denorm_min();
  const std::vector<SafetensorsEntry> entries = {{"conv.weight", {2, 1, 1, 3}, 0},
                                                 {"scale", {}, 0},
                                                 {"none", {0, 5}, 0},
                                                 {"running \"mean\" \xc3\xa9", {4}, 0}};
  const std::vector<std::vector<float>> arrays = {
      {1.5F, -2.25F, nan, -std::numeric_limits<float>::infinity(), -0.0F, tiny},
      {7.0F},
      {},
      {0.1F, 0.2F, 0.3F, 0.4F}};
  const std::map<std::string, std::string> metadata = {{"epoch", "3"}, {"network", "tiny"}};
  save(path(), entries, arrays, metadata);

  const SafetensorsFile file(path());
  EXPECT_EQ(file.metadata(), metadata);
  ASSERT_EQ(file.entries().size(), entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const SafetensorsEntry& entry = file.entries()[i];
    EXPECT_EQ(entry.name, entries[i].name);
    EXPECT_EQ(entry.shape, entries[i].shape);
    std::vector<float> values(arrays[i].size());
    file.read(entry, values.data());
    for (std::size_t k = 0; k < values.size(); ++k) {
      EXPECT_EQ(std::memcmp(&values[k], &arrays[i][k], sizeof(float)), 0) << entry.name << " " << k;
    }
  }
  EXPECT_EQ(files(), 1U) << "a temporary file was left behind";
}

TEST_F(Safetensors, DataBeginsAtAMultipleOfEight) {
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    save(path(), {{name, {1}, 0}}, {{1.0F}});
    EXPECT_EQ(SafetensorsFile(path()).entries().at(0).offset % 8, 0U) << name;
  }
}

// Version 0.8.0 of PyTorch's library wrote this: safetensors.numpy.save of a (2, 1, 1, 3) array, a
// (2) array and a scalar, with metadata.
TEST_F(Safetensors, ReadsAFileOfPyTorchsLibrary) {
  const std::string header =
      R"({"__metadata__":{"network":"tiny"},)"
      R"("conv1.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("conv1.weight":{"dtype":"F32","shape":[2,1,1,3],"data_offsets":[8,32]},)"
      R"("scale":{"dtype":"F32","shape":[],"data_offsets":[32,36]}}      )";
  const unsigned char data[] = {0xcd, 0xcc, 0xcc, 0x3d, 0xcd, 0xcc, 0x4c, 0xbe, 0x00,
                                0x00, 0xc0, 0x3f, 0x00, 0x00, 0x10, 0xc0, 0x82, 0xa8,
                                0xfb, 0x37, 0x00, 0x00, 0x80, 0x7f, 0x00, 0x00, 0x00,
                                0x80, 0xca, 0x02, 0x00, 0x00, 0x00, 0x00, 0xe0, 0x40};
  write_raw(std::string("\xe8\0\0\0\0\0\0\0", 8) + header +
            std::string(reinterpret_cast<const char*>(data), sizeof data));

  const SafetensorsFile file(path());
  EXPECT_EQ(file.metadata(), (std::map<std::string, std::string>{{"network", "tiny"}}));
  ASSERT_EQ(file.entries().size(), 3U);
  const SafetensorsEntry& bias = file.entries()[0];
  const SafetensorsEntry& weight = file.entries()[1];
  const SafetensorsEntry& scale = file.entries()[2];
  EXPECT_EQ(bias.name, "conv1.bias");
  EXPECT_EQ(bias.shape, (Shape{2}));
  EXPECT_EQ(weight.name, "conv1.weight");
  EXPECT_EQ(weight.shape, (Shape{2, 1, 1, 3}));
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.shape, Shape());

  float values[6];
  file.read(bias, values);
  EXPECT_EQ(values[0], 0.1F);
  EXPECT_EQ(values[1], -0.2F);
  file.read(weight, values);
  const float expected[] = {1.5F,  -2.25F, 3.0e-5F, std::numeric_limits<float>::infinity(),
                            -0.0F, 1e-42F};
  EXPECT_EQ(std::memcmp(values, expected, sizeof expected), 0);
  file.read(scale, values);
  EXPECT_EQ(values[0], 7.0F);
}

// This program writes these bytes for such content, and PyTorch's library was seen to read them.
TEST_F(Safetensors, WritesTheBytesThatWereTriedWithPyTorchsLibrary) {
  save(path(), {{"conv1.bias", {2}, 0}, {"scale", {}, 0}}, {{0.1F, -0.2F}, {7.0F}},
       {{"network", "tiny"}});
  std::ifstream stream(path(), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  const std::string header = R"({"__metadata__":{"crc32c":"9442ccc4","network":"tiny"},)"
                             R"("conv1.bias":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                             R"("scale":{"dtype":"F32","shape":[],"data_offsets":[8,12]}}  )";
  ASSERT_EQ(header.size() % 8, 0U);
  EXPECT_EQ(content, std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') +
                         header + std::string("\xcd\xcc\xcc\x3d\xcd\xcc\x4c\xbe\0\0\xe0\x40", 12));
}

TEST_F(Safetensors, AChecksumFindsEveryFlippedBit) {
  save(path(), {{"a", {5}, 0}}, {{1.0F, 2.0F, 3.0F, 4.0F, 5.0F}});
  SafetensorsFile(path()).verify();
  std::ifstream stream(path(), std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t bit = 0; bit < 5 * 32; ++bit) {
    std::string damaged = content;
    char& byte = damaged[content.size() - 20 + bit / 8];
    byte = static_cast<char>(byte ^ (1 << bit % 8));
    write_raw(damaged);
    EXPECT_THROW(SafetensorsFile(path()).verify(), Error) << bit;
  }
}

TEST_F(Safetensors, KeepsMetadataThatIsNotUtf8Readable) {
  save(path(), {{"a", {1}, 0}}, {{1.0F}}, {{"datadir", "/data/\xff"}});
  EXPECT_EQ(SafetensorsFile(path()).metadata().at("datadir"), "/data/\xef\xbf\xbd");
}

TEST_F(Safetensors, RefusesWhatIsNoFile) {
  expect_refusal(path("missing"), "No such file or directory");
  expect_refusal(path("."), "not a regular file");
}

TEST_F(Safetensors, RefusesHeadersThatCannotBe) {
  expect_refusal(write_raw(""), "too short");
  expect_refusal(write_raw("1234567"), "too short");
  expect_refusal(write_raw("\x10" + std::string(7, '\0') + "{}"), "would have 16 bytes");
  expect_refusal(write_raw(std::string(8, '\xff') + "{}"), "would have 18446744073709551615 bytes");
  expect_refusal(write("{\"a\":", 0), "no JSON");
  expect_refusal(write("garbage!", 0), "no JSON");
  expect_refusal(write("[1, 2]", 0), "no JSON object");
  expect_refusal(write(std::string(100'000, '['), 0), "no JSON");
}

TEST_F(Safetensors, RefusesEveryPlaceWhereAFileMayBeCut) {
  save(path(), {{"a", {3}, 0}, {"b", {2, 2}, 0}}, {{1, 2, 3}, {1, 2, 3, 4}});
  std::ifstream stream(path(), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_NE(refusal(write_raw(whole.substr(0, bytes))), "opened") << bytes << " bytes";
  }
  EXPECT_EQ(refusal(write_raw(whole)), "opened");
}

TEST_F(Safetensors, RefusesArraysThatAreNoneOfOurs) {
  const auto expect = [&](const std::string& entry, std::size_t bytes, const std::string& why) {
    const std::string file = write("{\"w\":" + entry + "}", bytes);
    expect_refusal(file, why);
    expect_refusal(file, "'w'");
  };
  expect(R"({"dtype":"F16","shape":[4],"data_offsets":[0,8]})", 8, "F16; only F32");
  expect(R"({"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]})", 4, "5 extents");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})", 4, "do not fit its shape 2");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[0,8]})", 4, "file's length");
  expect(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", 8, "do not fit");
  expect(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", 8, "no whole number");
  expect(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})", 4, "no whole number");
  expect(R"({"dtype":"F32","shape":[true],"data_offsets":[0,4]})", 4, "no whole number");
  expect(R"({"dtype":"F32","shape":[1],"data_offsets":[-4,0]})", 4, "no whole number");
  expect(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,8]})", 4, "not two numbers");
  expect(R"({"dtype":"F32","shape":null,"data_offsets":[0,4]})", 4, "not a list");
  expect(R"({"dtype":"F32","shape":[1]})", 4, "not understood");
  expect(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})", 4, "not understood");
  expect(R"("F32")", 4, "not understood");
  // 2^32 * 2^32 * 4 bytes are 0 modulo 2^64.
  expect(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})", 0, "too large");
  expect(R"({"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]})", 4,
         "no whole number");
}

TEST_F(Safetensors, RefusesArraysThatOverlapOrLeaveGaps) {
  const std::string a = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  expect_refusal(write("{" + a + R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
                 "the bytes of 'b' overlap");
  expect_refusal(write("{" + a + R"(,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})", 16),
                 "the bytes of 'b' leave a gap");
  expect_refusal(write("{" + a + "}", 12), "4 bytes after the last array");
  expect_refusal(write("{" + a + "," + a + "}", 8), "names 'a' twice");
}

TEST_F(Safetensors, AllowsAnEmptyArrayBetweenTwo) {
  write(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
        R"("z":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]}})",
        8);
  const SafetensorsFile file(path());
  ASSERT_EQ(file.entries().size(), 3U);
  EXPECT_EQ(file.entries()[1].name, "z");
}

TEST_F(Safetensors, NoticesAFileThatShrinksWhileItIsRead) {
  save(path(), {{"a", {100}, 0}}, {std::vector<float>(100)});
  const SafetensorsFile file(path());
  std::filesystem::resize_file(path(), std::filesystem::file_size(path()) - 4);
  std::vector<float> values(100);
  EXPECT_THROW(file.read(file.entries()[0], values.data()), Error);
}

TEST_F(Safetensors, SaysWhereItCannotWrite) {
  try {
    save(path("missing/a.safetensors"), {{"a", {1}, 0}}, {{1.0F}});
    FAIL() << "written into a folder that is not there";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("missing/a.safetensors cannot be created: No such file"),
        std::string::npos)
        << error.what();
  }
}

// A limit on the size of files stands in for a disk without space: both make write() fail midway.
TEST_F(Safetensors, KeepsTheOldFileWhereTheNewOneDoesNotFit) {
  save(path(), {{"a", {1}, 0}}, {{42.0F}});
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {1 << 16, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    save(path(), {{"a", {1 << 17}, 0}}, {std::vector<float>(1 << 17, 1.0F)});
  } catch (const Error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);

  EXPECT_NE(message.find("a.safetensors cannot be written: File too large"), std::string::npos)
      << message;
  EXPECT_EQ(files(), 1U) << "the unfinished file was left behind";
  const SafetensorsFile file(path());
  float value = 0;
  file.read(file.entries()[0], &value);
  EXPECT_EQ(value, 42.0F);
}

}  // namespace
}  // namespace duplex
