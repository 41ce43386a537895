// Tests how `duplex check` judges what it has found: a trouble on a machine is found, named and
// given its verdict, and nothing else is.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "tools/check/report.h"
#include "tools/check/verdict.h"

namespace duplex::tools::testing {
namespace {

constexpr double gigabit = 941e6 / 8;

/// Machines lab0, lab1, ... with which nothing is wrong.
Survey good_survey(std::size_t count) {
  Survey survey;
  survey.absent.resize(count);
  survey.facts.resize(count);
  survey.calls.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    survey.machines.push_back({"lab" + std::to_string(i), {7117}});
    MachineFacts& facts = survey.facts[i];
    facts.name = survey.machines[i].host;
    facts.version = "1.0";
    facts.commit = "abc";
    facts.backend = "oneDNN 2.6.3, avx2, 4 threads";
    facts.protocol = 6;
    facts.kernel = "6.1.0";
    facts.processor = "CPU";
    facts.cores = facts.usable = 4;
    facts.memory = std::uint64_t{8} << 30U;
    facts.available = std::uint64_t{6} << 30U;
    facts.disks = {{"/home/x", "", std::uint64_t{50} << 30U}};
    facts.synchronised = true;
    facts.congestion = "cubic";
    InterfaceFacts card;
    card.name = "eth0";
    card.kind = "wired";
    card.mbit = 1000;
    card.duplex = "full";
    card.mtu = 1500;
    card.queue = "mq of fq_codel";
    card.packets = 1000000;
    facts.interfaces = {card};
    for (std::size_t to = 0; to < count; ++to) {
      facts.routes.push_back({"10.0.0." + std::to_string(to + 1), "", "eth0"});
      if (to == i) continue;
      CallFacts call;
      call.peer = static_cast<std::int64_t>(to);
      call.port = 7117;
      call.error_ns = 50000;
      survey.calls[i].push_back(call);
      if (i < to) survey.rates.push_back({i, to, gigabit, gigabit, 2e-4, ""});
    }
  }
  return survey;
}

CallFacts& call(Survey& survey, std::size_t from, std::size_t to) {
  for (CallFacts& each : survey.calls[from])
    if (each.peer == static_cast<std::int64_t>(to)) return each;
  throw std::runtime_error("there is no such call");
}

/// Returns the findings that are worse than ok.
std::vector<Finding> troubles(const Survey& survey) {
  std::vector<Finding> found;
  for (const Finding& finding : findings_of(survey))
    if (finding.verdict != Verdict::ok) found.push_back(finding);
  return found;
}

std::string told(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings)
    text += finding.subject + " " + name_of(finding.verdict) + ": " + finding.text + " -> " +
            finding.remedy + "\n";
  return text;
}

/// Does one thing to good machines, and expects one finding of it.
void expect_one(const std::function<void(Survey&)>& damage, const std::string& subject,
                Verdict verdict, const std::string& text, const std::string& remedy) {
  Survey survey = good_survey(6);
  damage(survey);
  const std::vector<Finding> found = troubles(survey);
  ASSERT_EQ(found.size(), 1U) << text << "\n" << told(found);
  EXPECT_EQ(found[0].subject, subject);
  EXPECT_EQ(found[0].verdict, verdict) << told(found);
  EXPECT_NE(found[0].text.find(text), std::string::npos) << told(found);
  EXPECT_NE(found[0].remedy.find(remedy), std::string::npos) << told(found);
}

TEST(CheckFindings, AreNoneWhereAllIsWell) {
  const Survey survey = good_survey(6);
  EXPECT_TRUE(troubles(survey).empty()) << told(troubles(survey));
  EXPECT_EQ(worst(findings_of(survey)), Verdict::ok);
  const std::string table = check_table(survey, findings_of(survey));
  for (const char* line :
       {"all 6: 1.0 (abc)", "all 6: oneDNN 2.6.3, avx2", "all 6: 4 of CPU", "all 6: 6.0 GiB free",
        "all 6: eth0, wired, 1 Gbit/s, full duplex", "all 6: mq of fq_codel", "all 6: cubic",
        "usually 941 Mbit/s each way", "6 machines: nothing is in the way of a run."})
    EXPECT_NE(table.find(line), std::string::npos) << line << "\n" << table;
}

