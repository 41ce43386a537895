// Judges the interfaces over which machines reach each other, and TCP's settings.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "tools/check/groups.h"
#include "tools/check/verdict.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// An interface of a machine that leads to others.
struct Used {
  std::size_t machine;
  const InterfaceFacts* facts;
};

/// Those over which machines reach others. A machine's own name may lead to loopback, which is
/// judged as a name.
std::vector<Used> used_interfaces(const Survey& survey) {
  std::vector<Used> used;
  for (const std::size_t machine : survey.all_present()) {
    const MachineFacts& facts = survey.facts[machine];
    for (const InterfaceFacts& each : facts.interfaces) {
      bool leads = false;
      for (std::size_t to = 0; to < facts.routes.size(); ++to)
        leads = leads || (to != machine && facts.routes[to].interface == each.name);
      if (leads && each.kind != "loopback") used.push_back({machine, &each});
    }
  }
  return used;
}

/// Lists what interfaces have in common: "all 16: 1 Gbit/s, full duplex (eth0)".
class Listing {
 public:
  void add(const Used& used, const std::string& value) {
    Group& group = named(value);
    if (group.machines.empty() || group.machines.back() != used.machine)
      group.machines.push_back(used.machine);
  }
  std::string str(const Survey& survey) {
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
      return a.machines.size() > b.machines.size();
    });
    return listed(survey, groups_);
  }
  const std::vector<Group>& groups() const { return groups_; }

 private:
  Group& named(const std::string& value) {
    for (Group& group : groups_)
      if (group.value == value) return group;
    return groups_.emplace_back(Group{value, {}});
  }
  std::vector<Group> groups_;
};

std::vector<std::size_t> machines_in(const std::vector<Used>& all) {
  std::vector<std::size_t> machines;
  for (const Used& used : all)
    if (machines.empty() || machines.back() != used.machine) machines.push_back(used.machine);
  return machines;
}

std::string link_text(const InterfaceFacts& facts) {
  std::string text = facts.name + ", " + facts.kind;
  if (facts.mbit > 0) text += ", " + rate_text(static_cast<double>(facts.mbit) * 125e3);
  if (!facts.duplex.empty()) text += ", " + facts.duplex + " duplex";
  return text;
}

void judge_links(const Survey& survey, const std::vector<Used>& all,
                 std::vector<Finding>& findings) {
  std::int64_t fastest = 0;
  for (const Used& used : all) fastest = std::max(fastest, used.facts->mbit);
  Listing good;
  for (const Used& used : all) {
    const InterfaceFacts& facts = *used.facts;
    const std::string text = who(survey, {used.machine}) + ": " + link_text(facts);
    const auto add = [&](Verdict verdict, const std::string& what, const std::string& remedy) {
      findings.push_back({"link", verdict, text + what, {used.machine}, remedy});
    };
    if (facts.duplex == "half")
      add(Verdict::spoils, "",
          "Let both ends negotiate: set the switch's port to auto, and `sudo ethtool -s " +
              facts.name + " autoneg on`.");
    else if (facts.kind == "wireless")
      add(Verdict::slower, "", "Use a cable: all machines share the air, both ways.");
    else if (facts.mbit > 0 && facts.mbit < fastest)
      add(Verdict::slower, ", where others have " + rate_text(static_cast<double>(fastest) * 125e3),
          "Change the cable (all four pairs are needed for a gigabit) or the port of the switch.");
    else
      good.add(used, link_text(facts));
    // A cable that is sound damages nothing.
    if (facts.errors > 10 &&
        static_cast<double>(facts.errors) > 1e-5 * static_cast<double>(facts.packets))
      add(Verdict::slower,
          ": " + grouped(static_cast<std::int64_t>(facts.errors)) + " of " +
              grouped(static_cast<std::int64_t>(facts.packets)) + " packets were damaged",
          "Change the cable or the port; each damaged packet is waited for and sent again.");
  }
  if (!good.groups().empty())
    findings.push_back({"link", Verdict::ok, good.str(survey), machines_in(all), ""});
}

