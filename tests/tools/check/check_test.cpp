// Tests duplex check as a user runs it, on addresses of this machine, which it takes for several
// machines, and on others that a stand-in for ssh does not reach.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "net/wire/listener.h"
#include "tests/temporary_folder.h"
#include "tests/tools/program.h"
#include "tools/check/machine/messages.h"
#include "tools/check/remote.h"

namespace duplex::tools::testing {
namespace {

using Json = nlohmann::json;

class Check : public ::testing::Test {
 protected:
  Check() : ports_(free_ports(3)) { write_text(folder_ / "nodes", node(0) + node(1)); }

  /// A line of a nodefile: 127.0.0.1, 127.0.0.2, ...
  std::string node(int number) const {
    return "127.0.0." + std::to_string(number + 1) + ":" +
           std::to_string(ports_[static_cast<std::size_t>(number)]) + "\n";
  }

  /// Checks the nodefile, with a script that stands in for ssh.
  Result check(const std::vector<std::string>& more, const std::string& script = "exit 255") const {
    write_text(folder_ / "ssh", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms::owner_all);
    return run(plus(
        {"check", "--nodefile", folder_ / "nodes", "--seconds", "0.02", "--ssh", folder_ / "ssh"},
        more));
  }
  Json json(const std::string& script = "exit 255") const {
    const Result result = check({"--output", "json"}, script);
    return Json::parse(result.out);
  }

  static std::vector<std::string> texts(const Json& json, const std::string& subject,
                                        const std::string& verdict) {
    std::vector<std::string> found;
    for (const Json& each : json["findings"])
      if (each["subject"] == subject && each["verdict"] == verdict)
        found.push_back(each["text"].get<std::string>());
    return found;
  }

