// The copies that ranks keep of one another's parts of checkpoints, from the side of one rank
// (docs/decisions/training.md).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "layers/exchange/host_parameters.h"
#include "net/exchange/exchange.h"
#include "net/topology/keepers.h"
#include "tools/checkpoint/checkpoint_files.h"
#include "tools/dist/dist_spec.h"

namespace duplex::tools {

/// This says who keeps whose copies in a run.
net::Keepers keepers_of(const DistSpec& spec);
/// The owners whose parts `rank` keeps copies of. A worker that averages weights with an optimiser
/// that has a state is kept by nobody: that state stays its own.
std::vector<int> kept_by(const DistSpec& spec, int rank);

/// A keeper that trains has the weights of all chunks itself. Over the wire comes what it lacks:
/// the owner's running statistics, and the optimiser's state of its chunks; their weights, too,
/// where those that workers get are rounded.
class RankCopies {
 public:
  /// The copy of an owner's part, as far as this rank has it.
  struct Copy {
    int owner = 0;
    std::vector<StateArray> weights;  ///< By chunk, in their order.
  };

  /// `host` and `map` must outlive it.
  RankCopies(const DistSpec& spec, const HostParameters& host, const net::ShardMap& map);

  /// Sets `exchange` up. `added`: what a worker of this network writes beside chunks; it names the
  /// arrays that others' parts have as well. Call it before the exchange is made.
  void prepare(const std::vector<StateArray>& added, net::ExchangeSpec& exchange);

  bool keeps_any() const { return !kept_.empty(); }

  /// Sends what the keeper of this rank's part lacks, if there is one. Call
  /// ParameterExchange::await_state_sent() before. `arrays`: this rank's part.
  void send(net::ParameterExchange& wire, std::uint64_t steps,
            const std::vector<StateArray>& arrays) const;

  /// Copies the kept weights from the host's memory, where they are of a checkpoint now.
  std::vector<Copy> copies() const;
  /// Waits for what comes over the wire and writes the copies. Where the run ends before it is all
  /// here, there is no copy. Returns what went wrong, or "".
  std::string write(const CheckpointFiles& files, std::uint64_t steps,
                    const std::vector<Copy>& copies,
                    const CheckpointFiles::Metadata& metadata) const;
  /// Parts that have come over the wire.
  std::uint64_t parts() const { return inbox_->parts(); }

  /// When the run has failed: calls `write` with the copies that can be made of what this rank has,
  /// and the rounds that their weights are of.
  void rescue(const net::ParameterExchange& wire,
              const std::function<void(std::uint64_t round, const Copy& copy)>& write) const;
  /// Writes a copy of rescue(). Throws Error if it cannot.
  void write_rescued(const CheckpointFiles& files, std::uint64_t steps, const Copy& copy,
                     const CheckpointFiles::Metadata& metadata) const;

 private:
  Copy copy_of(int owner) const;
  std::size_t state_values(int owner) const;
  std::vector<StateArray> whole(const Copy& copy, std::vector<float> state) const;

  const DistSpec& spec_;
  const HostParameters& host_;
  const net::ShardMap& map_;
  const std::vector<int> kept_;
  const int keeper_;    ///< Of this rank's part; -1: nobody.
  const bool rounded_;  ///< Whether the weights that workers get are rounded.
  std::vector<std::string> states_;
  std::vector<std::pair<std::string, Shape>> added_;
  const std::shared_ptr<net::StateInbox> inbox_ = std::make_shared<net::StateInbox>();
};

}  // namespace duplex::tools
