#include "tools/partition/cut_table.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/text/table.h"

namespace duplex::tools {
namespace {

constexpr std::size_t longest_name = 26;

/// The end of a name that is too long for a table.
std::string shortened(const std::string& name) {
  return name.size() <= longest_name ? name : "..." + name.substr(name.size() - longest_name + 3);
}

std::string if_any(std::int64_t bytes) {
  return bytes == 0 ? "" : megabytes(bytes);
}

std::string percent(double part) {
  return part <= 0.0 ? "" : std::to_string(std::lround(100.0 * part));
}

/// "samples 4", "channels 4", "samples 2 x channels 2", "rank 3", or "mixed": a unit that is no
/// grid.
std::string way_of(const Tiles& tiles, std::size_t unit, const Cut& cut) {
  // Shards that have their blocks on the same ranks are one part of the batch.
  std::set<std::vector<int>> by_shard, by_block;
  std::set<int> ranks;
  for (int shard = 0; shard < tiles.shards(); ++shard) {
    std::vector<int> column;
    for (int block = 0; block < tiles.blocks(unit); ++block)
      column.push_back(cut.parts[tiles.number(unit, block, shard)]);
    ranks.insert(column.begin(), column.end());
    by_shard.insert(std::move(column));
  }
  for (int block = 0; block < tiles.blocks(unit); ++block) {
    std::vector<int> row;
    for (int shard = 0; shard < tiles.shards(); ++shard)
      row.push_back(cut.parts[tiles.number(unit, block, shard)]);
    by_block.insert(std::move(row));
  }
  if (ranks.size() == 1) return "rank " + std::to_string(*ranks.begin());
  if (by_shard.size() * by_block.size() != ranks.size()) return "mixed";
  std::string samples = "samples " + std::to_string(by_shard.size());
  std::string channels = "channels " + std::to_string(by_block.size());
  if (by_block.size() == 1) return samples;
  return by_shard.size() == 1 ? channels : samples + " x " + channels;
}

}  // namespace

std::string megabytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes) * 1e-6;
  return value < 1000.0 ? fixed(value, 1) : grouped(std::llround(value));
}

std::string strategy_table(const std::vector<Cut>& cuts, const Speeds& speeds, double rate) {
  std::vector<std::pair<std::string, Table::Align>> columns{
      {"strategy", Table::Align::left},   {"all send", Table::Align::right},
      {"/ data", Table::Align::right},    {"one sends", Table::Align::right},
      {"imbalance", Table::Align::right}, {"weights", Table::Align::right},
      {"maps", Table::Align::right}};
  if (rate > 0.0) columns.emplace_back("s, least", Table::Align::right);
  Table table(std::move(columns));
  for (const Cut& cut : cuts) {
    std::int64_t weights = 0, maps = 0;
    for (const CutShare& rank : cut.ranks) {
      weights = std::max(weights, rank.parameters);
      maps = std::max(maps, rank.activations);
    }
    const auto data = static_cast<double>(cuts.front().bytes());
    std::vector<std::string> row{
        cut.strategy,
        megabytes(cut.bytes()),
        data > 0.0 ? fixed(static_cast<double>(cut.bytes()) / data, 2) : "",
        megabytes(cut.most_out()),
        fixed(100.0 * cut.imbalance(speeds), 1) + "%",
        megabytes(weights),
        megabytes(maps)};
    if (rate > 0.0) row.push_back(fixed(cut.least_seconds(speeds, rate), 3));
    table.row(std::move(row));
  }
  return table.str();
}

