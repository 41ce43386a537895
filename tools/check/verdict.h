// Judges machines: findings, each with a verdict.
#pragma once
#include <string>
#include <vector>

#include "tools/check/survey.h"

namespace duplex::tools {

/// From harmless to harmful.
enum class Verdict {
  ok,
  note,    ///< It is good to know, and costs nothing by itself.
  slower,  ///< A run works, and takes longer or may.
  spoils,  ///< A run does not start, breaks off, or takes twice as long.
};

inline std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::note:
      return "note";
    case Verdict::slower:
      return "slower";
    case Verdict::spoils:
      return "spoils";
    default:
      return "ok";
  }
}

struct Finding {
  std::string subject;  ///< "memory".
  Verdict verdict = Verdict::ok;
  std::string text;                   ///< It says what was found, and on which machines.
  std::vector<std::size_t> machines;  ///< Which it is about.
  std::string remedy;                 ///< In a sentence; empty where there is nothing to mend.
};

/// A link below this part of what is usual makes a run slower, and one below the other spoils it:
/// all wait for the slowest.
constexpr double good_part = 0.8, poor_part = 0.5;

/// Each judges some facts, and gives one finding of every subject at least. Texts of machines come
/// out as they were told; whoever shows them makes them printable.
std::vector<Finding> presence_findings(const Survey& survey);
std::vector<Finding> machine_findings(const Survey& survey);
std::vector<Finding> interface_findings(const Survey& survey);
std::vector<Finding> way_findings(const Survey& survey);
std::vector<Finding> rate_findings(const Survey& survey);

/// All of them, in the order in which they are shown.
std::vector<Finding> findings_of(const Survey& survey);

/// The worst verdict of all.
Verdict worst(const std::vector<Finding>& findings);

}  // namespace duplex::tools
