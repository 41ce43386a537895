// Judges each machine by itself, and beside the others: program, cores, load, memory, disk, GPU.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "tools/check/groups.h"
#include "tools/check/verdict.h"
#include "tools/launch/hosts.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U, gib = std::uint64_t{1} << 30U;

std::string size_text(std::uint64_t bytes) {
  return bytes < 10 * gib ? fixed(static_cast<double>(bytes) / gib, 1) + " GiB"
                          : std::to_string(bytes / gib) + " GiB";
}

/// "5.5 GiB to 12 GiB".
std::string range_text(const Survey& survey,
                       const std::function<std::uint64_t(const MachineFacts&)>& bytes) {
  std::uint64_t least = UINT64_MAX, most = 0;
  for (const std::size_t machine : survey.all_present()) {
    least = std::min(least, bytes(survey.facts[machine]));
    most = std::max(most, bytes(survey.facts[machine]));
  }
  const std::string low = size_text(least), high = size_text(most);
  return low == high ? low : low + " to " + high;
}

std::string cores_text(double cores) {
  return fixed(cores, 1);
}

/// The finding that all machines agree, or a worse one that lists who has which value.
Finding agreement(const Survey& survey, const std::string& subject, Verdict otherwise,
                  const std::string& remedy,
                  const std::function<std::string(const MachineFacts&)>& value) {
  const std::vector<Group> groups = groups_by(survey, value);
  Finding finding{subject, Verdict::ok, listed(survey, groups), survey.all_present(), ""};
  if (groups.size() <= 1) return finding;
  finding.verdict = otherwise;
  finding.remedy = remedy;
  finding.machines.clear();
  for (std::size_t i = 1; i < groups.size(); ++i)
    finding.machines.insert(finding.machines.end(), groups[i].machines.begin(),
                            groups[i].machines.end());
  return finding;
}

void judge_program(const Survey& survey, std::vector<Finding>& findings) {
  const auto protocol = [](const MachineFacts& facts) { return std::to_string(facts.protocol); };
  const bool one_protocol = groups_by(survey, protocol).size() <= 1;
  findings.push_back(
      agreement(survey, "duplex", one_protocol ? Verdict::slower : Verdict::spoils,
                std::string(one_protocol ? "Results may differ by rounding, and times do"
                                         : "They do not understand each other") +
                    ": copy one build to every machine.",
                [&](const MachineFacts& facts) {
                  return facts.version + " (" + facts.commit + ")" +
                         (one_protocol ? "" : ", protocol " + protocol(facts));
                }));
  // "oneDNN 2.6.3, avx2, 4 threads": the threads are the cores, of which there is another line.
  findings.push_back(agreement(
      survey, "backend", Verdict::note,
      "Results may differ by rounding; a machine with older instructions computes more slowly.",
      [](const MachineFacts& facts) {
        return facts.backend.substr(0, facts.backend.rfind(", "));
      }));
  findings.push_back(agreement(survey, "kernel", Verdict::note,
                               "Nothing has to be done, unless times differ, too.",
                               [](const MachineFacts& facts) { return facts.kernel; }));
}

void judge_cores(const Survey& survey, std::vector<Finding>& findings) {
  const auto limit = [](const MachineFacts& facts) {
    return std::min(static_cast<double>(facts.usable),
                    facts.quota.value_or(static_cast<double>(facts.cores)));
  };
  findings.push_back(agreement(
      survey, "cores", Verdict::slower,
      "All wait for the machine with the least: give every one its part, dist --share auto.",
      [&](const MachineFacts& facts) {
        const double most = limit(facts);
        const auto whole = static_cast<std::int64_t>(most);
        const std::string count =
            static_cast<double>(whole) == most ? std::to_string(whole) : cores_text(most);
        return count + (facts.processor.empty() ? "" : " of " + facts.processor);
      }));
  const auto kept = those(survey, [&](const MachineFacts& facts) {
    return limit(facts) < static_cast<double>(facts.cores);
  });
  for (const std::size_t machine : kept) {
    const MachineFacts& facts = survey.facts[machine];
    const bool quota = facts.quota && *facts.quota < static_cast<double>(facts.usable);
    findings.push_back({"cores",
                        quota ? Verdict::slower : Verdict::note,
                        who(survey, {machine}) + ": a process may use " + cores_text(limit(facts)) +
                            " of " + std::to_string(facts.cores) + " cores" +
                            (quota ? ", by its control group" : ""),
                        {machine},
                        quota ? "Give dist --threads " +
                                    std::to_string(std::max(1, static_cast<int>(*facts.quota))) +
                                    " there, or raise the limit (systemctl set-property "
                                    "user.slice CPUQuota=)."
                              : "It is as it should be where others need the rest; otherwise look "
                                "for taskset, a container or a batch system."});
  }
}

