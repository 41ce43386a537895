#include "tools/flags/parallel_flags.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "tools/flags/command_line.h"
#include "tools/plan/stage_list.h"

namespace duplex::tools {
namespace {

/// Reads numbers from 1 on, of so many digits at most, between colons; none: `text` is something
/// else.
std::optional<std::vector<std::int64_t>> parse_list(const std::string& text,
                                                    std::size_t most_digits) {
  std::vector<std::int64_t> numbers;
  std::istringstream parts(text + ":");
  for (std::string part; std::getline(parts, part, ':');) {
    const bool number = !part.empty() && part.size() <= most_digits &&
                        part.find_first_not_of("0123456789") == std::string::npos;
    if (!number || std::stoll(part) == 0) return std::nullopt;
    numbers.push_back(std::stoll(part));
  }
  return numbers;
}

std::vector<std::int64_t> parse_shares(const std::string& text) {
  const auto shares = parse_list(text, 6);
  if (!shares)
    refuse("--share",
           "'" + text +
               "' is neither even, speeds nor auto, and not of numbers from 1 to 999999 between "
               "colons, one for each worker");
  return *shares;
}

}  // namespace

std::vector<int> parse_slots(const std::string& text) {
  const auto slots = parse_list(text, 4);
  if (!slots || *std::max_element(slots->begin(), slots->end()) > 1024)
    refuse("--slots", "'" + text +
                          "' is no number from 1 to 1024, nor some of them between colons, "
                          "one for each worker");
  return {slots->begin(), slots->end()};
}

void add_parallel_flags(CommandLine& app, ParallelSpec& spec) {
  add_choice(app, "--sync", {"join", "split", "none"},
             "join: one update by the mean gradient of every worker's batch (default); split: the "
             "workers share one batch (batch normalisation is over each worker's part); none: "
             "every gradient is applied as it comes",
             [&spec](const std::string& word) { spec.sync = net::parse_sync(word); });
  app.add_option("--average", spec.average,
                 "workers update weights of their own and go on with the mean of them after every "
                 "so many batches")
      .check(between(1, 1 << 30));
  add_choice(app, "--overlap", {"on", "off"},
             "on: gradients leave during the backward pass, weights come during the forward pass "
             "(default); off: receive all, compute, send all",
             [&spec](const std::string& word) { spec.overlap = word == "on"; });
  add_choice(app, "--semaphore", {"on", "off"},
             "on: one worker at a time sends to a server, and a server sends to one worker at a "
             "time, in the order of asking (default off)",
             [&spec](const std::string& word) { spec.semaphore = word == "on"; });
  add_choice(
      app, "--server", {"central", "distributed"},
      "distributed: every rank trains and holds a share of the weights (default); central: "
      "rank 0 holds all and does not train, or with a --strategy the first of the ranks that "
      "share a parameter holds it",
      [&spec](const std::string& word) { spec.server = net::parse_server_mode(word); });
  add_choice(app, "--shards", {"even", "tensors"},
             "distributed server: even shares (default) or whole tensors (Algorithm 3.7)",
             [&spec](const std::string& word) { spec.shards = net::parse_shards(word); });
  app.add_option_function(
      "--wire",
      [&spec](const std::string& text) {
        try {
          spec.wire = net::parse_wire_format(text);
        } catch (const Error& error) {
          refuse("--wire", error.what());
        }
      },
      "coding of weights and gradients on the wire: float32 (default); lossless, packed, exact to "
      "the bit; or 16 bits a value, bf16 or fp16, which rounds them, while owners keep float32. "
      "gradients:bf16, weights:lossless: of one direction");
  add_choice(app, "--factors", {"off", "on", "auto"},
             "on: workers exchange the two factors of a linear layer's gradient, and each updates "
             "its own copy of the layer; auto: where these are fewer bytes; off (default): owners "
             "update all layers. It goes with --server distributed and --sync join or split",
             [&spec](const std::string& word) { spec.factors = parse_factors(word); });
  app.add_option_function(
      "--share",
      [&spec](const std::string& text) {
        spec.sharing = text == "speeds" ? Sharing::by_speed
                       : text == "auto" ? Sharing::by_speed_if_uneven
                                        : Sharing::given;
        if (spec.sharing == Sharing::given && text != "even") spec.shares = parse_shares(text);
      },
      "how the workers share the samples of a step, or with a --strategy the work: even (default); "
      "A:B:C, in proportion to these; "
      "speeds: to their speeds, which are measured first; auto: the same if these differ by a "
      "twentieth; the mean gradient is weighted likewise");
}

void check_parallel_flags(const ParallelSpec& spec, const std::string& command) {
  if (spec.factors == Factors::on && !spec.takes_factors())
    throw Error(
        command +
            ": --factors on goes with --sync join or split, without --average, --semaphore on and "
            "a central server that does not train, since every rank updates its own copy",
        Exit::usage);
  if (spec.average > 0 && (spec.sync != net::Sync::join || !spec.overlap))
    throw Error(command + ": --average goes with --sync join and --overlap on", Exit::usage);
  if (spec.average > 0 && !spec.wire.exact())
    throw Error(command + ": --wire " + spec.wire.str() +
                    " would round the weights that workers of --average go on with: leave one of "
                    "them out",
                Exit::usage);
  if ((!spec.shares.empty() || spec.sharing != Sharing::given) && spec.sync == net::Sync::none)
    throw Error(command +
                    ": --share goes with --sync join and split; with none, every worker goes "
                    "at a pace of its own",
                Exit::usage);
}

void add_cut_flags(CommandLine& app, ParallelSpec& spec) {
  std::vector<std::string> names = cutting_strategies();
  names.insert(names.begin(), "data");
  names.emplace_back("auto");
  add_choice(app, "--strategy", names,
             "how the network is cut over the ranks (docs/partition.md). data (default): each has "
             "all of it; pipeline: runs of layers; filter: channels; owt: linear layers by "
             "channels, others by samples; hybrid and hypergraph: each layer as is best",
             [&spec](const std::string& word) {
               if (word == "auto")
                 refuse("--strategy",
                        "auto: what is best depends on the machines and their links: plan finds "
                        "it, and launch --plan auto measures them, plans and trains");
               spec.strategy = word == "data" ? "" : word;
             });
  app.add_option_function(
      "--stages",
      [&spec](const std::string& text) {
        try {
          check_stages(text);
        } catch (const Error& error) {
          refuse("--stages", error.what());
        }
        spec.stages = text;
      },
      "of a pipeline, which several ranks share where there are more ranks (default: one for each "
      "rank). 2: so many, with as many ranks each; 6:2: the ranks of each, cut where the work is "
      "even; 6:2@LAYER: the second one begins with this layer; 6:2@LAYER+0.5: in its middle, so "
      "that the stage before has half of its samples");
  app.add_option("--micro-batches", spec.micro_batches,
                 "parts of a step's samples, one of which is computed while another's maps are "
                 "under way; the step takes the mean of their gradients (default 1)")
      .check(between(1, 65536));
  app.add_option(
         "--in-flight", spec.in_flight,
         "for each stage from a rank's on, the most micro-batches that it has begun and not "
         "ended, which take memory; 1: none is under way while another is computed "
         "(default 2)")
      .check(between(1, 65536));
}

void check_cut_flags(const ParallelSpec& spec, const std::string& command) {
  if (!spec.stages.empty() && spec.strategy != "pipeline")
    throw Error(command + ": --stages goes with --strategy pipeline", Exit::usage);
  if (spec.in_flight != usual_in_flight && !spec.cuts())
    throw Error(command + ": --in-flight goes with a --strategy that cuts the network",
                Exit::usage);
  if (spec.micro_batches > 1 && !spec.cuts())
    throw Error(command +
                    ": --micro-batches goes with a --strategy that cuts the network; without one, "
                    "take smaller batches",
                Exit::usage);
}

}  // namespace duplex::tools
