#include "net/store/applied_steps.h"

#include <algorithm>

#include "core/error.h"

namespace duplex::net {
namespace {

/// Reads the number that begins at `at`, and sets `at` behind it.
std::uint64_t number(const std::string& text, std::size_t& at) {
  const std::size_t end = std::min(text.find('+', at), text.size());
  const std::string digits = text.substr(at, end - at);
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos)
    throw Error("'" + text.substr(0, 100) + "' says of no steps that they were applied");
  at = end;
  return std::stoull(digits);
}

}  // namespace

void AppliedSteps::add(std::uint64_t step) {
  if (has(step)) return;
  later_.insert(step);
  while (!later_.empty() && *later_.begin() == before_) {
    later_.erase(later_.begin());
    ++before_;
  }
}

/// All sets have the steps before the least of their first missing ones. Behind it, what all have
/// is in any of them: the one whose first missing step is the least has only its later ones there.
std::vector<StepRange> missing_of(const std::vector<AppliedSteps>& sets, const StepRange& steps) {
  std::vector<StepRange> missing;
  std::uint64_t from = steps.first;
  const AppliedSteps* least = nullptr;
  for (const AppliedSteps& set : sets)
    if (least == nullptr || set.first_missing() < least->first_missing()) least = &set;
  if (least != nullptr) from = std::max(from, least->first_missing());
  const auto all_have = [&](std::uint64_t step) {
    return std::all_of(sets.begin(), sets.end(),
                       [step](const AppliedSteps& set) { return set.has(step); });
  };
  if (least != nullptr)
    for (const std::uint64_t step : least->later()) {
      if (step < from || step >= steps.end || !all_have(step)) continue;
      if (from < step) missing.push_back({from, step});
      from = step + 1;
    }
  if (from < steps.end) missing.push_back({from, steps.end});
  return missing;
}

std::string AppliedSteps::text() const {
  std::string text = std::to_string(before_);
  for (const std::uint64_t step : later_) text += "+" + std::to_string(step);
  return text;
}

AppliedSteps AppliedSteps::parse(const std::string& text) {
  std::size_t at = 0;
  AppliedSteps steps(number(text, at));
  while (at < text.size()) steps.add(number(text, ++at));
  return steps;
}

}  // namespace duplex::net
