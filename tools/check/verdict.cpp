#include "tools/check/verdict.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace duplex::tools {

std::vector<Finding> findings_of(const Survey& survey) {
  std::vector<Finding> all;
  for (const auto judge :
       {presence_findings, machine_findings, interface_findings, way_findings, rate_findings}) {
    std::vector<Finding> some = judge(survey);
    std::move(some.begin(), some.end(), std::back_inserter(all));
  }
  // A subject of which no machine has said anything has no finding.
  all.erase(std::remove_if(all.begin(), all.end(),
                           [](const Finding& finding) { return finding.text.empty(); }),
            all.end());
  return all;
}

Verdict worst(const std::vector<Finding>& findings) {
  Verdict verdict = Verdict::ok;
  for (const Finding& finding : findings) verdict = std::max(verdict, finding.verdict);
  return verdict;
}

}  // namespace duplex::tools
