// The answer of a plan, for people: does it pay, and how?
#pragma once
#include <optional>
#include <string>

#include "tools/planning/search.h"

namespace duplex::tools {

/// One sentence: "Pays: 4.08 times as fast on 8 machines with join-distributed."
std::string verdict(const Situation& situation, const SearchResult& found,
                    const std::optional<BreakEven>& break_even);

/// What else there is to know about it, each on a line: the result that it has, from where on it
/// pays, what faster ways change, which machines stay out, what shares by speed gain.
std::string remarks(const Situation& situation, const SearchResult& found,
                    const std::optional<BreakEven>& break_even);

/// The ways, the fastest first; without `every`, those that another order, whole tensors or
/// semaphores do not make faster. Within 80 columns, as a rule.
std::string table_of(const Situation& situation, const SearchResult& found, bool every);

/// Two strategies side by side, term by term.
std::string comparison(const Situation& situation, const Evaluation& a, const Evaluation& b);

/// A row for each way, with everything that is known of it; the first line names the columns.
std::string csv_of(const Situation& situation, const SearchResult& found);
std::string json_of(const Situation& situation, const SearchResult& found,
                    const std::optional<BreakEven>& break_even);

}  // namespace duplex::tools
