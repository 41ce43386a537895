// The bytes of the protocol: golden frames, and PROTOCOL.md's tables against the code.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include "net/connection/connection.h"
#include "net/wire/frame.h"
#include "tests/net/protocol_page.h"

namespace duplex::net {
namespace {

using HeaderBytes = std::array<std::uint8_t, header_bytes>;

/// The header as a frame stream writes it.
HeaderBytes bytes_of(const FrameHeader& header) {
  HeaderBytes bytes;
  std::memcpy(bytes.data(), &header, header_bytes);
  return bytes;
}

TEST(Frame, GoldenBytes) {
  FrameHeader header;
  header.kind = FrameKind::gradient;
  header.coding = Coding::fp16;
  header.parameter = 0x01020304;
  header.chunk = 0x05060708;
  header.step = 0x1112131415161718;
  header.length = 0x2122232425262728;
  const HeaderBytes golden{'D',  'X',  'P',  'L',  0x06, 0x00, 0x11, 0x02, 0x04, 0x03, 0x02,
                           0x01, 0x08, 0x07, 0x06, 0x05, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13,
                           0x12, 0x11, 0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
  EXPECT_EQ(bytes_of(header), golden);
  FrameHeader read;
  std::memcpy(&read, golden.data(), header_bytes);
  EXPECT_EQ(read.magic, frame_magic);
  EXPECT_EQ(read.version, protocol_version);
  EXPECT_EQ(read.kind, FrameKind::gradient);
  EXPECT_EQ(read.coding, Coding::fp16);
  EXPECT_EQ(read.parameter, header.parameter);
  EXPECT_EQ(read.chunk, header.chunk);
  EXPECT_EQ(read.step, header.step);
  EXPECT_EQ(read.length, header.length);
}

/// The example of a map in PROTOCOL.md.
TEST(Frame, MapGoldenBytes) {
  std::ifstream page("net/PROTOCOL.md");
  std::string line;
  while (std::getline(page, line) &&
         line.rfind("As an example, part 1 of 3 of micro-batch 2", 0) != 0) {
  }
  const std::size_t begin = line.find('`') + 1, end = line.find('`', begin);
  ASSERT_NE(end, std::string::npos) << "there is no such example";
  std::istringstream words(line.substr(begin, end - begin));
  HeaderBytes golden{};
  unsigned byte = 0;
  std::size_t count = 0;
  for (; words >> std::hex >> byte && count < golden.size(); ++count)
    golden[count] = static_cast<std::uint8_t>(byte);
  EXPECT_EQ(count, golden.size());
  FrameHeader header;
  header.kind = FrameKind::map;
  header.coding = Coding::float32;
  header.parameter = 5;      // The route.
  header.chunk = 2 * 3 + 1;  // Message 2 has chunks 6, 7 and 8.
  header.step = 7;
  header.length = 2 * sizeof(float);
  EXPECT_EQ(bytes_of(header), golden);
}

TEST(Frame, AbortGoldenBytes) {
  const auto bytes = encode(AbortReason{"why", Exit::timed_out});
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0x04, 0, 0, 0, 0x03, 0, 0, 0, 'w', 'h', 'y'}));
  const AbortReason reason = decode_abort(bytes.data(), bytes.size());
  EXPECT_EQ(reason.text, "why");
  EXPECT_EQ(reason.code, Exit::timed_out);
  // A peer cannot end a run as a success, nor make up a code.
  for (const std::uint8_t code : {0, 5, 255}) {
    auto other = bytes;
    other[0] = code;
    EXPECT_EQ(decode_abort(other.data(), other.size()).code, Exit::failed);
  }
  EXPECT_LE(encode(AbortReason{std::string(5000, 'x'), Exit::failed}).size(), abort_limit);
}

TEST(Frame, PayloadsAreCheckedBeforeTheyAreBelieved) {
  const auto reads = [](std::vector<std::uint8_t> bytes) {
    std::uint32_t number = 0;
    std::string text;
    PayloadReader reader(bytes.data(), bytes.size());
    reader.number(number);
    reader.text(text);
    reader.done();
  };
  EXPECT_NO_THROW(reads({1, 0, 0, 0, 2, 0, 0, 0, 'a', 'b'}));
  EXPECT_THROW(reads({}), ProtocolError);
  EXPECT_THROW(reads({1, 0, 0}), ProtocolError);
  EXPECT_THROW(reads({1, 0, 0, 0, 2, 0, 0, 0, 'a'}), ProtocolError);                   // cut off
  EXPECT_THROW(reads({1, 0, 0, 0, 2, 0, 0, 0, 'a', 'b', 'c'}), ProtocolError);         // left over
  EXPECT_THROW(reads({1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 'a', 'b'}), ProtocolError);  // 4 GiB
  std::vector<std::uint8_t> long_text{1, 0, 0, 0, 0x01, 0x04, 0, 0};
  long_text.resize(long_text.size() + 1025, 'x');
  EXPECT_THROW(reads(long_text), ProtocolError);
}

