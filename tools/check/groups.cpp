#include "tools/check/groups.h"

#include <algorithm>

namespace duplex::tools {
namespace {

std::string names(const Survey& survey, const std::vector<std::size_t>& machines) {
  std::string text;
  for (const std::size_t machine : machines)
    text += (text.empty() ? "" : ", ") + survey.machines[machine].host;
  return text;
}

}  // namespace

std::vector<Group> groups_by(const Survey& survey,
                             const std::function<std::string(const MachineFacts&)>& value) {
  std::vector<Group> groups;
  for (const std::size_t machine : survey.all_present()) {
    const std::string own = value(survey.facts[machine]);
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& each) { return each.value == own; });
    if (group == groups.end()) group = groups.insert(groups.end(), {own, {}});
    group->machines.push_back(machine);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.machines.size() > b.machines.size();
  });
  return groups;
}

std::vector<std::size_t> those(const Survey& survey,
                               const std::function<bool(const MachineFacts&)>& is) {
  std::vector<std::size_t> found;
  for (const std::size_t machine : survey.all_present())
    if (is(survey.facts[machine])) found.push_back(machine);
  return found;
}

std::string who(const Survey& survey, const std::vector<std::size_t>& machines) {
  constexpr std::size_t few = 3;
  const std::vector<std::size_t> present = survey.all_present();
  if (machines.size() == present.size() && machines.size() > 1)
    return "all " + std::to_string(machines.size());
  if (machines.size() > few && present.size() - machines.size() <= few) {
    std::vector<std::size_t> others;
    for (const std::size_t machine : present)
      if (std::find(machines.begin(), machines.end(), machine) == machines.end())
        others.push_back(machine);
    return "all but " + names(survey, others);
  }
  return names(survey, machines);
}

std::string listed(const Survey& survey, const std::vector<Group>& groups) {
  std::string text;
  for (const Group& group : groups)
    text += (text.empty() ? "" : "; ") + who(survey, group.machines) + ": " + group.value;
  return text;
}

}  // namespace duplex::tools
