#include "tools/parts/part_measurement.h"

#include <algorithm>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "layers/exchange/mean_gradients.h"
#include "layers/parts/cut_network.h"
#include "layers/parts/part_runner.h"
#include "tools/parts/part_times.h"
#include "tools/parts/placing.h"
#include "tools/text/sampled_values.h"

namespace duplex::tools {
namespace {

/// A step's first micro-batch is kept, the second one added, and the third makes the mean.
constexpr std::uint64_t micro_batches = 3;

/// All parts are measured so often, if there is time.
constexpr int rounds = 4;

/// Layers are cut over so many ranks at most. For more, times go on as between the last two.
constexpr int most_ranks = 8;

/// Every map has arrived. Maps lie where those of a run would: each has memory of its own.
class ReadyMaps final : public MapExchange {
 public:
  explicit ReadyMaps(const CutNetwork& cut) : cut_(cut) {}

  float* room(const MapMessage& message) override { return map(message).data(); }
  void send(const MapMessage&) override {}
  bool arrived(const MapMessage&) const override { return true; }
  std::uint64_t arrivals() const override { return 0; }
  void wait_for_more(std::uint64_t) override { throw std::logic_error("all maps are here"); }
  const float* take(const MapMessage& message) override { return map(message).data(); }
  void release(const MapMessage&) override {}

 private:
  std::vector<float>& map(const MapMessage& message) {
    std::vector<float>& values = maps_[{message.transfer, message.gradient}];
    if (values.empty()) {
      values.resize(cut_.transfers()[message.transfer].elements);
      RandomStream(1, stream_of("map " + std::to_string(message.transfer)))
          .fill_uniform(values.data(), values.size());
    }
    return values;
  }

  const CutNetwork& cut_;
  std::map<std::pair<std::size_t, bool>, std::vector<float>> maps_;
};

/// Weights stay as they are.
class NoExchange final : public Exchange {
  void begin(std::uint64_t) override {}
  void await(std::size_t) override {}
  void push(std::size_t) override {}
  void end() override {}
};

/// The part that the first of some ranks has, and what has been measured of it.
class MeasuredPart {
 public:
  MeasuredPart(const Model& whole, int ranks, std::int64_t samples, const DeviceSpec& computing)
      : cut_(whole, placement_of(whole, ranks, samples)),
        part_(cut_.part(0)),
        computing_(computing),
        layers_(part_.model.nodes().size()) {}

  int ranks() const { return cut_.placement().ranks; }
  std::int64_t samples() const { return cut_.placement().samples; }

  /// Makes the part's network, and runs steps for so long, one at least. What they take counts
  /// `factor` times.
  void run(double for_seconds, double factor) {
    const std::unique_ptr<Device> device = computing_.make();
    if (computing_.layout != "measured") device->choose_channels_last(computing_.layout == "nhwc");
    const std::vector<std::unique_ptr<Network>> networks = networks_of(part_, *device, 1);
    Network& network = *networks.front();
    network.initialise(1);
    std::vector<bool> warm(2 * layers_.size());
    network.observe([&](std::size_t node, Phase phase, std::int64_t begin, std::int64_t end) {
      const bool forward = phase == Phase::forward;
      const std::size_t place = 2 * node + (forward ? 0 : 1);
      if (warm[place])
        (forward ? layers_[node].forward : layers_[node].backward)
            .add(factor * seconds(end - begin));
      warm[place] = true;
    });
    std::vector<float> images(
        static_cast<std::size_t>(part_.images * part_.model.shape(0).elements()));
    RandomStream(1, stream_of("images")).fill_uniform(images.data(), images.size());
    std::vector<std::int32_t> labels(static_cast<std::size_t>(samples()));
    for (std::size_t i = 0; i < labels.size(); ++i)
      labels[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(cut_.whole().classes()));
    MeanGradients means(network, micro_batches);
    std::vector<std::unique_ptr<PartLayers>> slots;
    slots.push_back(std::make_unique<NetworkLayers>(network));
    PartRunner runner(part_.model, std::move(slots), micro_batches, 1,
                      [&](std::size_t parameter, std::uint64_t number) {
                        const std::int64_t begin = clock_ns();
                        const bool last = means.add(parameter, number);
                        if (number == 1) adding_ += factor * seconds(clock_ns() - begin);
                        return last;
                      });
    std::uint64_t first = 0;
    const PartRunner::Source source = [&] {
      const auto all = static_cast<std::uint64_t>(samples());
      return MicroBatch{part_.reads ? images.data() : nullptr, labels.data(), samples(),
                        std::exchange(first, first + all)};
    };
    ReadyMaps maps(cut_);
    NoExchange exchange;
    const std::int64_t begin = clock_ns();
    std::uint64_t step = 0;
    do runner.run_step(step++, source, exchange, maps);
    while (seconds(clock_ns() - begin) < for_seconds);
    steps_ += step;
  }

  /// Returns the seconds that all layers take with a micro-batch.
  double sum() const {
    double sum = 0.0;
    for (const Layer& layer : layers_)
      if (layer.forward.count() > 0)
        sum += layer.forward.quartiles().median + layer.backward.quartiles().median;
    return sum;
  }

