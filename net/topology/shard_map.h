// Which rank owns which weights. Parameters are cut into chunks, the unit of transfer, of summing
// and of updating; a chunk has one owner. Every rank computes the same map from the same arguments.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace duplex::net {

/// Who holds the weights (spec: chapter 3): one rank all of them, or every rank a share.
enum class ServerMode { central, distributed };

/// How shares are cut: whole tensors by Algorithm 3.7, or equal shares of nearly every tensor.
enum class Shards { even, tensors };

ServerMode parse_server_mode(const std::string& name);  ///< Throws Error(Exit::usage).
Shards parse_shards(const std::string& name);           ///< Throws Error(Exit::usage).
const char* name_of(ServerMode mode);
const char* name_of(Shards shards);

struct Chunk {
  std::uint32_t parameter = 0;
  std::uint32_t number = 0;  ///< Within the parameter, from 0, in order of `offset`.
  std::size_t offset = 0;    ///< First element, within the parameter.
  std::size_t count = 0;     ///< Elements; never 0.
  int owner = 0;             ///< Rank.
  /// How far into the model, in elements: those of the parameters before, and of this one the part
  /// that lies before it in its owner's share. So chunks of different owners compare.
  std::size_t position = 0;
  std::size_t index = 0;  ///< In the ShardMap.

  std::size_t bytes() const { return count * sizeof(float); }
};

class ShardMap {
 public:
  /// Of distributed servers, and of a central one: the workers that share its link begin their next
  /// chunks at different moments, and choose the more alike the sooner they may choose again.
  static constexpr std::size_t default_chunk_bytes = std::size_t{512} << 10,
                               central_chunk_bytes = std::size_t{128} << 10;
  static constexpr std::size_t whole_below = 4096, piece_least = 65536;

  /// Every chunk belongs to `server`.
  static ShardMap central(const std::vector<std::size_t>& counts, int server,
                          std::size_t chunk_bytes = central_chunk_bytes);
  /// Shares for ranks 0 .. ranks-1.
  ///  - tensors: Algorithm 3.7. For each tensor in order: to the rank that holds the least so far.
  ///  - even: a tensor of `whole_below` elements for every rank, or more, is cut into a piece for
  ///  each;
  ///    smaller ones stay whole, or, where that is more than a share and than `piece_least`, are
  ///    cut into as few pieces as are not, and go to the rank that holds the least. The pieces for
  ///    each are sized so that they level what the others leave uneven: shares differ by 32
  ///    elements at most, or, where there is not enough to cut, by the largest of the others.
  static ShardMap distributed(const std::vector<std::size_t>& counts, int ranks, Shards shards,
                              std::size_t chunk_bytes = default_chunk_bytes);

  std::size_t parameters() const { return first_.size() - 1; }
  std::size_t chunks() const { return chunks_.size(); }
  const Chunk& operator[](std::size_t index) const { return chunks_[index]; }

  /// Chunks of a parameter are [first(p), first(p + 1)) in the table.
  std::size_t first(std::size_t parameter) const { return first_[parameter]; }
  /// Index in the table of a (parameter, number) pair that came over the wire; chunks() if there is
  /// no such chunk.
  std::size_t find(std::uint32_t parameter, std::uint32_t number) const;

  std::size_t chunks_of(int rank) const;
  std::size_t elements_of(int rank) const;
  std::size_t elements() const;

 private:
  struct Piece {
    std::size_t count = 0;
    int owner = 0;
  };
  /// `pieces[p]`: how parameter p is split among ranks, in order.
  ShardMap(const std::vector<std::vector<Piece>>& pieces, std::size_t chunk_bytes);
  static std::vector<std::vector<Piece>> deal_tensors(const std::vector<std::size_t>& counts,
                                                      int ranks);
  static std::vector<std::vector<Piece>> deal_even(const std::vector<std::size_t>& counts,
                                                   int ranks);

  std::vector<Chunk> chunks_;
  std::vector<std::size_t> first_{0};
};

}  // namespace duplex::net