TEST(Protocol, TheHeadersTableIsTheHeader) {
  const auto rows = table_of("Header");
  ASSERT_EQ(rows.size(), 8U);
  FrameHeader blank;
  blank.magic = 0;
  blank.version = 0;
  blank.kind = FrameKind{0};
  std::size_t expected_offset = 0;
  for (const auto& row : rows) {
    const std::size_t offset = std::stoul(row[0]), bytes = std::stoul(row[1]);
    EXPECT_EQ(offset, expected_offset) << row[2];
    expected_offset += bytes;
    FrameHeader header = blank;
    if (row[2] == "magic")
      header.magic = 0xffffffffU;
    else if (row[2] == "version")
      header.version = 0xffff;
    else if (row[2] == "kind")
      header.kind = FrameKind{0xff};
    else if (row[2] == "coding")
      header.coding = Coding{0xff};
    else if (row[2] == "parameter")
      header.parameter = 0xffffffffU;
    else if (row[2] == "chunk")
      header.chunk = 0xffffffffU;
    else if (row[2] == "step")
      header.step = ~std::uint64_t{0};
    else if (row[2] == "length")
      header.length = ~std::uint64_t{0};
    else
      ADD_FAILURE() << "unknown field " << row[2];
    const HeaderBytes encoded = bytes_of(header);
    for (std::size_t i = 0; i < encoded.size(); ++i)
      EXPECT_EQ(encoded[i], i >= offset && i < offset + bytes ? 0xff : 0)
          << row[2] << ", byte " << i;
  }
  EXPECT_EQ(expected_offset, header_bytes);
}

TEST(Frame, TextsOfPeersSteerNoTerminal) {
  const auto clean = [](const char* text) { return printable(text); };
  EXPECT_EQ(clean("rank 0: caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80, 100 %"),
            "rank 0: caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80, 100 %");
  EXPECT_EQ(clean("\x1b[2J\x07\n\r\t\x7f"), "?[2J?????");
  EXPECT_EQ(clean("\xc2\x9b"
                  "31m"),
            "??31m")
      << "U+009B is an escape sequence of its own";
  EXPECT_EQ(clean("\x9b"
                  "31m"),
            "?31m");
  EXPECT_EQ(clean("\xe0\x82\x9b"), "???") << "a longer form of the same";
  EXPECT_EQ(clean("\xc1\x9b \xe2\x82"), "?? ??") << "no UTF-8";
  EXPECT_EQ(clean("\xc2\xa0"), "\xc2\xa0");
}

TEST(Protocol, TheKindsTableNamesEveryKind) {
  std::set<int> numbers;
  for (const auto& row : table_of("Kinds")) {
    const int number = std::stoi(row[0]);
    numbers.insert(number);
    EXPECT_EQ(name_of(static_cast<FrameKind>(number)), row[1]);
  }
  for (int number = 0; number < 256; ++number)
    EXPECT_EQ(name_of(static_cast<FrameKind>(number)).rfind("kind ", 0) != 0,
              numbers.count(number) == 1)
        << number;
}

TEST(Protocol, TheCodingsTableNamesEveryCoding) {
  const auto table = table_of("Codings");
  ASSERT_EQ(table.size(), 4U);
  for (const auto& row : table) EXPECT_EQ(name_of(static_cast<Coding>(std::stoi(row[0]))), row[1]);
  EXPECT_FALSE(coding_of(name_of(static_cast<Coding>(table.size()))));
}

TEST(Protocol, TheLimitsStandThere) {
  std::ifstream page("net/PROTOCOL.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  EXPECT_NE(text.find("# The protocol between ranks, version " + std::to_string(protocol_version)),
            std::string::npos);
  EXPECT_NE(text.find("at most " + std::to_string(PayloadReader::text_limit)), std::string::npos);
  EXPECT_EQ(Connection::report_part, std::uint64_t{1} << 20);
  EXPECT_EQ(Connection::report_limit, std::uint64_t{256} << 20);
  EXPECT_NE(text.find("at most 1 MiB"), std::string::npos);
}

}  // namespace
}  // namespace duplex::net
