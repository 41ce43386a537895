#include "tools/launch/probing.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/error.h"
#include "tools/launch/children.h"
#include "tools/launch/hosts.h"
#include "tools/launch/run_key.h"

namespace duplex::tools {

std::string check_advice(const TogetherResult& result, const std::string& nodefile,
                         const std::string& ssh, const Place& place) {
  constexpr int no_way = 255;  // ssh's exit code.
  const bool apart = std::any_of(result.ends.begin(), result.ends.end(), [](const RankEnd& end) {
    return end.alone || (!end.began && end.code == no_way);
  });
  if (!apart) return "";
  // check starts itself at the same path and in the same folder everywhere, which is where
  // launch --deploy has put it.
  const bool deployed =
      place.folder != same_place().folder && std::filesystem::exists(place.program);
  const std::string folder = deployed ? "cd " + joined({place.folder}) + " && " : "";
  std::vector<std::string> words{
      deployed ? place.program : "duplex", "check", "--nodefile",
      deployed ? std::filesystem::absolute(nodefile).string() : nodefile};
  if (ssh != "ssh") words.insert(words.end(), {"--ssh", ssh});
  return "`" + folder + joined(words) + "` looks for what keeps the machines apart";
}

void probe_machines(const ProbeSpec& spec) {
  std::vector<bool> here;
  for (const net::Address& node : spec.nodes) here.push_back(is_here(node.host));
  const auto first = std::find(here.begin(), here.end(), true);
  if (first == here.end())
    throw Error("plan: this machine is none of the nodefile's: run plan on one of them",
                Exit::usage);
  std::vector<std::string> words = spec.words;
  std::optional<RunKey> key;
  if (!spec.has_key && std::find(here.begin(), here.end(), false) == here.end()) {
    key.emplace();
    words.insert(words.end(), {"--key", key->path()});
  }
  std::vector<std::vector<std::string>> commands;
  for (std::size_t rank = 0; rank < spec.nodes.size(); ++rank) {
    std::vector<std::string> probe{"probe"};
    probe.insert(probe.end(), words.begin(), words.end());
    probe.insert(probe.end(), {"--nodefile", spec.nodefile, "--index", std::to_string(rank)});
    if (static_cast<std::ptrdiff_t>(rank) == first - here.begin())
      probe.insert(probe.end(), {"--output", spec.output});
    if (!here[rank])
      for (std::string& word : probe)
        if (const auto other = spec.there.find(word); other != spec.there.end())
          word = other->second;
    commands.push_back(command_on(spec.nodes[rank].host, spec.ssh, std::move(probe), spec.place));
  }
  TogetherRules rules;
  rules.needed = [](std::size_t) { return true; };
  const TogetherResult result = run_together(commands, rules);
  if (result.code == 0) return;
  const std::string advice = check_advice(result, spec.nodefile, spec.ssh, spec.place);
  std::string lost, numbers;
  for (std::size_t rank = 0; rank < result.ends.size(); ++rank) {
    if (result.ends[rank].code == 0 || result.ends[rank].began) continue;
    lost += (lost.empty() ? "" : ", ") + spec.nodes[rank].str();
    numbers += (numbers.empty() ? "" : ",") + std::to_string(rank);
  }
  throw Error("plan: the machines could not be measured" +
                  (lost.empty() ? std::string(", for the reason above")
                                : ": " + lost + " did not start; --without " + numbers +
                                      " plans for the others") +
                  (advice.empty() ? "" : "; " + advice),
              static_cast<Exit>(result.code >= 1 && result.code <= 4 ? result.code : 1));
}

}  // namespace duplex::tools