  PartProfile profile() const {
    std::set<std::string> left;  // Layers of the network that have not been seen.
    for (const Model::Entry& entry : cut_.whole().nodes()) left.insert(entry.name);
    PartProfile profile;
    profile.ranks = ranks();
    profile.samples = samples();
    std::map<std::string, PartProfileEdges> edges;
    for (std::size_t node = 0; node < layers_.size(); ++node) {
      const Model::Entry& entry = part_.model.nodes()[node];
      if (!entry.layer) continue;
      const double forward = layers_[node].forward.quartiles().median;
      const double backward = layers_[node].backward.quartiles().median;
      const std::string& name = entry.part.layer.empty() ? entry.name : entry.part.layer;
      if (left.erase(name) > 0) {
        if (entry.part.samples == 0 || entry.part.samples == profile.samples)
          profile.layers.push_back({name, entry.shape.c(), forward, backward});
      } else if (entry.part.layer.empty()) {
        PartProfileEdges& its = edges[entry.layer->type()];
        its.type = entry.layer->type();
        ++its.layers;
        its.bytes += edge_bytes(part_.model, entry, profile.samples);
        its.forward += forward;
        its.backward += backward;
      }
    }
    for (const auto& [type, its] : edges) profile.edges.push_back(its);
    const auto added = static_cast<double>(part_.model.trained_parameters()) * sizeof(float) *
                       static_cast<double>(steps_);
    profile.adding = added > 0.0 ? adding_ / added : 0.0;
    return profile;
  }

 private:
  struct Layer {
    SampledValues forward, backward;
  };

  static Placement placement_of(const Model& whole, int ranks, std::int64_t samples) {
    PlacingSpec spec;
    spec.strategy = ranks > 1 ? "filter" : "data";
    spec.samples = samples;
    spec.speeds.assign(static_cast<std::size_t>(ranks), 1.0);
    return place(whole, spec);
  }

  const CutNetwork cut_;
  const NetworkPart part_;
  const DeviceSpec computing_;
  std::vector<Layer> layers_;
  double adding_ = 0.0;  ///< Seconds.
  std::uint64_t steps_ = 0;
};

/// Numbers from the greatest down, each a quarter of the one before, and 1.
std::vector<std::int64_t> quarters(std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t n = most; n > 1; n /= 4) numbers.push_back(n);
  numbers.push_back(1);
  return numbers;
}

}  // namespace

std::vector<PartProfile> measure_parts(const Model& model, const PartMeasurement& spec) {
  std::vector<std::unique_ptr<MeasuredPart>> parts;
  // Does some work on a part. Returns whether the part can be measured; if not, that is said.
  const auto possible = [&](int ranks, std::int64_t samples, const auto& work) {
    const std::string part =
        "the network" +
        (ranks > 1 ? ", cut by channels over " + std::to_string(ranks) + " ranks,"
                   : std::string()) +
        " is not measured for " + std::to_string(samples) +
        (samples == 1 ? " image: " : " images: ");
    try {
      work();
      return true;
    } catch (const std::bad_alloc&) {
      spec.log(part + "there is no memory for it");
    } catch (const Error& error) {
      // A network with fewer channels than ranks cannot be cut so, and a GPU may lack the memory.
      spec.log(part + error.what());
    }
    return false;
  };
  for (int ranks = 1; ranks <= std::min(spec.ranks, most_ranks); ranks *= 2)
    for (const std::int64_t samples : quarters(spec.batch))
      if (ranks > 1 || samples < spec.batch)
        possible(ranks, samples, [&, ranks = ranks, samples = samples] {
          parts.push_back(std::make_unique<MeasuredPart>(model, ranks, samples, spec.computing));
        });
  // A machine that is disturbed for a while is so for all parts alike. A shared one loses a third
  // of its speed for seconds at a time. So each round measures the whole network again, and counts
  // its parts as if the machine were as fast as when spec.whole was measured. Where a step takes
  // long, that would, too, and evens out by itself.
  bool compares =
      spec.whole > 0.0 && spec.whole * static_cast<double>(micro_batches * rounds) < spec.seconds;
  const double slice =
      spec.seconds / static_cast<double>(rounds * (parts.size() + (compares ? 1 : 0)));
  const std::int64_t begin = clock_ns();
  for (int round = 0; round < rounds; ++round) {
    if (round > 0 && seconds(clock_ns() - begin) >= spec.seconds) break;
    double factor = 1.0;
    compares = compares && possible(1, spec.batch, [&] {
                 MeasuredPart whole(model, 1, spec.batch, spec.computing);
                 whole.run(slice, 1.0);
                 factor = spec.whole / whole.sum();
               });
    const auto lacking = std::remove_if(parts.begin(), parts.end(), [&](const auto& part) {
      return !possible(part->ranks(), part->samples(), [&] { part->run(slice, factor); });
    });
    parts.erase(lacking, parts.end());
  }
  std::vector<PartProfile> measured;
  for (const auto& part : parts) measured.push_back(part->profile());
  return measured;
}

}  // namespace duplex::tools
