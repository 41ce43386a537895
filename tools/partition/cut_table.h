// Cuts of a network as tables and as JSON.
#pragma once
#include <string>
#include <vector>

#include "tools/partition/cut.h"

namespace duplex::tools {

/// The megabytes that a table shows: "12.3", "1,234" without tenths from a thousand on.
std::string megabytes(std::int64_t bytes);

/// A row for each strategy: the bytes of an iteration, and the most that a rank sends and holds.
/// `rate`: bytes a second of the links, for the least seconds; 0: work is no time, and they are
/// left out. Within 80 columns.
std::string strategy_table(const std::vector<Cut>& cuts, const Speeds& speeds, double rate);

/// The most ranks of which layer_table() shows the parts.
constexpr std::size_t most_rank_columns = 6;

/// A row for each unit: the percentage that each rank computes or, of more than most_rank_columns,
/// the way in which it is cut; and the bytes that ranks send for it. Within 80 columns.
std::string layer_table(const Tiles& tiles, const Cut& cut);

/// A row for each unit and rank that has some of it; the first line names the columns.
std::string layer_csv(const Tiles& tiles, const Cut& cut);

std::string json_of(const Tiles& tiles, const std::vector<Cut>& cuts, const Cut& chosen,
                    const Speeds& speeds, double rate);

}  // namespace duplex::tools