std::string layer_table(const Tiles& tiles, const Cut& cut) {
  const bool by_rank = cut.ranks.size() <= most_rank_columns;
  std::vector<std::pair<std::string, Table::Align>> columns{{"layer", Table::Align::left}};
  for (std::size_t rank = 0; by_rank && rank < cut.ranks.size(); ++rank)
    columns.emplace_back(std::to_string(rank), Table::Align::right);
  if (!by_rank) columns.emplace_back("cut by", Table::Align::left);
  columns.emplace_back("maps sent", Table::Align::right);
  columns.emplace_back("weights sent", Table::Align::right);
  Table table(std::move(columns));
  const auto row = [&](const std::string& name, std::vector<std::string> middle,
                       const std::vector<CutShare>& shares) {
    const CutShare sum = sum_of(shares);
    middle.insert(middle.begin(), name);
    middle.push_back(if_any(sum.maps_sent()));
    middle.push_back(if_any(sum.weights_out));
    table.row(std::move(middle));
  };
  for (std::size_t unit = 0; unit < tiles.units().count(); ++unit) {
    std::vector<std::string> middle;
    if (by_rank) {
      for (const double part : parts_of(tiles, unit, cut)) middle.push_back(percent(part));
    } else {
      middle.push_back(way_of(tiles, unit, cut));
    }
    row(shortened(tiles.units()[unit].name), std::move(middle), cut.units[unit]);
  }
  table.rule();
  std::vector<std::string> middle;
  const auto all = static_cast<double>(sum_of(cut.ranks).work);
  for (const CutShare& rank : cut.ranks)
    if (by_rank) middle.push_back(percent(static_cast<double>(rank.work) / all));
  if (!by_rank) middle.emplace_back();
  row("all, by work", std::move(middle), cut.ranks);
  return table.str();
}

std::string layer_csv(const Tiles& tiles, const Cut& cut) {
  std::string text =
      "layer,rank,part,work,maps_out,maps_in,gradients_out,gradients_in,weights_out,weights_in,"
      "parameter_bytes,activation_bytes\n";
  for (std::size_t unit = 0; unit < tiles.units().count(); ++unit) {
    const std::vector<double> parts = parts_of(tiles, unit, cut);
    for (std::size_t rank = 0; rank < cut.ranks.size(); ++rank) {
      const CutShare& share = cut.units[unit][rank];
      if (parts[rank] == 0.0 && share.in() == 0 && share.out() == 0) continue;
      text += tiles.units()[unit].name + "," + std::to_string(rank) + "," + fixed(parts[rank], 4);
      for (const std::int64_t value :
           {share.work, share.maps_out, share.maps_in, share.gradients_out, share.gradients_in,
            share.weights_out, share.weights_in, share.parameters, share.activations})
        text += "," + std::to_string(value);
      text += "\n";
    }
  }
  return text;
}

std::string json_of(const Tiles& tiles, const std::vector<Cut>& cuts, const Cut& chosen,
                    const Speeds& speeds, double rate) {
  nlohmann::ordered_json json;
  json["strategies"] = nlohmann::ordered_json::array();
  for (const Cut& cut : cuts) {
    nlohmann::ordered_json each;
    each["strategy"] = cut.strategy;
    each["bytes"] = cut.bytes();
    each["imbalance"] = cut.imbalance(speeds);
    if (rate > 0.0) each["least_s"] = cut.least_seconds(speeds, rate);
    each["ranks"] = nlohmann::ordered_json::array();
    for (const CutShare& rank : cut.ranks)
      each["ranks"].push_back({{"work", rank.work},
                               {"bytes_out", rank.out()},
                               {"bytes_in", rank.in()},
                               {"parameter_bytes", rank.parameters},
                               {"activation_bytes", rank.activations}});
    json["strategies"].push_back(std::move(each));
  }
  json["strategy"] = chosen.strategy;
  json["layers"] = nlohmann::ordered_json::array();
  for (std::size_t unit = 0; unit < tiles.units().count(); ++unit) {
    nlohmann::ordered_json each;
    each["layer"] = tiles.units()[unit].name;
    each["cut"] = way_of(tiles, unit, chosen);
    each["parts"] = parts_of(tiles, unit, chosen);
    const CutShare sum = sum_of(chosen.units[unit]);
    each["map_bytes"] = sum.maps_sent();
    each["weight_bytes"] = sum.weights_out;
    json["layers"].push_back(std::move(each));
  }
  return json.dump(2) + "\n";
}

}  // namespace duplex::tools
