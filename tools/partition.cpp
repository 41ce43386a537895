// duplex partition cuts a network itself over machines, and says what would cross between them.
#include <algorithm>
#include <cstdio>
#include <optional>

#include "core/error.h"
#include "core/files/output_file.h"
#include "core/files/own_files.h"
#include "datasets/parallel.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/partition/cut.h"
#include "tools/partition/cut_drawing.h"
#include "tools/partition/cut_table.h"
#include "tools/parts/placing.h"
#include "tools/prediction/layer_times.h"
#include "tools/scenario/stragglers.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// Shards of the batch, and blocks of each layer's channels, unless there are more ranks.
constexpr double most_workers = 32;
/// Work and bytes stay far below the largest integers.
constexpr double most_batch = 65536, most_seconds = 1e6;

const std::vector<std::string> strategies{"auto",     "data",   "owt",       "filter",
                                          "pipeline", "hybrid", "hypergraph"};

struct PartitionFlags {
  ModelSpec model;
  int workers = 0, starts = 0;
  std::int64_t batch = 128;
  double imbalance = 5.0;
  std::uint64_t seed = 1;
  std::optional<double> grad;
  double link = 0.0;  ///< Bytes a second; 0: not given.
  std::string profile, strategy = "auto", output = "report", hypergraph, svg;
  std::vector<std::string> slow;

  void add_to(CommandLine& app);
  /// Call it after parsing. Throws Error(Exit::usage).
  void check() const;
  Speeds speeds() const;
  bool has_seconds() const { return grad || !profile.empty(); }
};

void PartitionFlags::add_to(CommandLine& app) {
  add_model_flags(app, model);
  app.add_option("--workers", workers, "ranks that share the network")
      .required()
      .check(between(2, most_workers));
  app.add_option("--batch", batch, "images of an iteration, of all ranks together (default 128)")
      .check(between(1, most_batch));
  app.add_option("--profile", profile,
                 "what layers weigh: seconds, from profile.json of local --profile (default: their "
                 "multiply-adds)");
  app.add_option("--t-grad", grad,
                 "instead of --profile: seconds of one machine for the whole batch, shared out by "
                 "multiply-adds")
      .transform(as_seconds())
      .check(positive());
  app.add_option_function(
      "--rate", [this](const std::string& text) { link = parse_rate(text); },
      "of the links, such as 1Gbit/s: with seconds of layers, how long an iteration takes at "
      "least");
  app.add_option("--slow", slow,
                 "a rank that computes slower: RANK:FACTOR, FIRST-LAST:FACTOR or all:FACTOR");
  app.add_option("--imbalance", imbalance,
                 "percent of work that a rank may have beyond its share (default 5)")
      .check(between(0.0, 100.0));
  app.add_option("--starts", starts,
                 "first partitions from nothing (default: 4 to 32, by the size of the network)")
      .check(between(1, 1000));
  app.add_option("--seed", seed, "of what the partitioner draws (default 1)");
  app.add_option(
         "--strategy", strategy,
         "whose layers are shown: data, owt, filter, pipeline, hybrid, hypergraph, or auto: "
         "the one with the fewest bytes of those within the imbalance (default)")
      .check(one_of(strategies));
  app.add_option("--output", output,
                 "report (default), csv: a row for each layer and rank, or json")
      .check(one_of({"report", "csv", "json"}));
  app.add_option("--svg", svg,
                 "draw the network there: each layer in the colours of its ranks, edges as "
                 "thick as what crosses");
  app.add_option("--hypergraph", hypergraph,
                 "write the hypergraph there for other partitioners, as hMetis has it");
}

void PartitionFlags::check() const {
  if (grad && !profile.empty())
    throw Error("partition: --t-grad and --profile say the same; give one of them", Exit::usage);
  if (link > 0.0 && !has_seconds())
    throw Error("partition: --rate goes with the seconds of layers; give --t-grad or --profile",
                Exit::usage);
  require_own_files("partition", {{"--net", model.path()}, {"--profile", profile}},
                    {{"--svg", svg}, {"--hypergraph", hypergraph}});
}

