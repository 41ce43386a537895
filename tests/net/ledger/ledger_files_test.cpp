// The ledger's files: which steps they have, and what is said where they are not whole.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "net/ledger/ledger.h"
#include "tests/net/ledger/records.h"
#include "tests/temporary_folder.h"

namespace duplex::net {
namespace {

using testing::add_step;
using testing::record;

class LedgerFiles : public ::testing::Test {
 protected:
  const TemporaryFolder folder;
};

TEST_F(LedgerFiles, CsvInTheCoordinatorsTime) {
  const std::string path = folder / "ledger-3.csv";
  {
    LedgerSpec spec;
    spec.rank = 3;
    spec.time = {1000, 400, 5};
    spec.paths.frames = path;
    Ledger ledger(spec);
    FrameRecord r = record(FrameKind::gradient, true, 7, 50, 80, 132);
    r.queued = 40;
    r.peer = 2;
    r.parameter = 4;
    r.chunk = 1;
    r.saved = 128;
    ledger.lane().add(r);
    ledger.close();
  }
  std::ifstream file(path);
  std::string columns, row, more;
  std::getline(file, columns);
  std::getline(file, row);
  EXPECT_EQ(columns,
            "rank,direction,peer,kind,step,parameter,chunk,bytes,queued_ns,first_ns,last_ns,"
            "bytes_saved");
  EXPECT_EQ(row, "3,sent,2,gradient,7,4,1,132,640,650,680,128");
  EXPECT_FALSE(std::getline(file, more));
}

LedgerSpec written_to(const std::string& frames, const std::string& traffic) {
  LedgerSpec spec;
  spec.paths = {frames, traffic};
  return spec;
}

TEST_F(LedgerFiles, NoPlaceToWriteIsAnError) {
  EXPECT_THROW(Ledger{written_to(folder / "nowhere/ledger.csv", "")}, Error);
  EXPECT_THROW(Ledger{written_to("", folder / "nowhere/traffic.csv")}, Error);
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  for (const auto& [frames, traffic] : {std::pair{"/dev/full", ""}, std::pair{"", "/dev/full"},
                                        std::pair{"/dev/full", "/dev/full"}}) {
    Ledger ledger(written_to(frames, traffic));
    ledger.lane().add(record(FrameKind::gradient, true, 0, 0, 1));
    try {
      ledger.close();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("ledger /dev/full is incomplete"),
                std::string::npos);
    }
    EXPECT_EQ(ledger.kept().text.find("could not be written") != std::string::npos,
              frames != std::string());
  }
}

/// Lines of a file by the number in one of their columns, of those that have `word`.
std::map<std::uint64_t, int> lines_by(const std::string& path, int column,
                                      const std::string& word) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::map<std::uint64_t, int> lines;
  while (std::getline(file, line)) {
    if (line.find(word) == std::string::npos) continue;
    std::size_t begin = 0;
    for (int i = 0; i < column; ++i) begin = line.find(',', begin) + 1;
    ++lines[std::strtoull(line.c_str() + begin, nullptr, 10)];
  }
  return lines;
}

/// A run of 100 steps.
void write_steps(Ledger& ledger, int chunks, std::uint64_t steps = 100) {
  Ledger::Lane &sent = ledger.lane(), &received = ledger.lane();
  received.add(record(FrameKind::hello, false, 0, 0, 1));
  for (int chunk = 0; chunk < chunks; ++chunk)
    received.add(record(FrameKind::weights, false, 0, chunk, chunk + 1, 5, 1));
  for (std::uint64_t step = 0; step < steps; ++step) {
    add_step(sent, received, step, chunks);
    received.add(record(FrameKind::heartbeat, false, 3 * step, 0, 1));
    ledger.flush();
  }
  ledger.close();
}

