// A rank's part of a network that is cut over the ranks of a run.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/files/state_file.h"
#include "layers/exchange/host_parameters.h"
#include "layers/parts/cut_network.h"
#include "layers/parts/part_factors.h"
#include "layers/parts/part_spans.h"
#include "net/exchange/spec.h"
#include "tools/parts/part_computation.h"
#include "tools/plan/parallel.h"
#include "tools/tracing/trace.h"

namespace duplex::tools {

/// Returns layers as an exchange takes them.
std::vector<net::FactoredLayer> of_exchange(const std::vector<PartLinear>& layers,
                                            std::uint64_t micro_batches);

struct CutPartSpec {
  std::string command = "dist";  ///< Begins the messages of errors.
  std::string strategy;          ///< As ParallelSpec has these.
  std::string stages;
  std::uint64_t micro_batches = 1, in_flight = usual_in_flight;
  /// Whether layers of which several ranks have the same rows exchange factors.
  Factors factors = Factors::off;
  std::uint64_t step_samples = 0;  ///< Of all ranks together.
  /// The work that ranks are to have, each beside the others; empty: all have the same.
  std::vector<double> speeds;
  int rank = 0, ranks = 1;  ///< Rank 0 ends with the whole network.

  /// The cut that `parallel` asks for; `batch`: as ParallelSpec::share takes it.
  static CutPartSpec of(const ParallelSpec& parallel, std::int64_t batch, int ranks);
};

/// Returns those of the linear layers that ranks of `whole` share that exchange factors: where that
/// is left to the program, those whose factors of all samples, which every rank receives, are fewer
/// values than the gradient and the weights. Throws Error(usage) if factors are on and there are no
/// such layers.
std::vector<PartLinear> exchanging_factors(const CutPartSpec& spec, const Model& whole,
                                           std::vector<PartLinear> layers);

/// The layers of a rank's part whose gradients are exchanged as factors.
struct HostFactors {
  std::vector<Model::Linear> layers;  ///< By their numbers in the part.
  std::vector<std::size_t> samples;   ///< Of a step, by layer.
};

class CutPart {
 public:
  /// Cuts the network as the specification says, the same on every rank. Throws Error(usage) where
  /// it cannot be cut so.
  CutPart(const CutPartSpec& spec, const Model& whole);

  const CutNetwork& network() const { return network_; }
  const std::vector<PartSpan>& spans() const { return spans_; }
  /// The layers that are exchanged as factors, by their numbers among the spans.
  const std::vector<PartLinear>& factored() const { return factored_; }
  /// Those of a rank's part.
  HostFactors host_factors(int rank, const Model& part) const;
  const NetworkPart& part() const { return part_; }
  std::int64_t samples() const { return network_.placement().samples; }  ///< Of a micro-batch.
  /// The micro-batches whose activations a rank has at a time; rank 0 has the most.
  std::uint64_t in_flight(int rank) const;
  /// A few letters that differ where ranks, in different versions, have cut the network otherwise.
  std::string digest() const;
  /// "computes 12 of 34 layers, in part 3 of them"
  std::string text() const;
  /// Returns whether any loss is computed on a rank.
  bool has_loss(int rank) const;
  bool has_loss() const { return has_loss(spec_.rank); }

  /// Draws, or reads, the whole network's first values, calls `visit` with them as
  /// HostParameters::fill does, and keeps what belongs here: `host` has the part's parameters. On
  /// the first rank the others' have addresses, and no memory until their last weights come.
  void fill(HostParameters& host, std::uint64_t seed, const std::string& path,
            const VisitFirstValues& visit);
  /// Copies parameters and statistics to a network of the part.
  void load(const HostParameters& host, Network& network) const;

  /// The running statistics of a network of the part, as pieces of the whole network's:
  /// "bn1.mean[0:32]". The network must outlive them.
  static std::vector<StateArray> statistics_of(Network& network);

  /// Adds the members of parameters, the layers that are exchanged as factors and the routes of
  /// maps, on which all ranks agree.
  void add_to(net::ExchangeSpec& exchange, bool replays) const;
  LossRoutes loss_routes() const;
  /// Returns the names of parameters and routes in the trace of a run that is cut so.
  TraceNames trace_names() const;
  /// Between the part's parameters and the exchange. Call fill() before.
  PartExchange& exchange(const HostParameters& host);

  /// On the first rank: the weights of the whole network, those of other ranks' parameters as they
  /// came last.
  const HostParameters& whole_weights(const HostParameters& host);
  /// Returns how many values the running statistics of each rank's part have.
  std::vector<std::size_t> statistics_by_rank() const;
  /// Returns the running statistics of the whole network, in the order of its layers. `of_rank`
  /// returns those of a rank's part, so many of them, in the order of its layers; none: the rank
  /// has not reported them. Throws Error then.
  using StatisticsOf = std::function<std::vector<float>(int rank, std::size_t count)>;
  std::vector<float> whole_statistics(const StatisticsOf& of_rank) const;

 private:
  const CutPartSpec spec_;
  const CutNetwork network_;
  const NetworkPart part_;
  const std::vector<PartSpan> spans_;
  const std::vector<PartLinear> factored_;
  std::vector<int> losing_;  ///< Ranks other than the first that compute some loss.
  std::map<std::string, std::vector<float>> statistics_;  ///< First values, by their name here.
  std::unique_ptr<HostParameters> whole_;                 ///< On the first rank.
  std::unique_ptr<PartExchange> exchange_;
};

}  // namespace duplex::tools
