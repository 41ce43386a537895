// The results that the thesis states (chapters 4 and 6 to 8), and what became of them here.
#pragma once
#include <string>
#include <vector>

#include "tools/report/thesis/thesis_data.h"

namespace duplex::tools::reports {

struct Verdict {
  std::string where;                 ///< In the thesis: "sections 6.3 and 7.1".
  std::vector<std::string> figures;  ///< Those of chapter 6 that show it; none: it is of most.
  std::string statement;             ///< In its words, shortened.
  std::string found;                 ///< Numbers of this machine.
  enum { confirmed, refuted, open } outcome = open;

  bool is_of(const std::string& figure) const;
  std::string place() const;  ///< "sections 6.3 and 7.1; figures 6.3, 6.10".
  std::string text() const;   ///< The outcome, for people.
};
/// All of them: first those of one network, then those of all.
std::vector<Verdict> verdicts(const Thesis& thesis);

/// Those of measured speedups.
std::vector<Verdict> speedup_verdicts(const Thesis& thesis);
/// Those of estimates and costs.
std::vector<Verdict> estimate_verdicts(const Thesis& thesis);

}  // namespace duplex::tools::reports
