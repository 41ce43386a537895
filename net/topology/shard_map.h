// The shard map says which rank owns which weights, and which ranks train with them. Parameters are
// cut into chunks, the unit of transfer, of summing and of updating; a chunk has one owner. Every
// rank computes the same map from the same arguments.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::net {

/// Says whether one rank holds all weights or every rank holds a share (thesis, chapter 3).
enum class ServerMode { central, distributed };

/// Says how shares are cut: whole tensors by Algorithm 3.7, or equal shares of nearly every tensor.
enum class Shards { even, tensors };

ServerMode parse_server_mode(const std::string& name);  ///< Throws Error(Exit::usage).
Shards parse_shards(const std::string& name);           ///< Throws Error(Exit::usage).
const char* name_of(ServerMode mode);
const char* name_of(Shards shards);

struct Chunk {
  std::uint32_t parameter = 0;
  std::uint32_t number = 0;  ///< Number within the parameter, from 0, in the order of `offset`.
  std::size_t offset = 0;    ///< First element within the parameter.
  std::size_t count = 0;     ///< Elements; never 0.
  int owner = 0;             ///< The rank that owns it.
  /// Says how far into the model the chunk lies, in elements: those of the parameters before, and
  /// of this parameter the part that lies before the chunk in its owner's share. So chunks of
  /// different owners can be compared.
  std::size_t position = 0;
  std::size_t index = 0;  ///< Index in the ShardMap.

  std::size_t bytes() const { return count * sizeof(float); }
};

class ShardMap {
 public:
  /// Sizes of chunks with a distributed server and with a central one. Workers share a central
  /// server's link and begin their next chunks at different moments; the sooner each may choose
  /// again which chunk comes next, the more alike they choose, so its chunks are smaller.
  static constexpr std::size_t default_chunk_bytes = std::size_t{512} << 10,
                               central_chunk_bytes = std::size_t{128} << 10;
  static constexpr std::size_t whole_below = 4096, piece_least = 65536;

  /// Every chunk belongs to `server`.
  static ShardMap central(const std::vector<std::size_t>& counts, int server,
                          std::size_t chunk_bytes = central_chunk_bytes);
  /// Deals shares to ranks 0 .. ranks-1.
  ///  - tensors: Algorithm 3.7: each tensor in order goes to the rank that holds the least so far.
  ///  - even: a tensor of at least `whole_below` elements for every rank is cut into a piece for
  ///    each rank. A smaller one stays whole and goes to the rank that holds the least; if it is
  ///    larger than a share and than `piece_least`, it is cut into as few pieces as are not, and
  ///    they go so. The pieces for each rank are sized so that they level what the others leave
  ///    uneven: shares differ by 32 elements at most, or, if there is not enough to cut, by the
  ///    largest of the others.
  static ShardMap distributed(const std::vector<std::size_t>& counts, int ranks, Shards shards,
                              std::size_t chunk_bytes = default_chunk_bytes);

  /// The ranks that train with each parameter, by parameter, ascending: a network is cut, and ranks
  /// have parts of it. `group`: with distributed, each of them owns an equal share of the
  /// parameter, or of a small one the rank that holds the least has all; with central, the first of
  /// them is the server of the others, and owns all of it.
  static ShardMap among(const std::vector<std::size_t>& counts,
                        const std::vector<std::vector<int>>& members, int ranks,
                        ServerMode group = ServerMode::distributed,
                        std::size_t chunk_bytes = default_chunk_bytes);

  /// Returns whether a rank trains with a parameter.
  bool trains(int rank, std::size_t parameter) const;
  /// The ranks that do; null: all workers.
  const std::vector<int>* members(std::size_t parameter) const {
    return members_.empty() ? nullptr : &members_[parameter];
  }
  /// The same of all parameters, by parameter; empty: all workers train with all of them.
  const std::vector<std::vector<int>>& all_members() const { return members_; }

  std::size_t parameters() const { return first_.size() - 1; }
  std::size_t chunks() const { return chunks_.size(); }
  const Chunk& operator[](std::size_t index) const { return chunks_[index]; }

  /// The chunks of a parameter are [first(p), first(p + 1)) in the table.
  std::size_t first(std::size_t parameter) const { return first_[parameter]; }
  /// Returns the chunk of a (parameter, number) pair that came over the wire; null if there is
  /// none.
  const Chunk* find(std::uint32_t parameter, std::uint32_t number) const {
    if (parameter + std::size_t{1} >= first_.size()) return nullptr;
    const std::size_t index = first_[parameter] + number;
    return index < first_[parameter + 1] ? &chunks_[index] : nullptr;
  }

  std::size_t chunks_of(int rank) const;
  std::size_t elements_of(int rank) const;
  std::size_t longest_of(int rank) const;  ///< Elements of the longest chunk of a rank.
  std::size_t elements() const;

 private:
  struct Piece {
    std::size_t count = 0;
    int owner = 0;
  };
  /// `pieces[p]` says how parameter p is split among ranks, in order.
  ShardMap(const std::vector<std::vector<Piece>>& pieces, std::size_t chunk_bytes);
  static std::vector<std::vector<Piece>> deal_tensors(const std::vector<std::size_t>& counts,
                                                      int ranks);
  static std::vector<std::vector<Piece>> deal_even(const std::vector<std::size_t>& counts,
                                                   int ranks);

  std::vector<Chunk> chunks_;
  std::vector<std::size_t> first_{0};
  std::vector<std::vector<int>> members_;
};

}  // namespace duplex::net
