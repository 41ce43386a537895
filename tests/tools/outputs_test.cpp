// A command writes over none of the files that it reads, however they are named.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {
namespace {

namespace fs = std::filesystem;

class Outputs : public ::testing::Test {
 protected:
  /// Expects one line of a usage error that has `part`, and that `file` stays as it is.
  void expect_refused(const std::vector<std::string>& words, const std::string& file,
                      const std::string& part) {
    const std::string before = read_text(file);
    const Result result = run(words);
    EXPECT_EQ(result.exit, 2) << words[0] << " " << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_TRUE(read_text(file) == before) << words[0];
  }

  /// Other names of a file: with "." and "..", by a symbolic link, by a hard one.
  std::vector<std::string> names_of(const std::string& file) {
    fs::remove(folder / "symbolic");
    fs::remove(folder / "hard");
    fs::create_symlink(file, folder / "symbolic");
    fs::create_hard_link(file, folder / "hard");
    return {file, folder / "./sub/.." + file.substr(folder.path().size()), folder / "symbolic",
            folder / "hard"};
  }

  void SetUp() override {
    fs::create_directory(folder / "sub");
    ASSERT_EQ(run({"nets", "lenet", "--output", net}).exit, 0);
    ASSERT_EQ(run({"onnx", "export", "--net", net, "--output", onnx}).exit, 0);
    ASSERT_EQ(
        run({"onnx", "import", onnx, "--output", folder / "again.net", "--save", weights}).exit, 0);
  }

  TemporaryFolder folder;
  const std::string net = folder / "lenet.net", onnx = folder / "lenet.onnx",
                    weights = folder / "lenet.safetensors";
};

TEST_F(Outputs, OfOnnxAreNotItsInputs) {
  for (const std::string& name : names_of(onnx)) {
    expect_refused({"onnx", "import", onnx, "--output", name}, onnx, "that FILE names");
    expect_refused({"onnx", "import", onnx, "--output", folder / "new.net", "--save", name}, onnx,
                   "that FILE names");
  }
  EXPECT_FALSE(fs::exists(folder / "new.net"));
  for (const std::string& name : names_of(weights))
    expect_refused({"onnx", "export", "--net", net, "--weights", weights, "--output", name},
                   weights, "that --weights names");
  expect_refused({"onnx", "export", "--net", net, "--output", net}, net, "that --net names");
}

TEST_F(Outputs, OfNetworksAreNotTheirFiles) {
  for (const char* flag : {"--output", "--svg", "--dot"})
    for (const std::string& name : names_of(net))
      expect_refused({"nets", net, flag, name}, net, "that --net names");
  expect_refused({"nets", net, "--svg", folder / "a", "--dot", folder / "sub/../a"}, net,
                 "need a file each");
  for (const char* flag : {"--svg", "--hypergraph"})
    expect_refused({"partition", "--net", net, "--workers", "2", flag, net}, net,
                   "that --net names");
  // A network of the program is no file, even where there is one of its name.
  fs::create_directory(folder / "lenet");
  EXPECT_EQ(run({"nets", "lenet", "--output", net}).exit, 0);
}

TEST_F(Outputs, OfTrainingsAndPlansAreNotTheirInputs) {
  expect_refused({"local", "--net", net, "--datadir", folder.path(), "--save", net}, net,
                 "that --net names");
  expect_refused({"estimate", "--net", net, "--rate", "1Gbit/s", "--t-grad", "1", "--workers", "2",
                  "--output", "plot", "--file", net},
                 net, "that --net names");
  std::vector<std::string> plan{"plan", "--net", net, "--t-grad", "1", "--rate", "1Gbit/s"};
  expect_refused(plus(plan, {"--machines", "2", "--file", net}), net, "that --net names");
  const std::string nodes = folder / "plan.json.nodes";
  write_text(nodes, "a\nb\n");
  expect_refused(plus(plan, {"--nodefile", nodes, "--file", folder / "plan.json"}), nodes,
                 "that --nodefile names");
  EXPECT_FALSE(fs::exists(folder / "plan.json"));
  expect_refused({"probe", "--net", net, "--nodefile", nodes, "--index", "0", "--output", nodes},
                 nodes, "that --nodefile names");
}

TEST_F(Outputs, OfPackAreNotTheDataSet) {
  const std::string data = folder / "data", packed = folder / "packed";
  fs::create_directory(data);
  write_squares(data, 20, 10);
  const std::vector<std::string> pack{"pack", "--datadir", data, "--output"};
  const std::string images = data + "/train-images-idx3-ubyte";
  for (const std::string& name : {images, data + "/../data/train-images-idx3-ubyte"})
    expect_refused(plus(pack, {name}), images, "is a file of the data set");
  ASSERT_EQ(run(plus(pack, {packed})).exit, 0);
  for (const std::string& name : names_of(packed))
    expect_refused({"pack", "--datadir", packed, "--output", name}, packed, "that --datadir names");
  // A packed file may lie beside its images, and be packed again.
  EXPECT_EQ(run(plus(pack, {data + "/packed"})).exit, 0);
  EXPECT_EQ(run(plus(pack, {data + "/packed"})).exit, 0);
}

TEST_F(Outputs, OfReportAreNoFilesOfRuns) {
  const std::string run_path = folder / "run", config = folder / "run/config.json";
  ASSERT_EQ(run({"simulate", "--net", "lenet", "--t-grad", "0.02", "--rate", "100Mbit/s",
                 "--workers", "2", "--batches", "4", "--logdir", run_path})
                .exit,
            0);
  for (const std::string& name : names_of(config))
    if (name != folder / "hard")
      expect_refused({"report", run_path, "--output", name}, config, "and no page");
  EXPECT_EQ(run({"report", run_path}).exit, 0);
  EXPECT_EQ(run({"report", run_path}).exit, 0);  // It replaces a page.
}

}  // namespace
}  // namespace duplex::tools::testing
