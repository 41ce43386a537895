// A network's file that is no network, or asks for too much, gets one line with its place and what
// was expected there.
#include <gtest/gtest.h>

#include "core/error.h"
#include "models/file/reader.h"

namespace duplex {
namespace {

using models::ModelOptions;

std::string message(const std::string& text, const ModelOptions& options = {}) {
  try {
    models::file::read_network(text, "net.txt", options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage) << error.what();
    return error.what();
  }
  return "it was read";
}

/// A file whose layers are these lines, which begin in line 4.
std::string unended(const std::string& lines) {
  return "network N\ninput 8x8x3\nclasses 4\n" + lines;
}

/// The same with an end.
std::string with_layers(const std::string& lines) {
  const std::string end = "\nend\n";
  const bool ends =
      lines.size() > end.size() && lines.compare(lines.size() - end.size(), end.size(), end) == 0;
  return unended(lines) + (ends ? "" : end);
}

TEST(NetworkFileErrors, AFileThatIsNoNetworkIsToldWhereAndWhy) {
  struct Case {
    std::string text, place, why;
  };
  const std::string tail = "fc linear classes outputs\nloss softmax\nend\n";
  const std::vector<Case> cases{
      {"", "1:1", "expected a line such as 'network LeNet', but the file ends"},
      {"conv1 conv", "1:1", "'network LeNet', not 'conv1'"},
      {"network", "1:8", "expected the network's name, but the line ends"},
      {"network N\ninput 8x9x3\n", "2:7", "224x224x3, the first two alike"},
      {"network N\ninput 99999x99999x3\n", "2:7", "at most 4096"},
      {"network N\ninput 4096x4096x1000\nend\n", "1:9", "more than 2^31 values"},
      {"network N\ninput 8x8x3\n\x01", "3:1", "a byte that no text has"},
      {"network N\ninput 8x8x3 # \xff", "2:15", "a byte that no text has"},
      // A terminal would take these for commands.
      {"network N\x7f\ninput 8x8x3\n", "1:10", "a byte that no text has"},
      {"network N\xc2\x9b"
       "2J\ninput 8x8x3\n",
       "1:10", "a byte that no text has"},
      {"network N\rM\r\ninput 8x8x3\n", "1:10", "a byte that no text has"},
      {with_layers("c convolution 3x3"), "4:3",
       "what kind of layer 'c' is (conv, linear, max pool"},
      {with_layers("c max 3x3"), "4:3", "not 'max'"},
      {with_layers("c conv"), "4:7", "a square window such as 3x3"},
      {with_layers("c conv 3x5 same"), "4:8", "a square window"},
      {with_layers("c conv 3x3, 8 filters"), "4:13", "'same', 'valid' or 'pad'"},
      {with_layers("c conv 3x3 same, x filters"), "4:18", "from 1 to 1048576, not 'x'"},
      {with_layers("c conv 3x3 same, 0 filters"), "4:18", "how many filters (or 'classes')"},
      {with_layers("c conv 3x3 same, 8 outputs"), "4:20", "'filters' behind their number"},
      {with_layers("c conv 3x3 same, 8 filters, relu, no bias"), "4:35", "in this order"},
      {with_layers("c conv 9x9 valid, 8 filters\n" + tail), "4:1", "larger input"},
      {with_layers("c conv 3x3 same, 8 filters, groups 2\n" + tail), "4:1", "groups do not divide"},
      {with_layers("c dropout 100%"), "4:11", "below 100%"},
      {with_layers("c dropout 99.99999999%"), "4:11", "below 100%"},
      {with_layers("c lrn size 4"), "4:12", "the size has to be odd"},
      {with_layers("c batch norm momentum 5 relu"), "4:23", "momentum has to be from 0 to 1"},
      {with_layers("c batch norm epsilon 2"), "4:22", "epsilon has to be from 0 to 1"},
      {with_layers("c lrn beta x"), "4:12", "beta, a number such as 0.75, not 'x'"},
      {with_layers("f linear 4 outputs\nc conv 3x3 same, 8 filters\n" + tail), "5:1", "not N x C"},
      {with_layers("a conv 3x3 same, 8 filters\nb conv 1x1/2 same, 8 filters\nc add from a, b\n" +
                   tail),
       "6:1", "1x8x8x8 and 1x8x4x4 differ"},
      {with_layers("a conv 3x3 same, 8 filters\nb conv 1x1/2 same, 8 filters\n"
                   "c concat from a, b\n" +
                   tail),
       "6:1", "do not match"},
      {with_layers("c concat"), "4:1", "two layers or more"},
      {with_layers("c conv 1x1 same, 3 filters\nd add from c, c"), "5:15", "reads this twice"},
      {with_layers("c relu from d\nd relu from c\n" + tail), "4:13",
       "'d' is not above this line but in line 5; a layer reads what is above it, so that a "
       "network has no loop"},
      {with_layers("c relu from c\n" + tail), "4:13", "no loop"},
      {with_layers("c relu from nothing\n" + tail), "4:13", "no layer or block 'nothing'"},
      {with_layers("c relu\nc relu\n" + tail), "5:1", "'c' is given twice; the first is in line 4"},
      {with_layers("repeat i = 1 to 2\nc relu\nend\n" + tail), "5:1", "as in conv{i}"},
      {unended("repeat i = 2 to 1\n"), "4:17", "from 2 to 4096"},
      {with_layers("c{i} relu\n" + tail), "4:1", "none around this line"},
      {with_layers("repeat i = 1 to 2\nc{j} relu\nend\n" + tail), "5:1", "(i), as it is"},
      {with_layers("end relu\n"), "4:5", "nothing behind 'end'"},
      {with_layers("start relu\n"), "4:1", "a meaning of its own"},
      {with_layers("a/b relu\n"), "4:1", "letters, digits"},
      {with_layers("c relu from start\n" + tail), "4:13", "no block is around"},
      {with_layers("block b\nend\n" + tail), "4:7", "has no layers"},
      {with_layers("block b\nblock c\nd relu\nend\nend\n" + tail), "5:7", "no block within it"},
      {unended("block b\nc relu\n"), "5:7", "without the 'end' of the block 'b' of line 4"},
      {unended("fc linear classes outputs\n"), "4:26", "without the network's 'end'"},
      {with_layers(tail + "more relu\n"), "7:1", "nothing comes behind its 'end'"},
      {with_layers("fc linear 4 outputs\nend\n"), "5:1", "softmax or squared error"},
      {with_layers("g avg pool whole map\nloss softmax\nend\n"), "6:1", "no weights to train"},
      {with_layers("a relu\nb relu from a\n" + std::string("c relu from a\n") + tail), "5:1",
       "no layer reads 'b'"},
      {with_layers(
           "f linear 5 outputs\nh softmax\ng linear classes outputs from f\ns softmax\nend\n"),
       "5:1", "5 classes, and the network's last layer has 4"},
      {with_layers("f linear 4 outputs\nh softmax\ng relu\nend\n"), "6:1", "say what it reads"},
      {with_layers("r relu, training only\nf linear 4 outputs\nloss softmax\nend\n"), "5:1",
       "runs in training only"},
      {"network N\ninput 8x8x3\nfc linear classes outputs\nend\n", "3:11",
       "'classes 10' below 'input'"},
  };
  for (const Case& each : cases) {
    const std::string text = message(each.text);
    EXPECT_EQ(text.rfind("net.txt:" + each.place + ": ", 0), 0U) << each.text << "\n" << text;
    EXPECT_NE(text.find(each.why), std::string::npos) << each.text << "\n" << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(NetworkFileErrors, AHostileFileIsRefusedBeforeAnythingOverflows) {
  const std::string tail = "fc linear classes outputs\nloss softmax\nend\n";
  const auto expect_refused = [](const std::string& text, const std::string& why) {
    const std::string said = message(text);
    EXPECT_NE(said.find(why), std::string::npos) << said;
  };
  std::string deep, ends;
  for (int i = 0; i < 100; ++i) {
    deep += "repeat " + std::string(1, static_cast<char>('a' + i % 26)) + " = 1 to 4096\n";
    ends += "end\n";
  }
  expect_refused(with_layers(deep + "c relu\n" + ends + tail), "nested more than 8");
  expect_refused(with_layers("repeat i = 1 to 4096\nrepeat k = 1 to 4096\nend\nend\n" + tail),
                 "go round too often");
  expect_refused(
      with_layers("repeat i = 1 to 100\nrepeat k = 1 to 100\nc{i}_{k} relu\nend\nend\n" + tail),
      "more than 4096 layers");
  expect_refused(
      with_layers("p pad channels to 1000000\nc conv 4096x4096 pad 4095, 1048576 filters\n" + tail),
      "more than 2^36 parameters");
  expect_refused(with_layers("c conv 1x1 pad 4096, 1048576 filters\n" + tail), "2^31 values");
  std::string doubling = "c0 conv 1x1 same, 1048576 filters\n";
  for (int i = 1; i <= 40; ++i)
    doubling += "r" + std::to_string(i) + " relu\nc" + std::to_string(i) + " concat from c" +
                std::to_string(i - 1) + ", r" + std::to_string(i) + "\n";
  expect_refused(with_layers(doubling + tail), "2^31 values");
  std::string many = "c concat from a";
  for (int i = 0; i < 300; ++i) many += ", a" + std::to_string(i);
  expect_refused(with_layers(many + "\n" + tail), "at most 256 others");
  expect_refused(std::string(200000, '#'), "longer than a network's file");
  expect_refused("network N\ninput 8x8x3\nfc linear 99999999999999999999 outputs\nend\n", "3:11");
}

TEST(NetworkFileErrors, ChoicesThatItCannotHaveAreRefused) {
  const std::string any = with_layers("fc linear classes outputs\nloss softmax\nend\n");
  ModelOptions options;
  options.auxiliary = true;
  EXPECT_NE(message(any, options).find("--auxiliary"), std::string::npos);
  options = {};
  options.classes = 12;
  EXPECT_EQ(message(any, options), "it was read");
  const std::string fixed = "network N\ninput 8x8x3\nfc linear 5 outputs\nloss softmax\nend\n";
  EXPECT_NE(message(fixed, options).find("has 5 classes, not 12; write 'classes'"),
            std::string::npos);
  options.classes = 5;
  EXPECT_EQ(message(fixed, options), "it was read");
}

}  // namespace
}  // namespace duplex
