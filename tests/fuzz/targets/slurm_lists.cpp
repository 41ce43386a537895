// The lists of hosts and of counts in Slurm's environment.
#include "tools/launch/slurm_lists.h"

#include <algorithm>
#include <cctype>

#include "tests/fuzz/target.h"

namespace duplex::fuzz {
namespace {

/// Returns whether the list has a number of four digits, or several ranges, and so perhaps
/// thousands of hosts.
bool is_long(const std::string& list) {
  if (std::count(list.begin(), list.end(), '-') > 2) return true;
  int digits = 0;
  return std::any_of(list.begin(), list.end(), [&](unsigned char letter) {
    digits = std::isdigit(letter) != 0 ? digits + 1 : 0;
    return digits >= 4;
  });
}

}  // namespace

void slurm_lists(const Bytes& input) {
  const std::string text = text_of(input);
  // A long list takes milliseconds, and there are few ways to write one.
  if (is_long(text) && !is_sampled(input)) return;
  // A list of a few letters may stand for 65,536 hosts, whose names have up to 253 letters.
  constexpr std::size_t hosts = 65536, all = std::size_t{128} << 20;
  reads(input, all / std::max<std::size_t>(input.size(), 1), [&] {
    for (const std::string& host : tools::expand_hosts(text))
      require(!host.empty(), "a host has no name");
  });
  reads(input, 8, [&] { require(tools::expand_counts(text).size() <= hosts, "a list is long"); });
}

}  // namespace duplex::fuzz
