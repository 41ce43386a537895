#include "net/topology/shard_map.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace duplex::net {
namespace {

/// Pieces begin on multiples of a cache line, so that two ranks' shares never meet within one.
constexpr std::size_t grain = 16;

std::size_t lightest(const std::vector<std::size_t>& loads) {
  return static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin());
}

/// Returns how much of `amount` each rank gets so that all end as level as can be: the lowest loads
/// are filled up first, as water would.
std::vector<std::size_t> level(const std::vector<std::size_t>& loads, std::size_t amount) {
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return loads[a] < loads[b]; });
  // The k lowest end at one height, (their loads + amount) / k, for the largest k that lowers none.
  std::size_t sum = 0, best_sum = 0, k = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += loads[order[i]];
    if (loads[order[i]] * (i + 1) <= sum + amount) {
      k = i + 1;
      best_sum = sum;
    }
  }
  std::vector<std::size_t> quota(loads.size(), 0);
  std::size_t left = amount;
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t height = (best_sum + amount) / k;
    const std::size_t want = i + 1 == k ? left : std::min(left, height - loads[order[i]]);
    quota[order[i]] = want;
    left -= want;
  }
  return quota;
}

std::size_t chunk_elements_of(std::size_t chunk_bytes) {
  const std::size_t elements = chunk_bytes / sizeof(float);
  if (elements < grain)
    throw Error("chunks of " + std::to_string(chunk_bytes) + " bytes: 64 is the least",
                Exit::usage);
  return elements;
}

}  // namespace

ServerMode parse_server_mode(const std::string& name) {
  if (name == "central") return ServerMode::central;
  if (name == "distributed") return ServerMode::distributed;
  throw Error("unknown server '" + name + "'; known: central, distributed", Exit::usage);
}

Shards parse_shards(const std::string& name) {
  if (name == "even") return Shards::even;
  if (name == "tensors") return Shards::tensors;
  throw Error("unknown shards '" + name + "'; known: even, tensors", Exit::usage);
}

const char* name_of(ServerMode mode) {
  return mode == ServerMode::central ? "central" : "distributed";
}

const char* name_of(Shards shards) {
  return shards == Shards::even ? "even" : "tensors";
}

ShardMap ShardMap::central(const std::vector<std::size_t>& counts, int server,
                           std::size_t chunk_bytes) {
  std::vector<std::vector<Piece>> pieces;
  pieces.reserve(counts.size());
  for (const std::size_t count : counts) pieces.push_back({{count, server}});
  return ShardMap(pieces, chunk_bytes);
}

ShardMap ShardMap::distributed(const std::vector<std::size_t>& counts, int ranks, Shards shards,
                               std::size_t chunk_bytes) {
  return ShardMap(
      shards == Shards::tensors ? deal_tensors(counts, ranks) : deal_even(counts, ranks),
      chunk_bytes);
}

std::vector<std::vector<ShardMap::Piece>> ShardMap::deal_tensors(
    const std::vector<std::size_t>& counts, int ranks) {
  std::vector<std::size_t> loads(static_cast<std::size_t>(ranks), 0);
  std::vector<std::vector<Piece>> pieces;
  for (const std::size_t count : counts) {
    const std::size_t owner = lightest(loads);
    loads[owner] += count;
    pieces.push_back({{count, static_cast<int>(owner)}});
  }
  return pieces;
}

std::vector<std::vector<ShardMap::Piece>> ShardMap::deal_even(
    const std::vector<std::size_t>& counts, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto whole = [&](std::size_t count) { return n == 1 || count < whole_below * n; };
  const std::size_t share = std::accumulate(counts.begin(), counts.end(), std::size_t{0}) / n;
  const std::size_t most = std::max(share, piece_least);
  std::vector<std::vector<Piece>> pieces(counts.size());
  std::vector<std::size_t> loads(n, 0);
  std::size_t to_cut = 0;
  for (std::size_t p = 0; p < counts.size(); ++p) {
    if (!whole(counts[p])) {
      to_cut += counts[p];
      continue;
    }
    const std::size_t parts = (counts[p] + most - 1) / most;
    std::size_t from = 0;
    for (std::size_t part = 1; part <= parts; ++part) {
      const std::size_t to = part == parts ? counts[p] : counts[p] * part / parts / grain * grain;
      const std::size_t owner = lightest(loads);
      loads[owner] += to - from;
      pieces[p].push_back({to - from, static_cast<int>(owner)});
      from = to;
    }
  }

  // Every large tensor is cut in the proportion of what the ranks still have to get, so that not
  // only the whole is even but nearly every layer, and rounding is made good by the tensors after
  // it.
  std::vector<std::size_t> quota = level(loads, to_cut);
  for (std::size_t p = 0; p < counts.size(); ++p) {
    const std::size_t count = counts[p];
    if (whole(count)) continue;
    std::size_t from = 0, before = 0;
    for (std::size_t rank = 0; rank < n; ++rank) {
      before += quota[rank];
      // 64 bits hold the product: both factors are below 2^32 for any model that fits into memory.
      std::size_t to =
          rank + 1 == n ? count : (count * before / to_cut + grain / 2) / grain * grain;
      to = std::clamp(to, from, count);
      if (to > from) pieces[p].push_back({to - from, static_cast<int>(rank)});
      const std::size_t got = to - from;
      loads[rank] += got;
      from = to;
    }
    // The quotas of the rest come from the loads as they are, so nobody's goes below 0.
    to_cut -= count;
    quota = level(loads, to_cut);
  }
  return pieces;
}

