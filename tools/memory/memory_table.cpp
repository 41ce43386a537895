#include "tools/memory/memory_table.h"

#include <algorithm>

#include "tools/text/size.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

std::string cell(std::size_t bytes) {
  return bytes > 0 ? mebibytes(bytes) : "";
}

/// The table of one kind of memory. `title` heads the column of uses.
std::string table_of(const std::string& title, const std::vector<RankMemory>& ranks,
                     MemoryUse RankMemory::*memory) {
  std::vector<std::pair<std::string, Table::Align>> columns{{title, Table::Align::left}};
  for (const RankMemory& rank : ranks) columns.emplace_back(rank.role, Table::Align::right);
  Table table(columns);
  for (std::size_t index = 0; index < uses; ++index) {
    const auto use = static_cast<Use>(index);
    if (std::none_of(ranks.begin(), ranks.end(),
                     [&](const RankMemory& rank) { return (rank.*memory)[use] > 0; }))
      continue;
    std::vector<std::string> row{name_of(use)};
    for (const RankMemory& rank : ranks) row.push_back(cell((rank.*memory)[use]));
    table.row(row);
  }
  table.rule();
  std::vector<std::string> sums{"sum"};
  for (const RankMemory& rank : ranks) sums.push_back(cell((rank.*memory).sum()));
  table.row(sums);
  return table.str();
}

}  // namespace

std::string memory_table(const std::vector<RankMemory>& ranks) {
  const bool gpu = std::any_of(ranks.begin(), ranks.end(),
                               [](const RankMemory& rank) { return rank.device.sum() > 0; });
  if (!gpu) return table_of("MiB", ranks, &RankMemory::host);
  return table_of("MiB of the GPU", ranks, &RankMemory::device) + "\n" +
         table_of("MiB of the host", ranks, &RankMemory::host) +
         "Batches are pinned, and weights and gradients to exchange.\n";
}

std::string layer_memory_table(const NetworkMemory& network) {
  Table table({{"MiB", Table::Align::left},
               {"parameters", Table::Align::right},
               {"output", Table::Align::right},
               {"gradient", Table::Align::right},
               {"kept", Table::Align::right}});
  LayerMemory sum;
  for (const LayerMemory& layer : network.layers) {
    table.row({layer.name, cell(layer.parameters), cell(layer.activation), cell(layer.gradient),
               cell(layer.kept)});
    sum.parameters += layer.parameters;
    sum.activation += layer.activation;
    sum.gradient += layer.gradient;
    sum.kept += layer.kept;
  }
  table.rule();
  table.row(
      {"sum", cell(sum.parameters), cell(sum.activation), cell(sum.gradient), cell(sum.kept)});
  return table.str() + "Outputs and gradients that are not needed at the same time share memory: " +
         mebibytes(network.arena) + " MiB for all.\n";
}

}  // namespace duplex::tools