void judge_load(const Survey& survey, std::vector<Finding>& findings) {
  const auto is_busy = [](const MachineFacts& facts) {
    return facts.busy >= std::max(0.25, 0.1 * static_cast<double>(facts.usable));
  };
  const auto is_stolen = [](const MachineFacts& facts) {
    return facts.stolen >= std::max(0.1, 0.05 * static_cast<double>(facts.usable));
  };
  const std::vector<std::size_t> busy = those(survey, is_busy), stolen = those(survey, is_stolen);
  std::string by_others, by_hosts;
  for (const std::size_t machine : busy) {
    const MachineFacts& facts = survey.facts[machine];
    by_others += (by_others.empty() ? "" : ", ") + survey.machines[machine].host + " " +
                 cores_text(facts.busy) + " of " + std::to_string(facts.usable);
    if (facts.busiest_cores >= 0.1)
      by_others += " (" + facts.busiest + " " + cores_text(facts.busiest_cores) + ")";
  }
  for (const std::size_t machine : stolen)
    by_hosts += (by_hosts.empty() ? "" : ", ") + survey.machines[machine].host + " " +
                cores_text(survey.facts[machine].stolen);
  if (!busy.empty())
    findings.push_back({"load", Verdict::slower, "others keep cores busy: " + by_others, busy,
                        "All wait for a machine that others use: end what runs there (top), or "
                        "leave it out."});
  if (!stolen.empty())
    findings.push_back({"load", Verdict::slower,
                        "virtual machines, whose hosts give cores to others: " + by_hosts, stolen,
                        "Ask whoever runs the hosts for cores of their own, or leave them out."});
  if (busy.empty() && stolen.empty() && !survey.all_present().empty())
    findings.push_back({"load", Verdict::ok, who(survey, survey.all_present()) + ": idle",
                        survey.all_present(), ""});
}

void judge_memory(const Survey& survey, std::vector<Finding>& findings) {
  constexpr std::uint64_t little = gib, hardly_any = 256 * mib;
  const auto low =
      those(survey, [](const MachineFacts& facts) { return facts.available < little; });
  for (const std::size_t machine : low) {
    const std::uint64_t left = survey.facts[machine].available;
    findings.push_back({"memory",
                        left < hardly_any ? Verdict::spoils : Verdict::note,
                        who(survey, {machine}) + ": " + std::to_string(left / mib) + " MiB of " +
                            size_text(survey.facts[machine].memory) + " are free",
                        {machine},
                        "End programs there; duplex nets NET --memory --batch B says what a "
                        "training takes."});
  }
  const auto swapped = those(survey, [](const MachineFacts& facts) {
    return facts.swapped > gib && facts.available < 4 * gib;
  });
  if (!swapped.empty())
    findings.push_back({"memory", Verdict::slower,
                        who(survey, swapped) + ": more than 1 GiB of programs lies in swap",
                        swapped, "It has been too full: end programs there."});
  if (low.empty() && swapped.empty() && !survey.all_present().empty())
    findings.push_back(
        {"memory", Verdict::ok,
         who(survey, survey.all_present()) + ": " +
             range_text(survey, [](const MachineFacts& facts) { return facts.available; }) +
             " free",
         survey.all_present(), ""});
}

