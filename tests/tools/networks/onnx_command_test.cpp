// duplex onnx, as a user gives it: what it refuses in one line, and leaves nothing half-done.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {
namespace {

class OnnxCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(run({"onnx", "export", "--net", "lenet", "--output", file}).exit, 0);
  }
  TemporaryFolder folder;
  const std::string file = folder / "lenet.onnx", net = folder / "lenet.net",
                    weights = folder / "lenet.safetensors";
};

TEST_F(OnnxCommand, SaysInOneLineWhatANodeIsCalled) {
  std::string text = read_text(file);
  for (std::size_t at = 0; (at = text.find("MaxPool", at)) != std::string::npos; ++at)
    text.replace(at, 7, "Max\n\x1b[m");
  write_text(file, text);
  const Result result = run({"onnx", "import", file, "--output", net});
  EXPECT_EQ(result.exit, 1);
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_NE(result.err.find("node 'pool1' (Max??[m)"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(net));
}

TEST_F(OnnxCommand, NetworkAndWeightsNeedAFileEach) {
  const Result result = run({"onnx", "import", file, "--output", net, "--save", net});
  EXPECT_EQ(result.exit, 2);
  EXPECT_NE(result.err.find("need a file each"), std::string::npos) << result.err;
  EXPECT_FALSE(std::filesystem::exists(net));
}

TEST_F(OnnxCommand, LeavesNoWeightsWithoutTheirNetwork) {
  const Result result =
      run({"onnx", "import", file, "--output", folder / "nowhere/lenet.net", "--save", weights});
  EXPECT_EQ(result.exit, 1);
  EXPECT_FALSE(std::filesystem::exists(weights));
  EXPECT_EQ(run({"onnx", "import", file, "--output", net, "--save", weights}).exit, 0);
  EXPECT_TRUE(std::filesystem::exists(net) && std::filesystem::exists(weights));
}

}  // namespace
}  // namespace duplex::tools::testing
