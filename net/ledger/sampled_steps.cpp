#include "net/ledger/sampled_steps.h"

#include <algorithm>

namespace duplex::net {
namespace {

/// "2nd", "11th".
std::string ordinal(std::uint64_t number) {
  const std::uint64_t last = number % 10;
  const bool teen = number % 100 / 10 == 1;
  const char* end = teen ? "th" : last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th";
  return std::to_string(number) + end;
}

}  // namespace

SampledSteps::SampledSteps(const FrameSample& sample, std::uint64_t first_step)
    : automatic_(sample.rule == FrameSample::Rule::automatic), newest_(first_step) {
  std::uint64_t every = 1;
  if (sample.rule == FrameSample::Rule::every) every = sample.every;
  if (sample.rule == FrameSample::Rule::none) every = 0;
  stretches_.push_back({first_step, every});
}

bool SampledSteps::has(std::uint64_t step) const {
  const auto stretch = std::find_if(stretches_.rbegin(), stretches_.rend() - 1,
                                    [&](const SampledStretch& each) { return each.from <= step; });
  return stretch->every != 0 && step % stretch->every == 0;
}

bool SampledSteps::wrote(std::uint64_t bytes) {
  bytes_ += bytes;
  if (!automatic_ || bytes_ < next_) return false;
  SampledStretch fewer{newest_ + 1, stretches_.back().every};
  for (; bytes_ >= next_; next_ += more_bytes) fewer.every *= 2;
  if (next_ > most_bytes) {
    fewer.every = 0;
    automatic_ = false;
  }
  if (stretches_.back().from == fewer.from && stretches_.size() > 1)
    stretches_.back() = fewer;
  else
    stretches_.push_back(fewer);
  return true;
}

std::string SampledSteps::text() const {
  const SampledStretch &first = stretches_.front(), &last = stretches_.back();
  const auto steps = [](const SampledStretch& stretch) -> std::string {
    if (stretch.every == 0) return "none";
    return stretch.every == 1 ? "all" : "every " + ordinal(stretch.every) + " step";
  };
  if (stretches_.size() == 1) return steps(first);
  std::string text = "steps " + std::to_string(first.from) + " to " +
                     std::to_string(stretches_[1].from - 1) + ", then ";
  if (stretches_.size() > 2) text += "ever fewer, from step " + std::to_string(last.from) + " on ";
  return text + (last.every == 0 ? "none" : "every " + ordinal(last.every));
}

}  // namespace duplex::net