void judge_disks(const Survey& survey, std::vector<Finding>& findings) {
  constexpr std::uint64_t little = gib, hardly_any = 100 * mib;
  std::set<std::string> paths;
  for (const std::size_t machine : survey.all_present())
    for (const DiskFacts& disk : survey.facts[machine].disks) paths.insert(disk.path);
  for (const std::string& path : paths) {
    std::vector<std::size_t> good;
    std::uint64_t least = UINT64_MAX;
    for (const std::size_t machine : survey.all_present()) {
      for (const DiskFacts& disk : survey.facts[machine].disks) {
        if (disk.path != path) continue;
        if (disk.trouble.empty() && disk.free_bytes >= little) {
          good.push_back(machine);
          least = std::min(least, disk.free_bytes);
          continue;
        }
        const bool spoils = !disk.trouble.empty() || disk.free_bytes < hardly_any;
        findings.push_back(
            {"disk",
             spoils ? Verdict::spoils : Verdict::note,
             who(survey, {machine}) + ": " + path + ": " +
                 (disk.trouble.empty() ? std::to_string(disk.free_bytes / mib) + " MiB are free"
                                       : "nobody can write there: " + disk.trouble),
             {machine},
             disk.trouble.empty()
                 ? "Make room: runs write their records, and checkpoints of all weights."
                 : "Make it writable for you, or start everything from another folder."});
      }
    }
    if (!good.empty())
      findings.push_back({"disk", Verdict::ok,
                          who(survey, good) + ": " + path + ": " + size_text(least) +
                              (good.size() > 1 ? " free or more" : " free"),
                          good, ""});
  }
}

std::string gpus_text(const MachineFacts& facts) {
  if (facts.gpus.empty() && facts.usable_gpus == 0) return "none";
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& name : facts.gpus) {
    const auto same = std::find_if(counts.begin(), counts.end(),
                                   [&](const auto& each) { return each.first == name; });
    if (same == counts.end())
      counts.emplace_back(name, 1);
    else
      ++same->second;
  }
  std::string text;
  for (const auto& [name, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " x " + name;
  if (text.empty()) text = std::to_string(facts.usable_gpus) + " that duplex finds";
  return text + (facts.driver.empty() ? "" : ", driver " + facts.driver);
}

void judge_gpus(const Survey& survey, std::vector<Finding>& findings) {
  findings.push_back(agreement(
      survey, "GPU", Verdict::note,
      "With --device cuda all wait for the slowest, and a machine without one fails: leave it out, "
      "or train on the CPU.",
      gpus_text));
  for (const std::size_t machine :
       those(survey, [](const MachineFacts& facts) { return !facts.gpu_trouble.empty(); }))
    findings.push_back({"GPU",
                        Verdict::note,
                        who(survey, {machine}) +
                            ": duplex does not compute on it: " + survey.facts[machine].gpu_trouble,
                        {machine},
                        "Mend that before you give --device cuda (docs/gpu.md); the CPU does "
                        "without."});
}

/// Returns the remedy for a machine that has not answered, by how the command there has ended.
std::string absence_remedy(const Absence& absence, const std::string& host) {
  switch (absence.code) {
    case -1:
      return "Install ssh on this machine (package openssh-client or openssh-clients), or say with "
             "--ssh where it is.";
    case 255:
      return "`ssh -o BatchMode=yes " + joined({host}) +
             " true` must succeed: switch the machine on, mend its name or network, or let it take "
             "your key (ssh-copy-id).";
    case 126:
    case 127:
      return "Put the same build there, at the same path as here: " + own_path() + ".";
    case 2:
      return "Make the same folder there as this one, with the same build in it; an older one "
             "knows "
             "no check.";
    default:
      return "The same folder and the same build must be there, and `ssh " +
             joined({host, own_path(), "--version"}) + "` must answer at once.";
  }
}

}  // namespace

std::vector<Finding> presence_findings(const Survey& survey) {
  std::vector<Finding> findings;
  for (std::size_t machine = 0; machine < survey.machines.size(); ++machine)
    if (!survey.present(machine))
      findings.push_back({"reached",
                          Verdict::spoils,
                          survey.machines[machine].host + ": " + survey.absent[machine]->reason,
                          {machine},
                          absence_remedy(*survey.absent[machine], survey.machines[machine].host)});
  const std::vector<std::size_t> present = survey.all_present();
  const bool some = present.size() < survey.machines.size();
  if (!present.empty())
    findings.push_back({"reached", Verdict::ok,
                        some ? "the other " + std::to_string(present.size()) : who(survey, present),
                        present, ""});
  return findings;
}

std::vector<Finding> machine_findings(const Survey& survey) {
  std::vector<Finding> findings;
  judge_program(survey, findings);
  judge_cores(survey, findings);
  judge_load(survey, findings);
  judge_memory(survey, findings);
  judge_disks(survey, findings);
  judge_gpus(survey, findings);
  return findings;
}

}  // namespace duplex::tools