  TemporaryFolder folder_;
  std::vector<int> ports_;
};

TEST_F(Check, MeasuresBetweenAddressesOfThisMachine) {
  const Json found = json();
  EXPECT_EQ(found["version"], 1);
  ASSERT_EQ(found["machines"].size(), 2U);
  for (const Json& machine : found["machines"]) {
    EXPECT_TRUE(machine["reached"]);
    EXPECT_EQ(machine["facts"]["usable_cores"],
              static_cast<int>(std::thread::hardware_concurrency()));
  }
  ASSERT_EQ(found["calls"].size(), 2U);
  for (const Json& call : found["calls"]) EXPECT_EQ(call["call"], "met") << call;
  ASSERT_EQ(found["rates"].size(), 1U);
  EXPECT_GT(found["rates"][0]["bytes_per_s"], 1e6);
  EXPECT_GT(found["rates"][0]["back_bytes_per_s"], 1e6);
  EXPECT_GT(found["rates"][0]["round_trip_s"], 0.0);
  EXPECT_LT(found["rates"][0]["round_trip_s"], 1.0);
  EXPECT_EQ(texts(found, "firewall", "ok").size(), 1U);
  EXPECT_EQ(texts(found, "ports", "ok").size(), 1U);
  // Both have the clock of this machine.
  const auto clocks = texts(found, "clocks", "ok");
  ASSERT_EQ(clocks.size(), 1U);
  EXPECT_NE(clocks[0].find("from what most have"), std::string::npos) << clocks[0];
}

TEST_F(Check, NamesAPortThatIsTaken) {
  const auto taken = net::Listener::open({"127.0.0.2", static_cast<std::uint16_t>(ports_[1])});
  const Result result = check({});
  EXPECT_EQ(result.exit, 1) << result.err;
  EXPECT_NE(result.out.find("ports       spoils"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("127.0.0.2: cannot listen on 127.0.0.2:"), std::string::npos)
      << result.out;
}

TEST_F(Check, GoesOnWithoutMachinesThatCannotBeReached) {
  write_text(folder_ / "nodes",
             node(0) + "198.51.100.1\n198.51.100.2\n198.51.100.3\n198.51.100.4\n" + node(1));
  // One cannot be reached, one has no such program, one answers nonsense, and one nothing at all.
  const auto begin = std::chrono::steady_clock::now();
  const Json found = json(
      "echo 'Welcome to the lab'\n"
      "case \"$*\" in\n"
      "*198.51.100.1*) printf 'ssh: \\033[31mno route\\n' >&2; exit 255 ;;\n"
      "*198.51.100.2*) echo 'sh: 1: exec: duplex: not found' >&2; exit 127 ;;\n"
      "*198.51.100.3*) echo 'duplex-check {\"what\":\"facts\",\"facts\":7}'; exec cat ;;\n"
      "*) exec sleep 60 ;;\n"
      "esac");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(40));
  EXPECT_EQ(found["verdict"], "spoils");
  const auto lost = texts(found, "reached", "spoils");
  ASSERT_EQ(lost.size(), 4U);
  EXPECT_EQ(lost[0], "198.51.100.1: ssh: ?[31mno route");
  EXPECT_EQ(lost[1], "198.51.100.2: sh: 1: exec: duplex: not found");
  EXPECT_NE(lost[2].find("198.51.100.3: the duplex there does not answer as this one asks"),
            std::string::npos)
      << lost[2];
  EXPECT_NE(lost[3].find("198.51.100.4: it has not answered within"), std::string::npos) << lost[3];
  EXPECT_EQ(texts(found, "reached", "ok"), std::vector<std::string>{"the other 2"});
  EXPECT_EQ(found["rates"].size(), 1U);
}

/// Each has a second to end by itself, and they have it at the same time.
TEST(CheckRemote, SeveralThatHangAreEndedTogether) {
  using Clock = std::chrono::steady_clock;
  constexpr int count = 12;
  Clock::time_point begin;
  {
    std::vector<std::unique_ptr<Remote>> remotes;
    for (int i = 0; i < count; ++i)
      remotes.push_back(std::make_unique<Remote>(std::vector<std::string>{"sleep", "60"}));
    begin = Clock::now();
    for (const auto& remote : remotes) remote->close_input();
  }
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(count / 2));
}

TEST_F(Check, NamesARemedyWhereSshIsMissing) {
  write_text(folder_ / "nodes", node(0) + "198.51.100.1\n");
  const Result result = run(
      {"check", "--nodefile", folder_ / "nodes", "--ssh", folder_ / "nowhere", "--output", "json"});
  EXPECT_EQ(result.exit, 1) << result.err;
  const Json finding = Json::parse(result.out)["findings"][0];
  EXPECT_EQ(finding["subject"], "reached");
  EXPECT_NE(finding["text"].get<std::string>().find("cannot be run"), std::string::npos) << finding;
  EXPECT_EQ(finding["remedy"].get<std::string>().find("Install ssh on this machine"), 0U)
      << finding;
}

TEST_F(Check, PassesOnNoWordOfANodefileToAShell) {
  write_text(folder_ / "nodes", "$(touch " + folder_ / "made" + ")\n");
  EXPECT_EQ(check({}).exit, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "made"));
  write_text(folder_ / "nodes", "-oProxyCommand=x\n");
  EXPECT_EQ(check({}).exit, 2);
  const Result none = run({"check"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("--nodefile is required"), std::string::npos) << none.err;
  const Result missing = run({"check", "--nodefile", folder_ / "nowhere"});
  EXPECT_EQ(missing.exit, 2);
}

TEST_F(Check, EndsWithWhoeverChecks) {
  // The one on the other machine never answers, so the other waits for it. It is found by its name,
  // which no other test's has.
  const std::string word = folder_ / "ssh";
  const std::vector<std::string> part{"check", "--here", "127.0.7.77"};
  write_text(folder_ / "nodes", "127.0.7.77:" + std::to_string(ports_[0]) + "\n198.51.100.1\n");
  write_text(word, "#!/bin/sh\nexec cat\n");
  std::filesystem::permissions(word, std::filesystem::perms::owner_all);
  {
    const Process process({"check", "--nodefile", folder_ / "nodes", "--ssh", word});
    for (int i = 0; i < 1000 && processes_with(part).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(processes_with(part).empty());
    process.kill(SIGKILL);
  }
  for (int i = 0; i < 1000 && !processes_with(part).empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(processes_with(part).empty());
}

TEST_F(Check, IsWhatLaunchPointsToWhereRanksDoNotMeet) {
  write_text(folder_ / "nodes", node(0) + "198.51.100.1\n");
  // ssh finds no way there, or the rank there never says a word.
  for (const std::string script : {"exit 255", "exec sleep 20"}) {
    write_text(folder_ / "ssh", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms::owner_all);
    const Result result = run({"launch", "--nodefile", folder_ / "nodes", "--ssh", folder_ / "ssh",
                               "--", "--net", "lenet", "--device", "replay:0.01", "--batches", "2",
                               "--timeout", "1", "--logdir", folder_ / "run"});
    EXPECT_NE(result.exit, 0);
    EXPECT_NE(result.err.find("launch: `duplex check --nodefile " + (folder_ / "nodes") +
                              " --ssh " + (folder_ / "ssh") + "` looks for"),
              std::string::npos)
        << script << "\n"
        << result.err;
  }
  // A rank that fails for a reason of its own gives no cause to look for another.
  write_text(folder_ / "nodes", node(0) + node(1));
  const Result own = run({"launch", "--nodefile", folder_ / "nodes", "--", "--net", "lenet",
                          "--datadir", folder_ / "nowhere", "--logdir", folder_ / "other"});
  EXPECT_NE(own.exit, 0);
  EXPECT_EQ(own.err.find("duplex check"), std::string::npos) << own.err;
}

/// Feeds the part on a machine by hand.
Result here(const std::string& lines) {
  Process process({"-c", "printf '%s' \"$1\" | \"$DUPLEX\" check --here me", "sh", lines},
                  "/bin/sh");
  return process.wait();
}

TEST_F(Check, RefusesQuestionsThatAreNone) {
  EXPECT_EQ(here("").exit, 0);
  for (const std::string text :
       {"what\n", "{}\n", "{\"index\":5,\"machines\":[],\"secret\":\"\",\"seconds\":1}\n",
        "{\"index\":0,\"machines\":[{\"host\":\"127.0.0.1\",\"ports\":[]}],\"secret\":\"\","
        "\"seconds\":1}\n"}) {
    const Result result = here(text);
    EXPECT_EQ(result.exit, 1) << text << result.err;
    EXPECT_EQ(result.out, "") << text;
    EXPECT_EQ(result.err.rfind("duplex: ", 0), 0U) << text << result.err;
  }
  CheckTask task;
  task.machines = {{"127.0.0.1", {ports_[0]}}, {"127.0.0.2", {ports_[1]}}};
  task.secret = "secret";
  for (const std::string text : {"{\"what\":\"fly\",\"peers\":[],\"called\":false}\n",
                                 "{\"what\":\"meet\",\"peers\":[0],\"called\":false}\n",
                                 "{\"what\":\"meet\",\"peers\":[9],\"called\":false}\n"}) {
    const Result result = here(line_of(task) + "\n" + text);
    EXPECT_EQ(result.exit, 1) << text << result.err;
    // A login shell may have left a line without an end before it.
    EXPECT_EQ(result.out.rfind("\nduplex-check {\"what\":\"facts\"", 0), 0U) << result.out;
  }
}

TEST_F(Check, LetsNobodyElseIn) {
  // A caller with another secret is a stranger, as another program at the ranks' ports is.
  CheckTask task;
  task.machines = {{"127.0.0.1", {ports_[0]}}, {"127.0.0.2", {ports_[1]}}};
  task.secret = "secret";
  CheckTask other = task;
  other.index = 1;
  other.secret = "another";
  Process stranger({"-c", "{ printf '%s\\n' \"$1\"; sleep 4; } | \"$DUPLEX\" check --here me", "sh",
                    line_of(other)},
                   "/bin/sh");
  Process process({"-c",
                   "{ printf '%s\\n' \"$1\"; sleep 2; printf '%s\\n' \"$2\"; sleep 1; } | "
                   "\"$DUPLEX\" check --here me",
                   "sh", line_of(task), "{\"what\":\"meet\",\"peers\":[1],\"called\":false}"},
                  "/bin/sh");
  const Result result = process.wait();
  EXPECT_EQ(result.exit, 0) << result.err;
  const auto last = result.out.rfind("duplex-check ");
  ASSERT_NE(last, std::string::npos);
  const CheckAnswer answer = parse_answer(result.out.substr(last, result.out.size() - last - 1));
  ASSERT_EQ(answer.calls.size(), 1U) << result.out;
  EXPECT_EQ(answer.calls[0].call, Call::strange);
  EXPECT_NE(answer.calls[0].trouble.find("different cluster keys"), std::string::npos)
      << answer.calls[0].trouble;
  stranger.wait();
}

}  // namespace
}  // namespace duplex::tools::testing
