// duplex bench measures how fast a network trains on this machine, against the ceiling that its
// convolutions and linear layers set when each runs alone. It takes random images, so it needs no
// data set.
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/factors/outer_products.h"
#include "layers/kinds/linear.h"
#include "net/coding/coding_rate.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/text/peak_memory.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"
#include "tools/training/profile.h"
#include "tools/training/random_steps.h"
#ifdef DUPLEX_ONEDNN
#include "core/onednn/ceiling.h"
#endif

namespace duplex::tools {
namespace {

struct Flags {
  ModelSpec model;
  std::int64_t batch = 8;
  DeviceSpec computing;
  int steps = 9, warm_up = 2;
  double ceiling = 0.0;
  bool layers = false, row = false, looks = false, codings = false;
};

/// Operations of one training step, with a multiply-add counted as two: forward, backward by data
/// (except in layers that read the input) and backward by weights.
double step_flop(const Model& model, std::int64_t batch) {
  double flop = 0.0;
  for (const Model::Entry& entry : model.nodes()) {
    if (!entry.layer) continue;
    const double forward =
        2.0 * static_cast<double>(entry.layer->macs(model.input_shapes(entry)) * batch);
    flop += forward * (entry.inputs[0] == model.input() ? 2.0 : 3.0);
  }
  return flop;
}

RandomSteps time_steps(Network& network, const Flags& flags, bool look = false) {
  return time_random_steps(
      network, flags.warm_up,
      [&](std::size_t counted) { return counted >= static_cast<std::size_t>(flags.steps); }, look);
}

#ifdef DUPLEX_ONEDNN
/// Seconds that a step's convolutions and linear layers take when each runs alone. Equal layers are
/// measured once.
double ceiling_seconds(const Model& model, const Flags& flags, int threads) {
  std::map<std::string, ConvSeconds> known;
  double total = 0.0;
  for (const Model::Entry& entry : model.nodes()) {
    const auto* conv = dynamic_cast<const ConvLayer*>(entry.layer.get());
    const auto* linear = dynamic_cast<const LinearLayer*>(entry.layer.get());
    if (conv == nullptr && linear == nullptr) continue;
    const Shape sample = model.input_shapes(entry)[0];
    const Shape x = sample.rank() == 2 ? Shape{flags.batch, sample.c()}
                                       : Shape{flags.batch, sample.c(), sample.h(), sample.w()};
    const std::string key = x.str() + " " + entry.shape.str() + " " + entry.layer->type() +
                            (conv != nullptr ? conv->geometry({x}) : "");
    if (known.count(key) == 0) {
      known[key] = conv != nullptr
                       ? measure_onednn_conv(conv->spec(x), x, threads, flags.ceiling)
                       : measure_onednn_linear(linear->spec(), x, threads, flags.ceiling);
    }
    const ConvSeconds& cost = known[key];
    total += cost.forward + cost.backward_weights;
    if (entry.inputs[0] != model.input()) total += cost.backward_data;
  }
  return total;
}
#endif

/// Prints how fast a processor codes values for dist --wire.
void print_codings() {
  Table table({{"coding", Table::Align::left},
               {"encode GB/s", Table::Align::right},
               {"decode GB/s", Table::Align::right}});
  for (const auto& [coding, what] : {std::pair(net::Coding::bf16, net::Values::gradient),
                                     std::pair(net::Coding::fp16, net::Values::gradient),
                                     std::pair(net::Coding::lossless, net::Values::weights),
                                     std::pair(net::Coding::lossless, net::Values::gradient)}) {
    const net::CodingRate rate = net::coding_rate(coding, what);
    const std::string of = coding != net::Coding::lossless ? ""
                           : what == net::Values::weights  ? " weights"
                                                           : " gradients";
    table.row(
        {net::name_of(coding) + of, fixed(rate.encode * 1e-9, 2), fixed(rate.decode * 1e-9, 2)});
  }
  std::printf("%sGB of float32 values, one processor\n", table.str().c_str());
  std::printf("factors  %s GFLOP/s, one processor\n",
              fixed(OuterProducts::operations_a_second() * 1e-9, 1).c_str());
}

}  // namespace

int bench(int argc, const char* const* argv) {
  CommandLine app{
      "Times training steps (forward, loss, backward, SGD with momentum) on random images.",
      "duplex bench"};
  Flags flags;
  add_model_flags(app, flags.model, false);
  app.add_option("--batch", flags.batch, "images a batch (default 8)")
      .check(between(1, most_images));
  app.add_option("--steps", flags.steps, "steps that count (default 9)").check(between(1, 1 << 30));
  add_device_flags(app, flags.computing);
  add_graphs_flag(app, flags.computing);
#ifdef DUPLEX_ONEDNN
  app.add_option("--ceiling", flags.ceiling,
                 "also measure the ceiling: seconds to spend on each primitive (0.05 is enough)")
      .check(at_least(0));
#endif
  app.add_flag("--layers", flags.layers, "print the table of layers");
  app.add_flag("--codings", flags.codings,
               "instead: time the codings of dist --wire, and products of factors");
  app.add_flag("--looks", flags.looks, "also time steps that look for NaN, as every 100th does");
  app.add_flag(
      "--row", flags.row,
      "print one line of tab-separated values: network, batch, images a second (median, low, "
      "high), GFLOP/s, seconds of a step, seconds of the ceiling (0: not measured), peak bytes, "
      "which layout was found the faster (empty: none was looked for)");
  if (const auto done = parse(app, argc, argv)) return *done;
  if (flags.codings) {
    print_codings();
    return 0;
  }
  if (flags.model.net.empty()) throw Error("bench: --net is required", Exit::usage);

  if (flags.computing.threads == 0) flags.computing.threads = usable_cores();
  const auto device = flags.computing.make();
  std::string layout;
  const auto built =
      flags.computing.build(flags.model.build(), *device, flags.batch, true, &layout);
  Network& network = *built;
  network.initialise(1);
  std::unique_ptr<Profile> profile;
  if (flags.layers) profile = std::make_unique<Profile>(network, flags.warm_up);
  const RandomSteps steps = time_steps(network, flags);
  const Quartiles step = quartiles_of(steps.seconds);
  const auto memory = static_cast<double>(
      steps.on_device > 0 ? steps.on_device : static_cast<std::size_t>(peak_memory_bytes()));
  double ceiling = 0.0;
#ifdef DUPLEX_ONEDNN
  if (flags.ceiling > 0.0)
    ceiling = ceiling_seconds(network.model(), flags, flags.computing.threads);
#endif

  const auto batch = static_cast<double>(flags.batch);
  const double rate = step_flop(network.model(), flags.batch) / step.median * 1e-9;
  if (flags.row) {
    std::printf("%s\t%lld\t%.3f\t%.3f\t%.3f\t%.1f\t%.6f\t%.6f\t%.0f\t%s\n", flags.model.net.c_str(),
                static_cast<long long>(flags.batch), batch / step.median, batch / step.high,
                batch / step.low, rate, step.median, ceiling, memory, layout.c_str());
    return 0;
  }
  if (!layout.empty()) std::printf("%s\n", layout.c_str());
  if (profile) std::printf("%s\n", profile->table().c_str());
  std::printf(
      "%s, batch %lld, %s: %s images/s (%s-%s), %s a step, %s GFLOP/s, peak memory %s MiB\n",
      network.model().title().c_str(), static_cast<long long>(flags.batch),
      device->description().c_str(), fixed(batch / step.median, 2).c_str(),
      fixed(batch / step.high, 2).c_str(), fixed(batch / step.low, 2).c_str(),
      duration_text(step.median).c_str(), fixed(rate, 1).c_str(),
      fixed(memory / 1048576.0, 0).c_str());
  if (ceiling > 0.0) {
    std::printf(
        "convolutions and linear layers alone: %s a step; the network reaches %s%% of that\n",
        duration_text(ceiling).c_str(), fixed(100.0 * ceiling / step.median, 1).c_str());
  }
  if (flags.looks) {
    const double look = quartiles_of(time_steps(network, flags, true).seconds).median;
    std::printf("a step that looks for NaN: %s; as every 100th, %s%% of the time\n",
                duration_text(look).c_str(), fixed(look / step.median - 1.0, 3).c_str());
  }
  return 0;
}

}  // namespace duplex::tools
