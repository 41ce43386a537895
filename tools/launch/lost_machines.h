// Notices machines that do not come back, so that a run may start without them.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "net/wire/address.h"
#include "tools/launch/children.h"

namespace duplex::tools {

class LostMachines {
 public:
  /// So many starts in a row on a machine must fail.
  static constexpr int failed_starts = 2;

  /// Whether an address is this machine's, which is never lost.
  using IsHere = std::function<bool(const std::string& host)>;
  explicit LostMachines(IsHere is_here) : is_here_(std::move(is_here)) {}

  /// Notes how ranks at these places have ended. Returns the hosts that are lost by now, each once.
  ///
  /// A start has failed where ssh found no way to the machine, that is, ended with 255 before the
  /// rank said anything. Where that is so of none, it has failed on machines of which no rank said
  /// anything, though others did: ssh may wait longer for an answer than the others wait for their
  /// peer.
  std::vector<std::string> note(const std::vector<net::Address>& nodes,
                                const std::vector<RankEnd>& ends);

 private:
  IsHere is_here_;
  std::map<std::string, int> failed_;  ///< By host: starts in a row.
};

/// The numbers of the nodes of these hosts.
std::vector<int> numbers_of(const std::vector<net::Address>& nodes,
                            const std::vector<std::string>& hosts);
/// The numbers below `count` but those given, in order. Throws Error(Exit::usage) for one that is
/// not below it, or is there twice, and if nothing is left; the message calls it all `what`.
std::vector<std::size_t> numbers_left(std::size_t count, const std::vector<int>& numbers,
                                      const std::string& what);
/// The nodes but those of such numbers. Throws as numbers_left() does.
template <class Node>
std::vector<Node> without(const std::vector<Node>& nodes, const std::vector<int>& numbers,
                          const std::string& what) {
  std::vector<Node> left;
  for (const std::size_t number : numbers_left(nodes.size(), numbers, what))
    left.push_back(nodes[number]);
  return left;
}
/// "2,3".
std::string listed(const std::vector<int>& numbers);

}  // namespace duplex::tools