TEST(CheckFindings, NameEachTroubleOfAMachine) {
  const auto facts = [](const std::function<void(MachineFacts&)>& change) {
    return [change](Survey& survey) { change(survey.facts[3]); };
  };
  expect_one(facts([](MachineFacts& f) { f.commit = "old"; }), "duplex", Verdict::slower,
             "lab3: 1.0 (old)", "copy one build");
  expect_one(facts([](MachineFacts& f) { f.kernel = "3.10.0"; }), "kernel", Verdict::note,
             "lab3: 3.10.0", "");
  expect_one(facts([](MachineFacts& f) { f.cores = f.usable = 2; }), "cores", Verdict::slower,
             "lab3: 2 of CPU", "--share auto");
  expect_one(facts([](MachineFacts& f) {
               f.busy = 1.5;
               f.busiest = "firefox";
               f.busiest_cores = 1.2;
             }),
             "load", Verdict::slower, "others keep cores busy: lab3 1.5 of 4 (firefox 1.2)",
             "end what");
  expect_one(facts([](MachineFacts& f) { f.stolen = 0.5; }), "load", Verdict::slower,
             "virtual machines, whose hosts give cores to others: lab3 0.5", "leave them out");
  expect_one(facts([](MachineFacts& f) { f.available = 200U << 20U; }), "memory", Verdict::spoils,
             "lab3: 200 MiB of 8.0 GiB are free", "End programs");
  expect_one(facts([](MachineFacts& f) { f.available = 900U << 20U; }), "memory", Verdict::note,
             "lab3: 900 MiB", "nets NET --memory");
  expect_one(facts([](MachineFacts& f) { f.gpus = {"NVIDIA A"}; }), "GPU", Verdict::note,
             "lab3: 1 x NVIDIA A", "--device cuda");
  expect_one(facts([](MachineFacts& f) { f.interfaces[0].duplex = "half"; }), "link",
             Verdict::spoils, "lab3: eth0, wired, 1 Gbit/s, half duplex", "autoneg on");
  expect_one(facts([](MachineFacts& f) { f.interfaces[0].errors = 500; }), "link", Verdict::slower,
             "lab3: eth0, wired, 1 Gbit/s, full duplex: 500 of 1,000,000", "cable");
  expect_one(facts([](MachineFacts& f) { f.interfaces[0].kind = "wireless"; }), "link",
             Verdict::slower, "lab3: eth0, wireless", "cable");
  expect_one(facts([](MachineFacts& f) { f.interfaces[0].mtu = 1200; }), "MTU", Verdict::slower,
             "lab3: 1200", "`ip link set dev eth0 mtu 1500`");
  expect_one(
      [](Survey& survey) {
        for (MachineFacts& each : survey.facts) each.interfaces[0].mtu = 1400;
      },
      "MTU", Verdict::note, "all 6: 1400", "If this is no tunnel, give every machine 1500");
  expect_one(facts([](MachineFacts& f) { f.interfaces[0].mtu = 9000; }), "MTU", Verdict::slower,
             "lab3: 9000", "mtu 1500");
  expect_one(facts([](MachineFacts& f) { f.interfaces[0].queue = "pfifo_fast"; }), "queue",
             Verdict::slower, "lab3: pfifo_fast on eth0", "replace dev eth0 root fq_codel");
  expect_one(
      facts([](MachineFacts& f) { f.interfaces[0].queue = "mq of fq_codel and pfifo_fast"; }),
      "queue", Verdict::slower, "lab3: mq of", "fq_codel");
  expect_one(facts([](MachineFacts& f) { f.congestion = "reno"; }), "congestion", Verdict::slower,
             "lab3: reno", "tcp_cubic");
  expect_one(facts([](MachineFacts& f) { f.forgets_pace = true; }), "slow start", Verdict::slower,
             "lab3: ", "net.ipv4.tcp_slow_start_after_idle=0");
  expect_one(facts([](MachineFacts& f) { f.routes[3].address = "127.0.1.1"; }), "names",
             Verdict::spoils, "lab3 is 127.0.1.1 on lab3", "/etc/hosts");
  expect_one(facts([](MachineFacts& f) {
               f.routes[1] = {"", "host name 'lab1' cannot be resolved", ""};
             }),
             "names", Verdict::spoils, "on lab3: host name 'lab1'", "/etc/hosts");
  expect_one(facts([](MachineFacts& f) { f.closed = {"cannot listen on lab3:7117"}; }), "ports",
             Verdict::spoils, "lab3: cannot listen on lab3:7117", "launch stop");
}

