// Keeps a network's parameters in host memory, as plain floats. A worker exchanges them from there;
// a dedicated server has no others.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/exchange.h"
#include "core/mapped_memory.h"
#include "layers/model.h"

namespace duplex {

bool all_finite(const float* values, std::size_t count);

/// Takes the values that training starts from of one parameter after the other, running statistics
/// included, in the order of the layers: spec.shape.elements() of them.
using VisitFirstValues = std::function<void(const ParameterSpec& spec, const float* values)>;

/// Draws them as Network::initialise does, or, if `path` is not empty, reads them from a file
/// (read_checkpoint), whose numbers need not be finite. Holds one parameter at a time.
void visit_first_values(const Model& model, std::uint64_t seed, const std::string& path,
                        const VisitFirstValues& visit);

/// Owns host memory for a model's trained parameters.
class HostParameters {
 public:
  /// With `gradients` off there are only weights, as a central server needs. Linear layers that are
  /// `factored` have factors of so many samples (Span::factors) instead of gradients; `samples` are
  /// those of each layer, or of all.
  HostParameters(const Model& model, bool gradients, const std::vector<Model::Linear>& factored,
                 const std::vector<std::size_t>& samples);
  explicit HostParameters(const Model& model, bool gradients,
                          const std::vector<Model::Linear>& factored = {}, std::size_t samples = 0)
      : HostParameters(model, gradients, factored,
                       std::vector<std::size_t>(factored.size(), samples)) {}
  /// Parameters of another slot of the same rank: they have the weights and the factors of `first`,
  /// which must outlive this object, and gradients of their own.
  HostParameters(const Model& model, const HostParameters& first);

  /// Overwrites the weights with the first values, and calls `visit` with them
  /// (visit_first_values).
  void fill(const Model& model, std::uint64_t seed, const std::string& path,
            const VisitFirstValues& visit);
  /// Returns the name of the first parameter whose weights are not finite, or "" if there is none.
  std::string not_finite() const;
  /// Returns views for the exchange, in forward order. They are valid as long as this object lives.
  const std::vector<Span>& spans() const { return spans_; }
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  /// The layers that are factored.
  const std::vector<Model::Linear>& factored() const { return factored_; }
  /// Pins the memory that this object owns by Device::pin.
  std::vector<std::shared_ptr<void>> pin(Device& device) const;

 private:
  float* place_gradients(const std::vector<bool>& whole);

  std::vector<ParameterSpec> specs_;
  std::vector<Model::Linear> factored_;
  /// All parameters, one after the other; gradients without those of factored layers, and these
  /// layers' factors behind them.
  Buffer weights_, gradients_;
  std::vector<Span> spans_;
};

}  // namespace duplex
