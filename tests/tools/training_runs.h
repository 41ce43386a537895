// Training runs of the program, alone and together, on images that are drawn in a moment.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/files/safetensors.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"

namespace duplex::tools::testing {

using Weights = std::map<std::string, std::vector<float>>;

inline Weights read_weights(const std::string& path) {
  const SafetensorsFile file(path);
  Weights weights;
  for (const SafetensorsEntry& entry : file.entries()) {
    auto& values = weights[entry.name];
    values.resize(static_cast<std::size_t>(entry.shape.elements()));
    file.read(entry, values.data());
  }
  return weights;
}

class TrainingRuns : public ::testing::Test {
 protected:
  TrainingRuns() { write_squares(data_.path(), 96, 20); }

  std::vector<std::string> arguments(const std::string& command, const std::string& name, int batch,
                                     const std::vector<std::string>& more) const {
    return arguments_on(data_.path(), command, name, batch, more);
  }

  std::vector<std::string> arguments_on(const std::string& data, const std::string& command,
                                        const std::string& name, int batch,
                                        const std::vector<std::string>& more) const {
    // `local` takes no directory that has been used.
    if (command == "local") std::filesystem::remove_all(folder_ / name);
    std::vector<std::string> all{command,    "--datadir",    data,
                                 "--logdir", folder_ / name, "--threads",
                                 "1",        "--batch",      std::to_string(batch)};
    if (std::find(more.begin(), more.end(), "--net") == more.end())
      all.insert(all.end(), {"--net", "lenet"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Weights alone(int batch, const std::vector<std::string>& more) const {
    const std::string name = "alone" + std::to_string(++runs_);
    const Result result = run(arguments("local", name, batch, more));
    EXPECT_EQ(result.exit, 0) << result.err;
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }

  /// Starts all ranks of a training. `keep`: what is in its directory stays.
  std::vector<Process> start(const std::string& name, int ranks, int batch,
                             const std::vector<std::string>& more, bool keep = false) const {
    if (!keep) std::filesystem::remove_all(folder_ / name);
    write_text(folder_ / (name + ".nodes"), nodes_here(ranks));
    std::vector<Process> processes;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> own = more;
      own.insert(own.end(), {"--job", name});
      if (std::find(more.begin(), more.end(), "--timeout") == more.end())
        own.insert(own.end(), {"--timeout", "20"});
      own.insert(own.end(),
                 {"--nodefile", folder_ / (name + ".nodes"), "--index", std::to_string(rank)});
      processes.emplace_back(arguments("dist", name, batch, own));
    }
    return processes;
  }

  Weights together(int ranks, int batch, const std::vector<std::string>& more) const {
    const std::string name = "together" + std::to_string(++runs_);
    for (Process& process : start(name, ranks, batch, more)) {
      const Result result = process.wait();
      EXPECT_EQ(result.exit, 0) << result.err;
    }
    return read_weights(folder_ / (name + "/checkpoint.safetensors"));
  }

  /// Writes a small network with batch normalisation, and returns the path: its running statistics
  /// are as good as those of the large ones.
  std::string network_with_statistics() const {
    const std::string path = folder_ / "statistics.net";
    write_text(path,
               "network Statistics\ninput 28x28x1\nclasses 10\n"
               "conv1 conv 5x5/2 same, 8 filters, no bias\nnorm1 batch norm, relu\n"
               "conv2 conv 3x3/2 same, 16 filters, no bias\nnorm2 batch norm, relu\n"
               "pool avg pool whole map\nfc linear classes outputs\nsoftmax softmax\nend\n");
    return path;
  }

  /// Writes a nodefile for two ranks, "nodes".
  void write_two_nodes() const { write_text(folder_ / "nodes", nodes_here(2)); }

  TemporaryFolder data_, folder_;
  mutable int runs_ = 0;
};

}  // namespace duplex::tools::testing