TEST(CheckFindings, KnowEveryLimitOfAMachine) {
  Survey survey = good_survey(4);
  survey.facts[1].protocol = 5;
  survey.facts[2].quota = 1.5;
  survey.facts[3].disks = {{"/home/x", "", 50U << 20U}, {"/tmp", "Read-only file system", 0}};
  survey.facts[3].clock_ahead_ns = 120'000'000'000;
  const std::vector<Finding> found = troubles(survey);
  const std::string all = told(found);
  for (const char* line :
       {"duplex spoils: ", "lab1: 1.0 (abc), protocol 5", "lab2: a process may use 1.5 of 4 cores",
        "disk spoils: lab3: /home/x: 50 MiB are free",
        "disk spoils: lab3: /tmp: nobody can write there: Read-only file system",
        "clocks note: lab3: 120"})
    EXPECT_NE(all.find(line), std::string::npos) << line << "\n" << all;
}

TEST(CheckFindings, TellWhoCannotCallWhom) {
  const auto fail = [](Survey& survey, std::size_t from, std::size_t to, Call how,
                       const std::string& trouble) {
    call(survey, from, to).call = how;
    call(survey, from, to).trouble = trouble;
  };
  expect_one([&](Survey& s) { fail(s, 4, 2, Call::unreachable, "No route to host"); }, "firewall",
             Verdict::spoils, "lab4 to lab2, port 7117: No route to host", "firewall-cmd");
  // Ranks never call in this direction.
  expect_one([&](Survey& s) { fail(s, 2, 4, Call::unanswered, "deadline passed"); }, "firewall",
             Verdict::note, "lab2 to lab4, port 7117: no answer", "order of the nodefile");
  expect_one(
      [&](Survey& s) {
        for (std::size_t from = 1; from < 6; ++from)
          fail(s, from, 0, Call::refused, "Connection refused");
      },
      "firewall", Verdict::spoils, "all but lab0 to lab0, port 7117: Connection refused",
      "ufw allow 7117/tcp");
  // All that call a machine are told together, whichever direction is needed.
  expect_one(
      [&](Survey& s) {
        for (std::size_t from = 0; from < 6; ++from)
          if (from != 3) fail(s, from, 3, Call::unanswered, "deadline passed");
      },
      "firewall", Verdict::spoils, "all but lab3 to lab3, port 7117: no answer", "firewall-cmd");
  // A name that means loopback is why nobody reaches it.
  expect_one(
      [&](Survey& s) {
        s.facts[2].routes[2].address = "127.0.1.1";
        for (std::size_t from = 0; from < 6; ++from)
          if (from != 2) fail(s, from, 2, Call::refused, "Connection refused");
      },
      "names", Verdict::spoils, "lab2 is 127.0.1.1 on lab2", "/etc/hosts");
  expect_one([&](Survey& s) { fail(s, 5, 3, Call::strange, "the connection was closed"); },
             "firewall", Verdict::spoils, "lab5 to lab3", "Another program");
}

