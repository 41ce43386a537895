// Machines that have something in common, and how they are called.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/check/survey.h"

namespace duplex::tools {

/// Those that have the same value, in their order.
struct Group {
  std::string value;
  std::vector<std::size_t> machines;
};

/// The machines that have answered, by a value of theirs: the largest group first.
std::vector<Group> groups_by(const Survey& survey,
                             const std::function<std::string(const MachineFacts&)>& value);

/// Those that have answered and for which `is` is true.
std::vector<std::size_t> those(const Survey& survey,
                               const std::function<bool(const MachineFacts&)>& is);

/// Names machines: "all 16", "all but lab3", "lab1, lab2".
std::string who(const Survey& survey, const std::vector<std::size_t>& machines);

/// "WHO: VALUE; WHO: VALUE".
std::string listed(const Survey& survey, const std::vector<Group>& groups);

}  // namespace duplex::tools
