#include "tools/flags/ledger_flag.h"

#include <charconv>
#include <optional>
#include <string>

namespace duplex::tools {
namespace {

std::optional<net::FrameSample> parse(const std::string& text) {
  using Rule = net::FrameSample::Rule;
  if (text == "auto") return net::FrameSample{Rule::automatic};
  if (text == "all") return net::FrameSample{Rule::every};
  if (text == "sums") return net::FrameSample{Rule::none};
  const std::string begin = "sample:";
  if (text.compare(0, begin.size(), begin) != 0) return std::nullopt;
  net::FrameSample sample{Rule::every};
  const char *from = text.data() + begin.size(), *to = text.data() + text.size();
  const auto [end, error] = std::from_chars(from, to, sample.every);
  if (error != std::errc() || end != to || sample.every == 0) return std::nullopt;
  return sample;
}

}  // namespace

void add_ledger_flag(CommandLine& app, net::FrameSample& sample) {
  app.add_option_function(
         "--ledger", [&sample](const std::string& text) { sample = *parse(text); },
         "frames in ledger-RANK.csv: all; sample:K, those of every K-th step; sums, none; auto: "
         "all, and from 64 MiB on those of ever fewer steps, 384 MiB at most (default); "
         "traffic-RANK.csv has the sums of every step in any case")
      .check(Rule(
          [](std::string& text) -> std::string {
            if (parse(text)) return "";
            return "'" + text + "' is none of auto, all, sums and sample:K, where K is 1 or more";
          },
          "auto|all|sample:K|sums"));
}

}  // namespace duplex::tools