TEST(CheckFindings, TellASlowMachineFromASlowPair) {
  const auto slow = [](Survey& survey, std::size_t machine, double part) {
    for (PairRates& pair : survey.rates)
      if (pair.low == machine || pair.high == machine) pair.up = pair.down = part * gigabit;
  };
  expect_one([&](Survey& s) { slow(s, 2, 0.1); }, "rates", Verdict::spoils,
             "lab2 sends 94.1 Mbit/s and takes 94.1 Mbit/s (median), where others have 941 Mbit/s",
             "cable");
  expect_one([&](Survey& s) { slow(s, 2, 0.7); }, "rates", Verdict::slower, "lab2 sends", "");
  expect_one([&](Survey& s) { s.rates[0].down = 0.3 * gigabit; }, "rates", Verdict::spoils,
             "lab1 to lab0 282.3 Mbit/s", "");
  expect_one(
      [&](Survey& s) {
        for (PairRates& pair : s.rates)
          if (pair.high == 5) pair.up = 0.2 * gigabit;
      },
      "rates", Verdict::spoils, "lab5 takes 188.2 Mbit/s (median)", "");
  expect_one(
      [&](Survey& s) {
        for (PairRates& pair : s.rates) pair.up = pair.down = 0.5 * gigabit;
      },
      "rates", Verdict::slower, ": 50 % of what the links have", "switch");
  expect_one([&](Survey& s) { s.rates[3].trouble = "deadline passed"; }, "rates", Verdict::spoils,
             "lab0 with lab4: deadline passed", "MTU");
  expect_one([&](Survey& s) { s.unmeasured = 7; }, "rates", Verdict::note, "7 pairs", "");
}

TEST(CheckFindings, GoOnWithoutAMachine) {
  Survey survey = good_survey(4);
  const std::string nasty = "ssh: \x1b[31mConnection refused";
  survey.absent[2] = Absence{nasty, 255};
  survey.calls[2].clear();
  for (const std::size_t from : {0U, 1U, 3U})
    survey.calls[from].erase(std::remove_if(survey.calls[from].begin(), survey.calls[from].end(),
                                            [](const CallFacts& each) { return each.peer == 2; }),
                             survey.calls[from].end());
  survey.rates.erase(std::remove_if(survey.rates.begin(), survey.rates.end(),
                                    [](const PairRates& r) { return r.low == 2 || r.high == 2; }),
                     survey.rates.end());
  const std::vector<Finding> found = troubles(survey);
  ASSERT_EQ(found.size(), 1U) << told(found);
  EXPECT_EQ(found[0].subject, "reached");
  EXPECT_EQ(found[0].verdict, Verdict::spoils);
  EXPECT_NE(found[0].remedy.find("`ssh -o BatchMode=yes lab2 true`"), std::string::npos);
  const std::string table = check_table(survey, findings_of(survey));
  EXPECT_EQ(table.find('\x1b'), std::string::npos) << table;
  EXPECT_NE(table.find("lab2: ssh: ?[31mConnection refused"), std::string::npos) << table;
  EXPECT_NE(table.find("all 3: 1.0 (abc)"), std::string::npos) << table;

  for (std::size_t machine = 0; machine < 4; ++machine)
    survey.absent[machine] = Absence{"nobody is there", 255};
  survey.rates.clear();
  EXPECT_EQ(findings_of(survey).size(), 4U) << told(findings_of(survey));
}

TEST(CheckFindings, FitATerminal) {
  Survey survey = good_survey(16);
  survey.facts[3].interfaces[0].duplex = "half";
  survey.facts[4].forgets_pace = survey.facts[9].forgets_pace = true;
  survey.facts[7].closed = {"cannot listen on lab7:7117: Address already in use"};
  const std::string table = check_table(survey, findings_of(survey));
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(table.find("16 machines: 2 that spoil a run, 1 that slow it down, 0 to know."),
            std::string::npos)
      << table;
}

}  // namespace
}  // namespace duplex::tools::testing
