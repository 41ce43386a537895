// Tests which rank a process is, by flags and by environments as launchers make them.
#include "tools/launch/rank_source.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "core/error.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/launch/slurm_lists.h"

namespace duplex::tools {
namespace {

using Variables = std::map<std::string, std::string>;

Variables operator+(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

RankSource find(const Variables& variables, const RankFlags& flags = {}) {
  return find_rank(flags, [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// Returns "host:port host:port", by rank.
std::string addresses(const RankSource& source) {
  std::string text;
  for (const net::Address& address : source.addresses) {
    text += (text.empty() ? "" : " ") + (address.host.empty() ? "-" : address.str());
  }
  return text;
}

void expect_refused(const Variables& variables, const RankFlags& flags,
                    const std::vector<std::string>& words) {
  try {
    const RankSource source = find(variables, flags);
    ADD_FAILURE() << "taken: " << source.str() << ": " << addresses(source);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    const std::string text = error.what();
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

const RankFlags none, central{"", -1, true};

/// The variables that srun of Slurm 22.05 sets, for rank 3 of 5 on three machines.
const Variables in_step{{"SLURM_STEP_ID", "0"},
                        {"SLURM_PROCID", "3"},
                        {"SLURM_NTASKS", "5"},
                        {"SLURM_LOCALID", "0"},
                        {"SLURM_NODEID", "1"},
                        {"SLURM_STEP_NUM_NODES", "3"},
                        {"SLURM_STEP_NUM_TASKS", "5"},
                        {"SLURM_STEP_NODELIST", "lab[09-11]"},
                        {"SLURM_STEP_TASKS_PER_NODE", "3,1(x2)"}};

/// The variables of a script of sbatch.
const Variables in_batch{{"SLURM_JOB_ID", "7"},  {"SLURM_PROCID", "0"},
                         {"SLURM_NTASKS", "5"},  {"SLURM_NODEID", "0"},
                         {"SLURM_LOCALID", "0"}, {"SLURM_TASKS_PER_NODE", "3,1(x2)"}};

Variables under_mpirun(const std::string& rank, const std::string& size,
                       const std::string& local_size) {
  return {{"OMPI_COMM_WORLD_RANK", rank},
          {"OMPI_COMM_WORLD_SIZE", size},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", local_size}};
}

Variables with_rank(const std::string& rank, const std::string& size) {
  return {{"RANK", rank}, {"WORLD_SIZE", size}};
}

class RankSources : public ::testing::Test {
 protected:
  /// Writes a nodefile of `count` ranks: a0, a1 ...
  RankFlags nodes(int count, int index = -1) const {
    std::string lines;
    for (int i = 0; i < count; ++i) lines += "a" + std::to_string(i) + "\n";
    testing::write_text(folder_ / "hosts", lines);
    return {folder_ / "hosts", index, false};
  }

  TemporaryFolder folder_;
};

TEST(SlurmLists, HostsKeepTheirZeros) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(expand_hosts("lab"), Names{"lab"});
  EXPECT_EQ(expand_hosts("lab[01-03,7],other"),
            (Names{"lab01", "lab02", "lab03", "lab7", "other"}));
  EXPECT_EQ(expand_hosts("a[8-11]"), (Names{"a8", "a9", "a10", "a11"}));
  EXPECT_EQ(expand_hosts("a[098-101].x"), (Names{"a098.x", "a099.x", "a100.x", "a101.x"}));
  EXPECT_EQ(expand_hosts("r[1-2]n[0,5]"), (Names{"r1n0", "r1n5", "r2n0", "r2n5"}));
  EXPECT_EQ(expand_hosts("n[0-65535]").size(), 65536U);
  for (const char* bad : {"", "a,", ",a", "a[1-2", "a1]", "a[[1]]", "a[]", "a[2-1]", "a[x]",
                          "a[1-]", "a[1,,2]", "a[-1]", "a[0-65536]", "a[0-999999999]",
                          "a[0-999]b[0-999]", "a[0-60000],b[0-60000]", "a[9999999999]"}) {
    EXPECT_THROW(expand_hosts(bad), Error) << bad;
  }
  EXPECT_THROW(expand_hosts("a[0-65535,0-65535]"), Error);
  EXPECT_EQ(expand_hosts(std::string(252, 'a') + "[7]").size(), 1U);
  EXPECT_THROW(expand_hosts(std::string(252, 'a') + "[10]"), Error);
  EXPECT_THROW(expand_hosts("a[1]" + std::string(252, 'a')), Error);
}

TEST(SlurmLists, CountsAreRepeated) {
  EXPECT_EQ(expand_counts("3"), std::vector<int>{3});
  EXPECT_EQ(expand_counts("2(x3),1"), (std::vector<int>{2, 2, 2, 1}));
  for (const char* bad :
       {"", "x", "2(x", "2(x)", "2(x3", "2(x0)", "2(3)", "-1", "2,,1", "1(x99999)"}) {
    EXPECT_THROW(expand_counts(bad), Error) << bad;
  }
}

TEST_F(RankSources, FlagsAlone) {
  const RankSource source = find({}, nodes(2, 1));
  EXPECT_EQ(source.str(), "rank 1 of 2 (from --index; nodefile " + (folder_ / "hosts") + ")");
  EXPECT_EQ(addresses(source), "a0:7117 a1:7117");
  expect_refused({}, nodes(2, 2), {"--index 2", "0 to 1"});
  expect_refused({}, {"", 1, false}, {"--index", "--nodefile"});
  expect_refused({}, nodes(2), {"--index"});
  expect_refused({}, none, {"--index", "--nodefile", "srun", "mpirun"});
}

TEST_F(RankSources, ARankForTheNodefile) {
  EXPECT_EQ(find(in_step, nodes(5)).str(),
            "rank 3 of 5 (from Slurm: SLURM_PROCID; nodefile " + (folder_ / "hosts") + ")");
  EXPECT_EQ(find(under_mpirun("1", "2", "1"), nodes(2)).rank, 1);
  EXPECT_EQ(addresses(find(with_rank("1", "2"), nodes(2))), "a0:7117 a1:7117");
  EXPECT_EQ(find({{"RANK", "1"}}, nodes(2)).rank, 1);
  expect_refused({{"RANK", "2"}}, nodes(2), {"RANK=2", "2 ranks"});
  expect_refused(in_step, nodes(4), {"4 ranks", "SLURM_STEP_NUM_TASKS=5"});
  expect_refused(under_mpirun("0", "1", "1"), nodes(2), {"2 ranks", "OMPI_COMM_WORLD_SIZE=1"});
}

TEST_F(RankSources, FlagsAndEnvironmentMustAgree) {
  EXPECT_EQ(find(in_step, nodes(5, 3)).used, "from --index; nodefile " + (folder_ / "hosts"));
  expect_refused(in_step, nodes(5, 2), {"--index 2", "SLURM_PROCID=3"});
  expect_refused(in_step, nodes(4, 3), {"4 ranks", "SLURM_STEP_NUM_TASKS=5"});
  expect_refused(under_mpirun("1", "2", "2"), nodes(2, 0), {"--index 0", "OMPI_COMM_WORLD_RANK=1"});
  expect_refused(with_rank("1", "3"), nodes(2, 1), {"2 ranks", "WORLD_SIZE=3"});
  expect_refused({{"RANK", "1"}}, nodes(2, 0), {"--index 0", "RANK=1"});
  expect_refused(with_rank("0", "1"), nodes(2, 0), {"WORLD_SIZE=1"});
}

TEST_F(RankSources, WhatOnlyStartedAShellDoesNotCount) {
  EXPECT_EQ(find(in_batch, nodes(2, 1)).rank, 1);
  EXPECT_EQ(find(in_batch + with_rank("1", "2"), nodes(2)).rank, 1);
  expect_refused(in_batch, nodes(5), {"no rank"});
  // This is srun --pty bash, or a step of its own for every rank.
  const Variables one = in_step + Variables{{"SLURM_PROCID", "0"},
                                            {"SLURM_STEP_NUM_NODES", "1"},
                                            {"SLURM_STEP_NUM_TASKS", "1"}};
  EXPECT_EQ(find(one, nodes(2, 1)).rank, 1);
  EXPECT_EQ(find(under_mpirun("0", "1", "1"), nodes(2, 1)).rank, 1);
}

// mpirun in an allocation starts a daemon on every machine by srun; ranks inherit its variables.
TEST_F(RankSources, TheStepOfDaemonsDoesNotCount) {
  const Variables daemons = in_step + Variables{{"SLURM_PROCID", "1"},
                                                {"SLURM_STEP_NUM_TASKS", "3"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"}};
  const RankSource source = find(daemons + under_mpirun("4", "6", "2"), nodes(6));
  EXPECT_EQ(source.rank, 4);
  EXPECT_EQ(source.used.rfind("from Open MPI: OMPI_COMM_WORLD_RANK", 0), 0U) << source.used;
  EXPECT_EQ(find(daemons + with_rank("5", "6"), nodes(6)).rank, 5);
  expect_refused(daemons + under_mpirun("0", "1", "1"), none,
                 {"SLURM_PROCID=1", "OMPI_COMM_WORLD_RANK=0"});
}

TEST(RankSource, AStepsHosts) {
  const RankSource source = find(in_step);
  EXPECT_EQ(source.str(), "rank 3 of 5 (from Slurm: SLURM_PROCID; hosts of SLURM_STEP_NODELIST)");
  EXPECT_EQ(addresses(source), "lab09:7117 lab09:7118 lab09:7119 lab10:7117 lab11:7117");
  EXPECT_EQ(addresses(find(in_step + Variables{{"MASTER_PORT", "9000"}, {"MASTER_ADDR", "x"}})),
            "lab09:9000 lab09:9001 lab09:9002 lab10:9000 lab11:9000");
  EXPECT_EQ(addresses(find(in_step + Variables{{"MASTER_ADDR", "fast"}}, central)),
            "fast:7117 lab09:7118 lab09:7119 lab10:7117 lab11:7117");
  const Variables here{{"SLURM_NODEID", "0"},
                       {"SLURM_STEP_NUM_NODES", "1"},
                       {"SLURM_STEP_NODELIST", "vm"},
                       {"SLURM_STEP_TASKS_PER_NODE", "5"},
                       {"SLURM_DISTRIBUTION", "cyclic"}};
  EXPECT_EQ(addresses(find(in_step + here)),
            "127.0.0.1:7117 127.0.0.1:7118 127.0.0.1:7119 127.0.0.1:7120 127.0.0.1:7121");
}

TEST(RankSource, AStepThatCannotBe) {
  const auto refused = [](const char* name, const char* value,
                          const std::vector<std::string>& words) {
    expect_refused(in_step + Variables{{name, value}}, central, words);
  };
  refused("SLURM_STEP_TASKS_PER_NODE", "2(x3)",
          {"SLURM_STEP_TASKS_PER_NODE=2(x3)", "SLURM_STEP_NUM_TASKS=5", "lab[09-11]"});
  refused("SLURM_STEP_TASKS_PER_NODE", "3,2", {"SLURM_STEP_TASKS_PER_NODE=3,2"});
  refused("SLURM_STEP_TASKS_PER_NODE", "three", {"three"});
  refused("SLURM_STEP_NODELIST", "lab[09-", {"lab[09-"});
  refused("SLURM_STEP_NUM_TASKS", "", {"SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS"});
  refused("SLURM_DISTRIBUTION", "cyclic", {"SLURM_DISTRIBUTION=cyclic", "--nodefile"});
  refused("SLURM_DISTRIBUTION", "plane", {"SLURM_DISTRIBUTION=plane"});
  refused("SLURM_NODEID", "2", {"SLURM_NODEID=2", "--nodefile"});
  refused("SLURM_PROCID", "5", {"SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=5"});
  refused("MASTER_ADDR", "localhost", {"MASTER_ADDR=localhost"});
  EXPECT_EQ(find(in_step + Variables{{"SLURM_DISTRIBUTION", "block:cyclic"}}).rank, 3);
  const Variables one_each{{"SLURM_PROCID", "1"},
                           {"SLURM_STEP_NUM_TASKS", "3"},
                           {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                           {"SLURM_DISTRIBUTION", "cyclic"}};
  EXPECT_EQ(addresses(find(in_step + one_each)), "lab09:7117 lab10:7117 lab11:7117");
}

TEST(RankSource, AllOnThisMachine) {
  const std::string here = "127.0.0.1:7117 127.0.0.1:7118";
  const RankSource source = find(under_mpirun("1", "2", "2"));
  EXPECT_EQ(source.str(),
            "rank 1 of 2 (from Open MPI: OMPI_COMM_WORLD_RANK; all ranks on this machine)");
  EXPECT_EQ(addresses(source), here);
  EXPECT_EQ(addresses(find({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}, {"MPI_LOCALNRANKS", "2"}})),
            here);
  for (const char* host : {"localhost", "127.0.0.1", "::1"}) {
    EXPECT_EQ(addresses(find(with_rank("1", "2") + Variables{{"MASTER_ADDR", host}})), here);
  }
  EXPECT_EQ(addresses(find(with_rank("1", "2") + Variables{{"LOCAL_WORLD_SIZE", "2"},
                                                           {"MASTER_ADDR", "vm"},
                                                           {"MASTER_PORT", "29500"}})),
            "127.0.0.1:29500 127.0.0.1:29501");
  const Variables torchrun{{"LOCAL_WORLD_SIZE", "2"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(addresses(find(with_rank("1", "2") + torchrun +
                           Variables{{"TORCHELASTIC_USE_AGENT_STORE", "True"}})),
            "127.0.0.1:29501 127.0.0.1:29502");
  EXPECT_EQ(addresses(find(with_rank("1", "2") + torchrun +
                           Variables{{"TORCHELASTIC_USE_AGENT_STORE", "False"}})),
            "127.0.0.1:29500 127.0.0.1:29501");
  EXPECT_EQ(addresses(find(with_rank("0", "1"))), "127.0.0.1:7117");
}

TEST(RankSource, OnlyTheServersAddress) {
  const Variables master{{"MASTER_ADDR", "node7"}, {"MASTER_PORT", "9001"}};
  const RankSource source = find(with_rank("2", "3") + master, central);
  EXPECT_EQ(source.str(), "rank 2 of 3 (from the environment: RANK; rank 0 at MASTER_ADDR)");
  EXPECT_EQ(addresses(source), "node7:9001 - -");
  EXPECT_EQ(addresses(find(under_mpirun("2", "3", "1") + master, central)), "node7:9001 - -");
  expect_refused(with_rank("2", "3") + master, none, {"WORLD_SIZE=3", "--nodefile"});
  expect_refused(under_mpirun("2", "3", "1"), central,
                 {"OMPI_COMM_WORLD_SIZE=3", "--nodefile", "MASTER_ADDR"});
  expect_refused(under_mpirun("2", "3", "1") + Variables{{"MASTER_ADDR", "localhost"}}, central,
                 {"MASTER_ADDR=localhost", "3 ranks"});
}

TEST_F(RankSources, HowManyComputeHere) {
  EXPECT_EQ(find({}, nodes(3, 1)).computing_here, 1);
  testing::write_text(folder_ / "hosts", "a slots=2\nb slots=3\na:9000\n");
  const auto on_two = [&](int index, bool with_server) {
    return find({}, {folder_ / "hosts", index, with_server}).computing_here;
  };
  EXPECT_EQ(on_two(0, false), 3);
  EXPECT_EQ(on_two(4, false), 3);
  EXPECT_EQ(on_two(1, true), 2);  // The server is on that machine, too, and computes nothing.
  EXPECT_EQ(on_two(2, true), 3);
  EXPECT_FALSE(find({}, {folder_ / "hosts", 0, false}).launched);

  EXPECT_EQ(find(in_step).computing_here, 1);
  EXPECT_EQ(find(in_step + Variables{{"SLURM_PROCID", "1"}, {"SLURM_NODEID", "0"}}).computing_here,
            3);
  EXPECT_TRUE(find(in_step).launched);
  EXPECT_EQ(find(under_mpirun("1", "2", "2")).computing_here, 2);
  const Variables master{{"MASTER_ADDR", "node7"}};
  EXPECT_EQ(find(under_mpirun("2", "6", "3") + master, central).computing_here, 3);
  EXPECT_EQ(find(with_rank("2", "3") + master, central).computing_here, 1);
  EXPECT_FALSE(find(with_rank("2", "3") + master, central).launched);
}

TEST(RankSource, RanksOfAMachineShareItsCores) {
  RankSource source;
  EXPECT_EQ(source.threads(16, 16), 16);
  EXPECT_EQ(source.threads(4, 16), 4);  // The process runs under taskset.
  source.computing_here = 4;
  EXPECT_EQ(source.threads(16, 16), 4);
  EXPECT_EQ(source.threads(4, 16), 1);  // All four ranks run under taskset.
  EXPECT_EQ(source.threads(2, 2), 1);
  EXPECT_EQ(source.threads(7, 7), 1);
  source.launched = true;
  EXPECT_EQ(source.threads(16, 16), 4);
  EXPECT_EQ(source.threads(4, 16), 4);  // This is srun -c 4.
  EXPECT_EQ(source.threads(1, 16), 1);
  EXPECT_EQ(source.threads(8, 16), 4);  // Open MPI's default binds two ranks to each socket.
  EXPECT_EQ(source.threads(1, 2), 1);
}

TEST(RankSource, SourcesMustAgree) {
  EXPECT_EQ(find(under_mpirun("1", "2", "2") + with_rank("1", "2")).rank, 1);
  expect_refused(under_mpirun("0", "2", "2") + with_rank("1", "2"), none,
                 {"OMPI_COMM_WORLD_RANK=0", "RANK=1"});
  expect_refused(in_step + with_rank("3", "6"), none, {"SLURM_STEP_NUM_TASKS=5", "WORLD_SIZE=6"});
  expect_refused(in_step + Variables{{"WORLD_SIZE", "4"}}, none,
                 {"SLURM_STEP_NUM_TASKS=5", "WORLD_SIZE=4"});
  EXPECT_EQ(find(in_step + Variables{{"PMI_RANK", "3"}, {"PMI_SIZE", "5"}}).rank, 3);
}

TEST(RankSource, WhatIsNoNumber) {
  for (const char* bad : {"abc", "-1", "1x", " 1", "99999999999"}) {
    expect_refused(with_rank(bad, "2"), none, {"RANK=" + std::string(bad)});
  }
  expect_refused(with_rank("2", "2"), none, {"RANK=2", "WORLD_SIZE=2"});
  expect_refused(with_rank("0", "0"), none, {"WORLD_SIZE=0"});
  expect_refused({{"RANK", "0"}}, none, {"RANK=0", "WORLD_SIZE"});
  expect_refused({{"WORLD_SIZE", "2"}}, none, {"no rank"});
  expect_refused(under_mpirun("0", "2", "3"), none, {"OMPI_COMM_WORLD_LOCAL_SIZE=3"});
  const Variables local = under_mpirun("0", "2", "2");
  for (const char* port : {"0", "65536", "http", "65535"}) {
    expect_refused(local + Variables{{"MASTER_PORT", port}}, none, {port});
  }
  EXPECT_EQ(find(local + Variables{{"RANK", ""}}).rank, 0);  // An empty variable counts as not set.
}

// With a central server only the first port is listened on.
TEST_F(RankSources, ARunWithoutFlags) {
  const std::string port = std::to_string(testing::free_ports(1)[0]);
  const Variables shared{{"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", port}};
  std::vector<testing::Process> ranks;
  for (const char* rank : {"0", "1"}) {
    for (const auto& [name, value] : shared) ::setenv(name.c_str(), value.c_str(), 1);
    ::setenv("RANK", rank, 1);
    ranks.push_back(
        testing::Process({"dist", "--net", "lenet", "--device", "replay:0.01", "--batches", "3",
                          "--server", "central", "--timeout", "20", "--logdir", folder_ / "run"}));
    for (const auto& [name, value] : shared) ::unsetenv(name.c_str());
    ::unsetenv("RANK");
  }
  for (testing::Process& rank : ranks) {
    const testing::Result result = rank.wait();
    EXPECT_EQ(result.exit, 0) << result.err;
    EXPECT_NE(result.err.find("of 2 (from the environment: RANK; all ranks on this machine)\n"),
              std::string::npos)
        << result.err;
  }
  EXPECT_NE(testing::read_text(folder_ / "run/rank-1.json"), "");
}

TEST(RankSource, LeavesOutRanksOfTheNodefile) {
  const TemporaryFolder folder;
  const std::string nodefile = folder / "nodes";
  testing::write_text(nodefile, "a slots=2\nb\nc\n");
  RankFlags flags;
  flags.nodefile = nodefile;
  flags.index = 1;
  flags.without = {0, 2};
  const RankSource source = find({}, flags);
  EXPECT_EQ(source.rank, 1);
  EXPECT_EQ(addresses(source), "a:7118 c:7117");
  EXPECT_EQ(source.str(), "rank 1 of 2 (from --index; nodefile " + nodefile + " without 0,2)");
  flags.index = 2;
  expect_refused({}, flags, {"--index 2", "without 0,2 has ranks 0 to 1"});
  flags.index = 0;
  for (const auto& [out, words] : std::vector<std::pair<std::vector<int>, std::string>>{
           {{4}, "has ranks 0 to 3"}, {{1, 1}, "twice"}, {{0, 1, 2, 3}, "leaves nothing"}}) {
    flags.without = out;
    expect_refused({}, flags, {words});
  }
  RankFlags none;
  none.without = {1};
  expect_refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}}, none,
                 {"--without goes with the --nodefile"});
}

}  // namespace
}  // namespace duplex::tools
