#include "tools/launch/slurm_lists.h"

#include <algorithm>

#include "core/error.h"
#include "net/topology/topology.h"

namespace duplex::tools {
namespace {

constexpr std::size_t longest = net::most_ranks;
/// DNS allows no longer name.
constexpr std::size_t longest_name = 253;

/// The number, of at most nine digits; -1 for anything else.
int number_of(const std::string& digits) {
  const bool good = !digits.empty() && digits.size() <= 9 &&
                    digits.find_first_not_of("0123456789") == std::string::npos;
  return good ? std::stoi(digits) : -1;
}

Error no_list(const std::string& list, const std::string& why) {
  return Error("'" + list + "' is no list as Slurm writes it: " + why, Exit::usage);
}

/// Cuts at the commas outside of brackets. Brackets come in pairs afterwards, none within another.
std::vector<std::string> cut(const std::string& list) {
  std::vector<std::string> items(1);
  bool inside = false;
  for (const char letter : list) {
    if (letter == (inside ? '[' : ']')) {
      throw no_list(list, std::string("'") + letter + "' stands where none may");
    }
    if (letter == '[' || letter == ']') inside = letter == '[';
    if (letter == ',' && !inside) {
      items.emplace_back();
    } else {
      items.back() += letter;
    }
  }
  if (inside) throw no_list(list, "']' is missing");
  if (std::any_of(items.begin(), items.end(), [](const auto& item) { return item.empty(); })) {
    throw no_list(list, "an entry is empty");
  }
  return items;
}

/// Expands the text between brackets, such as "01-03,7". `list` is for messages.
std::vector<std::string> numbers_of(const std::string& ranges, const std::string& list) {
  std::vector<std::string> numbers;
  for (const std::string& range : cut(ranges)) {
    const auto dash = range.find('-');
    const std::string low = range.substr(0, dash);
    const int first = number_of(low);
    const int last = dash == std::string::npos ? first : number_of(range.substr(dash + 1));
    if (first < 0 || last < first) throw no_list(list, "'" + range + "' is no range");
    if (static_cast<std::size_t>(last - first) >= longest - std::min(numbers.size(), longest))
      throw no_list(list, "it is too long");
    for (int number = first; number <= last; ++number) {
      const std::string digits = std::to_string(number);
      numbers.push_back(std::string(low.size() - std::min(low.size(), digits.size()), '0') +
                        digits);
    }
  }
  return numbers;
}

}  // namespace

std::vector<std::string> expand_hosts(const std::string& list) {
  std::vector<std::string> hosts;
  for (const std::string& item : cut(list)) {
    std::vector<std::string> names(1);
    std::size_t at = 0;
    for (auto open = item.find('['); open != std::string::npos; open = item.find('[', at)) {
      const auto close = item.find(']', open);
      const auto numbers = numbers_of(item.substr(open + 1, close - open - 1), list);
      if (names.size() * numbers.size() > longest) throw no_list(list, "it is too long");
      std::vector<std::string> longer;
      for (const std::string& name : names) {
        for (const std::string& number : numbers) {
          longer.push_back(name + item.substr(at, open - at) + number);
          if (longer.back().size() > longest_name) throw no_list(list, "a name is too long");
        }
      }
      names = std::move(longer);
      at = close + 1;
    }
    for (const std::string& name : names) {
      hosts.push_back(name + item.substr(at));
      if (hosts.back().size() > longest_name) throw no_list(list, "a name is too long");
    }
    if (hosts.size() > longest) throw no_list(list, "it is too long");
  }
  return hosts;
}

std::vector<int> expand_counts(const std::string& list) {
  std::vector<int> counts;
  for (const std::string& item : cut(list)) {
    const auto times = item.find("(x");
    const int count = number_of(item.substr(0, times));
    int repeats = 1;
    if (times != std::string::npos) {
      repeats =
          item.back() == ')' ? number_of(item.substr(times + 2, item.size() - times - 3)) : -1;
    }
    if (count < 0 || repeats < 1) throw no_list(list, "'" + item + "' is no count");
    if (counts.size() + static_cast<std::size_t>(repeats) > longest) {
      throw no_list(list, "it is too long");
    }
    counts.insert(counts.end(), static_cast<std::size_t>(repeats), count);
  }
  return counts;
}

}  // namespace duplex::tools