void judge_mtu(const Survey& survey, const std::vector<Used>& all, std::vector<Finding>& findings) {
  constexpr std::int64_t usual = 1500;
  Listing listing;
  std::set<std::int64_t> sizes;
  for (const Used& used : all) {
    listing.add(used, std::to_string(used.facts->mtu));
    sizes.insert(used.facts->mtu);
  }
  if (sizes.empty()) return;
  Finding finding{"MTU", Verdict::ok, listing.str(survey), machines_in(all), ""};
  if (sizes.size() > 1 || *sizes.begin() < usual) {
    // The usual value is that of most machines, unless it is small itself.
    const std::int64_t most = std::strtoll(listing.groups().front().value.c_str(), nullptr, 10);
    const std::string aim = std::to_string(std::max(usual, most));
    const bool differ = sizes.size() > 1;
    finding.verdict = differ ? Verdict::slower : Verdict::note;
    finding.machines.clear();
    std::string interface;
    for (const Used& used : all) {
      if (std::to_string(used.facts->mtu) == aim) continue;
      finding.machines.push_back(used.machine);
      interface = used.facts->name;
    }
    finding.remedy =
        (differ ? "Give every machine " : "If this is no tunnel, give every machine ") + aim +
        ", as root: `ip link set dev " + interface + " mtu " + aim +
        "`; small packets have more headers, and packets that are too large for one "
        "machine are lost.";
  }
  findings.push_back(finding);
}

/// Returns whether a queue discipline serves connections in turn, or holds nothing.
bool serves_in_turn(const std::string& queue) {
  static const std::set<std::string> good{"fq_codel", "fq", "cake", "sfq", "fq_pie", "noqueue"};
  const std::string prefix = "mq of ";
  return good.count(queue) > 0 ||
         (queue.rfind(prefix, 0) == 0 && good.count(queue.substr(prefix.size())) > 0);
}

void judge_queues(const Survey& survey, const std::vector<Used>& all,
                  std::vector<Finding>& findings) {
  static const std::set<std::string> shaping{"tbf", "netem", "htb", "hfsc", "cbq"};
  Listing good;
  std::map<std::string, Listing> bad;
  for (const Used& used : all) {
    const std::string& queue = used.facts->queue;
    if (queue.empty() || serves_in_turn(queue))
      good.add(used, queue.empty() ? "unknown" : queue);
    else
      bad[queue].add(used, queue + " on " + used.facts->name);
  }
  if (!good.groups().empty())
    findings.push_back({"queue", Verdict::ok, good.str(survey), machines_in(all), ""});
  for (auto& [queue, listing] : bad) {
    std::vector<std::size_t> machines;
    for (const Group& group : listing.groups())
      machines.insert(machines.end(), group.machines.begin(), group.machines.end());
    const std::string interface =
        listing.groups().front().value.substr(queue.size() + std::string(" on ").size());
    findings.push_back(
        {"queue", shaping.count(queue) > 0 ? Verdict::note : Verdict::slower, listing.str(survey),
         machines,
         shaping.count(queue) > 0
             ? "Somebody bounds or delays packets there; if that is not meant: `sudo tc qdisc del "
               "dev " +
                   interface + " root`."
             : "Connections may have unequal parts of the link: `sudo tc qdisc replace dev " +
                   interface + " root fq_codel`."});
  }
}

void judge_tcp(const Survey& survey, std::vector<Finding>& findings) {
  const std::vector<std::size_t> all = survey.all_present();
  if (all.empty()) return;
  const auto others =
      those(survey, [](const MachineFacts& facts) { return facts.congestion != "cubic"; });
  const std::vector<Group> groups =
      groups_by(survey, [](const MachineFacts& facts) { return facts.congestion; });
  findings.push_back(
      {"congestion", others.empty() ? Verdict::ok : Verdict::slower, listed(survey, groups),
       others.empty() ? all : others,
       others.empty() ? ""
                      : "Ranks take cubic where they may (docs/decisions/flow-control.md): `sudo "
                        "modprobe tcp_cubic; sudo sysctl "
                        "net.ipv4.tcp_allowed_congestion_control='reno cubic'`."});
  const auto forget = those(survey, [](const MachineFacts& facts) { return facts.forgets_pace; });
  findings.push_back(
      {"slow start", forget.empty() ? Verdict::ok : Verdict::slower,
       forget.empty()
           ? who(survey, all) + ": TCP keeps its pace in pauses"
           : who(survey, forget) + ": in a pause as long as a batch takes, TCP forgets its pace",
       forget.empty() ? all : forget,
       forget.empty() ? "" : "`sudo sysctl -w net.ipv4.tcp_slow_start_after_idle=0` there."});
}

}  // namespace

std::vector<Finding> interface_findings(const Survey& survey) {
  std::vector<Finding> findings;
  const std::vector<Used> all = used_interfaces(survey);
  judge_links(survey, all, findings);
  judge_mtu(survey, all, findings);
  judge_queues(survey, all, findings);
  judge_tcp(survey, findings);
  return findings;
}

}  // namespace duplex::tools
