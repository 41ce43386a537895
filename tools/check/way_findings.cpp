// Judges whether machines find and reach each other, and what time it is on each.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/clock.h"
#include "net/rendezvous/host_names.h"
#include "tools/check/groups.h"
#include "tools/check/verdict.h"
#include "tools/text/quartiles.h"

namespace duplex::tools {
namespace {

void judge_names(const Survey& survey, std::vector<Finding>& findings) {
  const std::vector<std::size_t> present = survey.all_present();
  if (present.empty()) return;
  bool good = true;
  for (std::size_t named = 0; named < survey.machines.size(); ++named) {
    const std::string& host = survey.machines[named].host;
    std::map<std::string, std::vector<std::size_t>> loopback, unknown;
    for (const std::size_t on : present) {
      const RouteFacts& route = survey.facts[on].routes[named];
      if (!route.trouble.empty())
        unknown[route.trouble].push_back(on);
      else if (survey.machines.size() > 1 && !net::means_loopback(host) &&
               net::means_loopback(route.address))
        loopback[route.address].push_back(on);
    }
    for (const auto& [address, on] : loopback)
      findings.push_back(
          {"names", Verdict::spoils,
           host + " is " + address + " on " + who(survey, on) + ", which no other machine reaches",
           on, "Write its address into the nodefile, or mend /etc/hosts there."});
    for (const auto& [trouble, on] : unknown)
      findings.push_back({"names", Verdict::spoils, "on " + who(survey, on) + ": " + trouble, on,
                          "Write its address into the nodefile, or a line for it into /etc/hosts "
                          "there."});
    good = good && loopback.empty() && unknown.empty();
  }
  if (good)
    findings.push_back({"names", Verdict::ok,
                        who(survey, present) + ": every name stands for an address", present, ""});
}

void judge_ports(const Survey& survey, std::vector<Finding>& findings) {
  std::vector<std::size_t> good;
  for (const std::size_t machine : survey.all_present()) {
    for (const std::string& trouble : survey.facts[machine].closed)
      findings.push_back({"ports",
                          Verdict::spoils,
                          who(survey, {machine}) + ": " + trouble,
                          {machine},
                          "End what has the port (`duplex launch stop --nodefile FILE` if it is "
                          "an old run), or name another: host:port."});
    if (survey.facts[machine].closed.empty()) good.push_back(machine);
  }
  if (!good.empty())
    findings.push_back(
        {"ports", Verdict::ok, who(survey, good) + ": free, and listened at", good, ""});
}

/// Calls that ended in the same way, from or to the same machine.
struct Blocked {
  Call call;
  std::string trouble;
  std::vector<std::size_t> from, to;
  std::int64_t port;
};

std::string call_remedy(const Blocked& blocked) {
  const std::string port = std::to_string(blocked.port);
  switch (blocked.call) {
    case Call::unreachable:
      return "A firewall there refuses, or there is no route: `sudo firewall-cmd --add-port=" +
             port + "/tcp` or `sudo ufw allow " + port +
             "/tcp` on the machine that is called; "
             "`ip route get` on the one that calls.";
    case Call::refused:
      return "A firewall refuses, or the name leads to another machine: `sudo firewall-cmd "
             "--add-port=" +
             port + "/tcp` or `sudo ufw allow " + port +
             "/tcp` on the machine that is called, and compare its address.";
    case Call::unanswered:
      return "A firewall drops the packets: `sudo firewall-cmd --add-port=" + port +
             "/tcp` or `sudo ufw allow " + port + "/tcp` on the machine that is called.";
    default:
      return "Another program answers there, or the name leads to another machine: compare the "
             "addresses.";
  }
}

std::string call_text(const Survey& survey, const Blocked& blocked) {
  const std::string trouble = blocked.call == Call::unanswered ? "no answer" : blocked.trouble;
  return who(survey, blocked.from) + " to " + who(survey, blocked.to) + ", port " +
         std::to_string(blocked.port) + ": " + trouble;
}

/// Returns whether a name means loopback where it is listened at or called, which is a finding of
/// its own.
bool is_misled(const Survey& survey, std::size_t from, std::size_t to) {
  const auto loops = [&](std::size_t on) {
    return net::means_loopback(survey.facts[on].routes[to].address);
  };
  return loops(from) != loops(to);
}

/// Puts together what has failed in the same way: all that call one machine, and then all machines
/// that the same ones have called.
std::vector<Blocked> blocked_calls(const Survey& survey) {
  std::vector<Blocked> all;
  const std::vector<std::size_t> present = survey.all_present();
  for (const std::size_t to : present) {
    if (!survey.facts[to].closed.empty()) continue;  // That has been said.
    std::vector<Blocked> here;
    for (const std::size_t from : present) {
      const CallFacts* call = survey.call(from, to);
      if (call == nullptr || call->call == Call::met || is_misled(survey, from, to)) continue;
      const auto same = std::find_if(here.begin(), here.end(), [&](const Blocked& each) {
        return each.call == call->call && each.trouble == call->trouble && each.port == call->port;
      });
      if (same == here.end())
        here.push_back({call->call, call->trouble, {from}, {to}, call->port});
      else
        same->from.push_back(from);
    }
    for (const Blocked& each : here) {
      const auto same = std::find_if(all.begin(), all.end(), [&](const Blocked& other) {
        return other.call == each.call && other.trouble == each.trouble &&
               other.port == each.port && other.from == each.from;
      });
      if (same == all.end())
        all.push_back(each);
      else
        same->to.push_back(to);
    }
  }
  return all;
}

void judge_calls(const Survey& survey, std::vector<Finding>& findings) {
  std::size_t met = 0, called = 0;
  const std::vector<std::size_t> present = survey.all_present();
  for (const std::size_t from : present)
    for (const std::size_t to : present)
      if (const CallFacts* call = survey.call(from, to)) {
        ++called;
        met += call->call == Call::met ? 1 : 0;
      }
  for (const Blocked& blocked : blocked_calls(survey)) {
    std::vector<std::size_t> machines = blocked.from;
    machines.insert(machines.end(), blocked.to.begin(), blocked.to.end());
    // Ranks call those of lower numbers.
    const bool needed = *std::max_element(blocked.from.begin(), blocked.from.end()) >
                        *std::min_element(blocked.to.begin(), blocked.to.end());
    findings.push_back({"firewall", needed ? Verdict::spoils : Verdict::note,
                        call_text(survey, blocked), machines,
                        needed ? call_remedy(blocked)
                               : "In this order of the nodefile nobody calls in this direction; in "
                                 "another it would spoil a run."});
  }
  if (called > 0 && met == called)
    findings.push_back({"firewall", Verdict::ok,
                        "none in the way: each reached each, on the ranks' ports", present, ""});
}

/// A time of day against that of the first machine, in seconds.
struct TimeOffset {
  double ahead = 0.0, error = 0.0;
};

/// Returns offsets by machine; none: it is not known.
std::vector<std::optional<TimeOffset>> time_offsets(const Survey& survey) {
  std::vector<std::optional<TimeOffset>> offsets(survey.machines.size());
  const std::vector<std::size_t> present = survey.all_present();
  if (present.empty()) return offsets;
  offsets[present.front()] = TimeOffset();
  // From machine to machine, since some may not have reached the first one.
  for (bool more = true; more;) {
    more = false;
    for (const std::size_t from : present)
      for (const CallFacts& call : survey.calls[from]) {
        const auto to = static_cast<std::size_t>(call.peer);
        if (call.call != Call::met || !survey.present(to)) continue;
        // Both sides' times of day, by their monotonic clocks, which the call has compared.
        const double ahead = seconds(survey.facts[to].clock_ahead_ns) -
                             seconds(survey.facts[from].clock_ahead_ns) + seconds(call.offset_ns);
        const auto follow = [&](std::size_t a, std::size_t b, double by) {
          if (!offsets[a] || offsets[b]) return;
          offsets[b] =
              TimeOffset{offsets[a]->ahead + by, offsets[a]->error + seconds(call.error_ns)};
          more = true;
        };
        follow(from, to, ahead);
        follow(to, from, -ahead);
      }
  }
  return offsets;
}

void judge_clocks(const Survey& survey, std::vector<Finding>& findings) {
  constexpr double much = 1.0;
  const auto offsets = time_offsets(survey);
  const std::vector<std::size_t> present = survey.all_present();
  if (present.empty()) return;
  std::vector<double> known;
  for (const std::size_t machine : present)
    if (offsets[machine]) known.push_back(offsets[machine]->ahead);
  // Most clocks are right, or as good as right.
  const double middle = quartiles_of(known).median;
  std::vector<std::size_t> wrong;
  std::string text;
  double widest = 0.0, error = 0.0;
  for (const std::size_t machine : present) {
    if (!offsets[machine]) continue;
    const double off = offsets[machine]->ahead - middle;
    widest = std::max(widest, std::abs(off));
    error = std::max(error, offsets[machine]->error);
    if (std::abs(off) < much) continue;
    wrong.push_back(machine);
    text += (text.empty() ? "" : "; ") + who(survey, {machine}) + ": " +
            duration_text(std::abs(off)) + (off > 0 ? " ahead" : " behind");
  }
  const auto loose = those(survey, [](const MachineFacts& facts) { return !facts.synchronised; });
  const std::string follow = loose.empty() ? "" : "; not synchronised: " + who(survey, loose);
  if (!wrong.empty())
    findings.push_back({"clocks", Verdict::note, text + follow, wrong,
                        "Ranks measure with clocks of their own, which they compare; files' times "
                        "and logs mislead: `sudo timedatectl set-ntp true`."});
  else if (known.size() > 1)
    findings.push_back({"clocks", Verdict::ok,
                        "no more than " + duration_text(widest) +
                            " from what most have (known to " + duration_text(error) + ")" + follow,
                        present, ""});
  else
    findings.push_back({"clocks", Verdict::ok, "nothing to compare" + follow, present, ""});
}

}  // namespace

std::vector<Finding> way_findings(const Survey& survey) {
  std::vector<Finding> findings;
  judge_clocks(survey, findings);
  judge_names(survey, findings);
  judge_ports(survey, findings);
  judge_calls(survey, findings);
  return findings;
}

}  // namespace duplex::tools