ShardMap ShardMap::among(const std::vector<std::size_t>& counts,
                         const std::vector<std::vector<int>>& members, int ranks, ServerMode group,
                         std::size_t chunk_bytes) {
  std::vector<std::size_t> loads(static_cast<std::size_t>(ranks), 0);
  const auto load = [&](int rank) -> std::size_t& { return loads[static_cast<std::size_t>(rank)]; };
  std::vector<std::vector<Piece>> pieces(counts.size());
  for (std::size_t p = 0; p < counts.size(); ++p) {
    const std::vector<int>& own = members[p];
    const std::size_t count = counts[p], n = own.size();
    if (group == ServerMode::central) {
      pieces[p].push_back({count, own.front()});
    } else if (count < whole_below * n || n == 1) {
      const int owner = *std::min_element(own.begin(), own.end(),
                                          [&](int a, int b) { return load(a) < load(b); });
      pieces[p].push_back({count, owner});
    } else {
      std::size_t from = 0;
      for (std::size_t i = 1; i <= n; ++i) {
        const std::size_t to = i == n ? count : count * i / n / grain * grain;
        pieces[p].push_back({to - from, own[i - 1]});
        from = to;
      }
    }
    for (const Piece& piece : pieces[p]) load(piece.owner) += piece.count;
  }
  ShardMap map(pieces, chunk_bytes);
  map.members_ = members;
  return map;
}

bool ShardMap::trains(int rank, std::size_t parameter) const {
  return members_.empty() ||
         std::binary_search(members_[parameter].begin(), members_[parameter].end(), rank);
}

ShardMap::ShardMap(const std::vector<std::vector<Piece>>& pieces, std::size_t chunk_bytes) {
  const std::size_t most = chunk_elements_of(chunk_bytes);
  std::size_t before = 0;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    std::size_t offset = 0, count = 0;
    for (const Piece& piece : pieces[p]) count += piece.count;
    std::uint32_t number = 0;
    for (const Piece& piece : pieces[p]) {
      // A piece is cut into equal chunks rather than full ones and a rest, so that none is so small
      // that its header and its wake-ups weigh.
      const std::size_t parts = (piece.count + most - 1) / most;
      for (std::size_t part = 0; part < parts; ++part) {
        const std::size_t from = piece.count * part / parts;
        const std::size_t to = piece.count * (part + 1) / parts;
        chunks_.push_back({static_cast<std::uint32_t>(p), number++, offset + from, to - from,
                           piece.owner, before + count * part / parts, chunks_.size()});
      }
      offset += piece.count;
    }
    before += count;
    first_.push_back(chunks_.size());
  }
}

std::size_t ShardMap::chunks_of(int rank) const {
  return static_cast<std::size_t>(std::count_if(
      chunks_.begin(), chunks_.end(), [rank](const Chunk& chunk) { return chunk.owner == rank; }));
}

std::size_t ShardMap::elements_of(int rank) const {
  std::size_t sum = 0;
  for (const Chunk& chunk : chunks_)
    if (chunk.owner == rank) sum += chunk.count;
  return sum;
}

std::size_t ShardMap::longest_of(int rank) const {
  std::size_t longest = 0;
  for (const Chunk& chunk : chunks_)
    if (chunk.owner == rank) longest = std::max(longest, chunk.count);
  return longest;
}

std::size_t ShardMap::elements() const {
  std::size_t sum = 0;
  for (const Chunk& chunk : chunks_) sum += chunk.count;
  return sum;
}

}  // namespace duplex::net