Speeds PartitionFlags::speeds() const {
  Speeds speeds(static_cast<std::size_t>(workers), 1.0);
  for (const std::string& text : slow) {
    const Straggler straggler = Straggler::parse(text, workers);
    if (straggler.varies())
      throw Error("partition: --slow: " + text + ": here a rank has one factor, as in 2:1.5",
                  Exit::usage);
    for (int rank = straggler.first; rank <= straggler.last; ++rank)
      speeds[static_cast<std::size_t>(rank)] /= straggler.a;
  }
  return speeds;
}

Error no_work(const Model& model) {
  return Error("partition: no layer of " + model.title() +
                   " takes any time, so that there is nothing to share out",
               Exit::usage);
}

TileSpec tile_spec(const PartitionFlags& flags, const Model& model, const Speeds& speeds) {
  TileSpec spec = usual_tiles(flags.batch, speeds);
  if (!flags.has_seconds()) return spec;
  LayerTimes times =
      flags.grad ? share_out(*flags.grad, model) : read_profile(flags.profile, model, std::nullopt);
  if (times.batch)
    times.scale(static_cast<double>(flags.batch) / static_cast<double>(*times.batch));
  if (times.sum() > most_seconds)
    throw Error(
        "partition: the layers take more than a million seconds for the whole batch; give "
        "a smaller --t-grad or --batch",
        Exit::usage);
  for (std::size_t node = 0; node < times.forward.size(); ++node)
    spec.seconds.push_back(times.forward[node] + times.backward[node]);
  return spec;
}

bool is_balanced(const Cut& cut, const PartitionFlags& flags, const Speeds& speeds) {
  return 100.0 * cut.imbalance(speeds) <= flags.imbalance + 0.05;
}

const Cut& chosen_of(const std::vector<Cut>& cuts, const PartitionFlags& flags,
                     const Speeds& speeds) {
  const Cut* best = nullptr;
  for (const Cut& cut : cuts) {
    if (cut.strategy == flags.strategy) return cut;
    if (is_balanced(cut, flags, speeds) && (best == nullptr || cut.bytes() < best->bytes()))
      best = &cut;
  }
  return best != nullptr ? *best : cuts.back();
}

}  // namespace

int partition(int argc, const char* const* argv) {
  CommandLine app{
      "Cuts a network over machines: layers, their channels and the samples of a batch, so that "
      "little crosses between them. Says what would cross, for each strategy.",
      "duplex partition"};
  PartitionFlags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  flags.check();
  const Model model = flags.model.build();
  const Speeds speeds = flags.speeds();
  if (model.macs() == 0 && flags.profile.empty()) throw no_work(model);
  const Tiles tiles(model, tile_spec(flags, model, speeds));
  const Hypergraph graph = tiles.hypergraph();
  if (graph.total_weight() == 0) throw no_work(model);
  CutSpec spec;
  spec.speeds = speeds;
  spec.imbalance = flags.imbalance / 100.0;
  spec.seed = flags.seed;
  spec.starts = flags.starts;
  spec.threads = datasets::thread_count(0);
  if (!flags.hypergraph.empty()) write_file(flags.hypergraph, hmetis_text(graph));
  const std::vector<Cut> cuts = all_cuts(tiles, graph, model, spec);
  const Cut& chosen = chosen_of(cuts, flags, speeds);
  if (!flags.svg.empty()) write_file(flags.svg, svg_of(model, tiles, chosen));
  if (flags.output == "csv") {
    std::fputs(layer_csv(tiles, chosen).c_str(), stdout);
  } else if (flags.output == "json") {
    std::fputs(json_of(tiles, cuts, chosen, speeds, flags.link).c_str(), stdout);
  } else {
    std::printf(
        "%s, batch %s on %d ranks, in MB: what an iteration sends, and the most that a\n"
        "rank sends and holds\n\n%s\n",
        model.title().c_str(), grouped(flags.batch).c_str(), flags.workers,
        strategy_table(cuts, speeds, flags.link).c_str());
    if (!is_balanced(chosen, flags, speeds) && flags.strategy == "auto")
      std::printf("No cut is within %s%% of even work; this is the closest that was found.\n\n",
                  fixed(flags.imbalance, 1).c_str());
    std::printf("%s, layer by layer: %s\n\n%s", chosen.strategy.c_str(),
                speeds.size() <= most_rank_columns ? "percent of each that a rank computes"
                                                   : "by what each is cut, and in how many parts",
                layer_table(tiles, chosen).c_str());
  }
  return 0;
}

}  // namespace duplex::tools
