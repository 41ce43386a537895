// The parameters of a network that is cut, as its ranks exchange them: rows of which the same ranks
// have all.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/exchange.h"
#include "core/mapped_memory.h"
#include "layers/exchange/host_parameters.h"
#include "layers/parts/cut_network.h"

namespace duplex {

/// Some rows of a trained parameter, and the ranks that train with them.
struct PartSpan {
  std::string name;           ///< "conv1.weight", or of some rows "conv1.weight[0:32]".
  std::size_t parameter = 0;  ///< Number in Model::trained() of the whole network.
  std::size_t first = 0;      ///< The parameter's elements before these.
  std::size_t count = 0;      ///< Elements.
  std::vector<int> members;   ///< Ranks, ascending.

  /// The parameter's name: "conv1.weight".
  std::string whole_name() const { return name.substr(0, name.find('[')); }
};

/// The same on every rank, in forward order.
std::vector<PartSpan> part_spans(const CutNetwork& cut);

/// Where a span's elements lie in a parameter of a rank's part.
struct SpanPlace {
  std::size_t parameter = 0;  ///< Number among the part's trained ones.
  std::size_t offset = 0;     ///< Elements of the parameter before them.
};

/// Returns the places of each span on a rank, whose part this is; none: it is not of this rank.
std::vector<std::vector<SpanPlace>> span_places(const std::vector<PartSpan>& spans, int rank,
                                                const Model& part);

/// Gives the spans their memory on one rank, and stands between the rank's part, whose parameters
/// go by their numbers in it, and the exchange of the spans. Where a rank has the same rows twice,
/// for different samples, it adds up their gradients.
class PartExchange final : public Exchange {
 public:
  /// `host` has the parameters of `part`, and must outlive it. Spans that are not of this rank have
  /// the weights that `whole` has of the whole network, or none where that is null.
  PartExchange(const std::vector<PartSpan>& spans, int rank, const Model& part,
               const HostParameters& host, const HostParameters* whole);

  const std::vector<Span>& spans() const { return spans_; }
  /// The exchange that gets the spans. Call it before the first step; it must outlive the last.
  void use(Exchange& inner) { inner_ = &inner; }

  void begin(std::uint64_t step) override;
  void await(std::size_t parameter) override;
  void push(std::size_t parameter) override;
  void end() override { inner_->end(); }
  void await_all() override { inner_->await_all(); }
  /// Returns the name of the first span of this rank whose weights are not finite, or "".
  std::string not_finite() const;
  /// Copies the weights of this rank's parameters to where `whole` has them.
  void copy_weights(const HostParameters& whole) const;

 private:
  /// The place of a span's elements in one of the part's parameters.
  struct Place {
    std::size_t parameter = 0;
    float *weights = nullptr, *gradient = nullptr;
  };
  struct Own {
    std::vector<Place> places;  ///< Empty: it is not of this rank.
    std::size_t pushed = 0;     ///< Places that were pushed in this step.
    Buffer weights, gradient;   ///< Memory of its own, if there are several places.
  };

  const std::vector<PartSpan> described_;
  std::vector<Span> spans_;
  std::vector<Own> own_;                      ///< By span.
  std::vector<std::vector<std::size_t>> of_;  ///< By parameter of the part: its spans.
  Exchange* inner_ = nullptr;
};

}  // namespace duplex