TEST_F(LedgerFiles, HaveTheStepsThatWereAskedForAndAllSums) {
  struct Case {
    FrameSample sample;
    std::uint64_t every;  ///< 0: no step.
    const char* text;
  };
  using Rule = FrameSample::Rule;
  for (const Case& each : {Case{{}, 1, "all"}, Case{{Rule::every, 7}, 7, "every 7th step"},
                           Case{{Rule::none}, 0, "none"}}) {
    const std::string frames = folder / "ledger.csv", traffic = folder / "traffic.csv";
    LedgerSpec spec = written_to(frames, traffic);
    spec.sample = each.sample;
    std::vector<std::string> said;
    spec.log = [&](const std::string& line) { said.push_back(line); };
    Ledger ledger(spec);
    write_steps(ledger, 4);
    EXPECT_EQ(ledger.kept().text, each.text);
    const bool whole = each.every == 1;
    EXPECT_EQ(said.size(), whole ? 0U : 1U);
    for (const std::string& line : said)
      EXPECT_NE(line.find(traffic + " the sums of all"), std::string::npos) << line;
    // Frames of the handshake and heartbeats belong to no step.
    EXPECT_EQ(lines_by(frames, 4, "hello").size() == 1, whole);
    EXPECT_EQ(lines_by(frames, 4, "heartbeat").size() == 100, whole);
    const auto weights = lines_by(frames, 4, ",weights,"),
               gradients = lines_by(frames, 4, ",gradient,");
    for (std::uint64_t step = 0; step < 100; ++step) {
      const bool kept = each.every != 0 && step % each.every == 0;
      EXPECT_EQ(weights.count(step) > 0 ? weights.at(step) : 0, kept ? 4 : 0) << step;
      EXPECT_EQ(gradients.count(step) > 0 ? gradients.at(step) : 0, kept ? 4 : 0) << step;
    }
    const auto sums = lines_by(traffic, 0, "");
    ASSERT_EQ(sums.size(), 100U);
    for (const auto& [step, lines] : sums) EXPECT_EQ(lines, 1) << step;
    std::ifstream rows(traffic);
    std::string line;
    std::getline(rows, line);
    EXPECT_EQ(line, csv_columns<StepTraffic>());
    std::getline(rows, line);
    EXPECT_EQ(line, "0,12,20,4,4,4,0,0,0,0");
  }
}

/// More than the file keeps whole: 140 MB without the rule.
TEST_F(LedgerFiles, KeepFewerStepsOfALongRun) {
  const std::string frames = folder / "ledger.csv", traffic = folder / "traffic.csv";
  LedgerSpec spec = written_to(frames, traffic);
  std::vector<std::string> said;
  spec.log = [&](const std::string& line) { said.push_back(line); };
  Ledger ledger(spec);
  constexpr int chunks = 10000;
  write_steps(ledger, chunks, 140);
  const auto weights = lines_by(frames, 4, ",weights,"),
             gradients = lines_by(frames, 4, ",gradient,");
  for (const auto* kind : {&weights, &gradients})
    for (const auto& [step, lines] : *kind) EXPECT_EQ(lines, chunks) << step;
  EXPECT_EQ(said.size(), 1U);
  const std::vector<SampledStretch> stretches = ledger.kept().stretches;
  ASSERT_GE(stretches.size(), 3U);
  const std::uint64_t bytes = std::filesystem::file_size(frames);
  const std::uint64_t step_bytes = bytes / gradients.size(), thinned = stretches.size() - 1;
  EXPECT_GE(bytes, SampledSteps::whole_bytes + (thinned - 1) * SampledSteps::more_bytes);
  EXPECT_LE(bytes, SampledSteps::whole_bytes + thinned * SampledSteps::more_bytes + 2 * step_bytes);
  for (std::uint64_t step = 0; step < 140; ++step) {
    std::uint64_t every = 1;
    for (const SampledStretch& stretch : stretches)
      if (stretch.from <= step) every = stretch.every;
    EXPECT_EQ(gradients.count(step), step % every == 0 ? 1U : 0U) << step;
  }
  EXPECT_EQ(lines_by(traffic, 0, "").size(), 140U);
}

}  // namespace
}  // namespace duplex::net
