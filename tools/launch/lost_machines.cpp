#include "tools/launch/lost_machines.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace duplex::tools {

std::vector<std::string> LostMachines::note(const std::vector<net::Address>& nodes,
                                            const std::vector<RankEnd>& ends) {
  constexpr int no_way = 255;  // ssh's exit code.
  std::set<std::string> unreached, began;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const std::string& host = nodes[rank].host;
    if (ends[rank].began) began.insert(host);
    if (!ends[rank].began && ends[rank].code == no_way && !is_here_(host)) unreached.insert(host);
  }
  if (unreached.empty() && !began.empty())
    for (const net::Address& node : nodes)
      if (began.count(node.host) == 0 && !is_here_(node.host)) unreached.insert(node.host);
  std::vector<std::string> lost;
  for (const net::Address& node : nodes)
    if (unreached.count(node.host) == 0) failed_.erase(node.host);
  for (const std::string& host : unreached)
    if (++failed_[host] >= failed_starts) lost.push_back(host);
  return lost;
}

std::vector<int> numbers_of(const std::vector<net::Address>& nodes,
                            const std::vector<std::string>& hosts) {
  std::vector<int> numbers;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (std::find(hosts.begin(), hosts.end(), nodes[i].host) != hosts.end())
      numbers.push_back(static_cast<int>(i));
  return numbers;
}

std::vector<std::size_t> numbers_left(std::size_t count, const std::vector<int>& numbers,
                                      const std::string& what) {
  const std::set<int> out(numbers.begin(), numbers.end());
  if (out.size() != numbers.size())
    throw Error("--without " + listed(numbers) + " names a rank twice", Exit::usage);
  if (!out.empty() && (*out.begin() < 0 || *out.rbegin() >= static_cast<int>(count)))
    throw Error("--without " + listed(numbers) + ": " + what + " has ranks 0 to " +
                    std::to_string(count - 1),
                Exit::usage);
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < count; ++i)
    if (out.count(static_cast<int>(i)) == 0) left.push_back(i);
  if (left.empty())
    throw Error("--without " + listed(numbers) + " leaves nothing of " + what, Exit::usage);
  return left;
}

std::string listed(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

}  // namespace duplex::tools
