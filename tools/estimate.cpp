// duplex estimate predicts what training on several machines will gain, by the thesis's equations
// (Appendix C.4), before anybody owns the machines.
#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/files/own_files.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/prediction/equations.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/plot.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

struct Flags {
  ModelSpec model;
  std::optional<double> grad, comm;
  std::string rate, type = "sync-join", server = "distributed", output = "single", file;
  std::vector<std::string> from;
  int workers = 0, batches = 128;
  bool advise = false;

  void add_to(CommandLine& app);
  /// Call it after parsing: checks what CLI11 cannot. Throws Error(Exit::usage).
  void resolve();

  net::Sync sync() const {
    return type == "async" ? net::Sync::none : net::parse_sync(type.substr(5));
  }
};

void Flags::add_to(CommandLine& app) {
  app.add_option("--t-grad", grad, "seconds for the gradient of a batch on one machine")
      .transform(as_seconds())
      .check(positive());
  app.add_option("--t-comm", comm, "seconds for one transfer of all weights over a link")
      .transform(as_seconds())
      .check(positive());
  app.add_option("--rate", rate,
                 "instead of --t-comm: the link's rate, such as 1Gbit/s; goes with --net, whose "
                 "weights it carries");
  add_model_flags(app, model, false);
  app.add_option("--from", from,
                 "run directories of local, transport or dist: t_grad and t_comm as measured in "
                 "the first that has them, unless given");
  app.add_option("--type", type, "sync-join (default), sync-split or async")
      .check(one_of({"async", "sync-join", "sync-split"}));
  app.add_option("--server", server, "distributed (default) or central")
      .check(one_of({"central", "distributed"}));
  app.add_option("--workers", workers, "number of workers, N; csv and plot: from 1 to N")
      .required()
      .check(between(1, 100000));
  app.add_option("--batches", batches, "batches of the whole training, D (default 128)")
      .check(between(1, 1000000000));
  app.add_option(
         "--output", output,
         "single: the speedup (default); csv: the speedups of 1 to N workers, between "
         "semicolons; plot: a chart by gnuplot. With a central server, worst and best case, "
         "too: on standard error, or in the chart")
      .check(one_of({"single", "csv", "plot"}));
  app.add_option("--file", file, "where the plot goes, .png or .svg (default: a window, or text)");
  app.add_flag("--advise", advise,
               "say what duplex plan does of as many machines: every way simulated, and whether "
               "it pays; goes with --net or --from");
}

void Flags::resolve() {
  if (comm && !rate.empty())
    throw Error("estimate: --t-comm and --rate say the same; give one of them", Exit::usage);
  if (!rate.empty() || advise) model.fill_from(from);
  if (advise && model.net.empty())
    throw Error("estimate: --advise plans for a network: give --net, or --from a run of it",
                Exit::usage);
  if (rate.empty() != model.net.empty() && !advise)
    throw Error("estimate: --net and --rate go together: its bytes over the link's rate",
                Exit::usage);
  if (!file.empty() && output != "plot")
    throw Error("estimate: --file is for --output plot", Exit::usage);
  require_own_files("estimate", {{"--net", model.path()}}, {{"--file", file}});
  if (advise &&
      (type != "sync-join" || server != "distributed" || output != "single" || batches != 128))
    throw Error(
        "estimate: --advise looks at every way: leave out --type, --server, --batches and --output",
        Exit::usage);
  if (advise && workers < 2)
    throw Error("estimate: --advise compares from 2 workers on", Exit::usage);
  if (!advise && workers > batches && sync() != net::Sync::split)
    throw Error("estimate: " + std::to_string(workers) + " workers for " + std::to_string(batches) +
                    " batches: some would have none",
                Exit::usage);
}

/// Takes `measured` unless `time` has a value already, and tells the user where it is from.
void take(std::optional<double>& time, const std::optional<double>& measured, const char* name,
          const std::string& from) {
  if (time || !measured) return;
  time = measured;
  std::fprintf(stderr, "%s %s from %s\n", name, duration_text(*measured).c_str(), from.c_str());
}

Costs given_by(const Flags& flags) {
  std::optional<double> grad = flags.grad, comm = flags.comm;
  if (!flags.rate.empty()) {
    const Model model = flags.model.build();
    const double bytes = 4.0 * static_cast<double>(model.trained_parameters());
    const double rate = parse_rate(flags.rate);
    comm = bytes / rate;
    std::fprintf(stderr, "%s: %s MB over %s, t_comm %s\n", model.title().c_str(),
                 fixed(bytes * 1e-6, 3).c_str(), rate_text(rate).c_str(),
                 duration_text(*comm).c_str());
  }
  for (const std::string& directory : flags.from) {
    const MeasuredCosts measured = measured_costs(directory);
    const std::string from = directory + " (" + measured.what + ")";
    take(grad, measured.grad, "t_grad", from);
    take(comm, measured.comm, "t_comm", from);
  }
  if (!grad)
    throw Error("estimate: no t_grad; give --t-grad, or --from a run of local", Exit::usage);
  if (!comm)
    throw Error(
        "estimate: no t_comm; give --t-comm, --net and --rate, or --from a run of transport",
        Exit::usage);
  return {*comm, *grad};
}

void say_what_is_left_over(const Flags& flags) {
  if (flags.sync() == net::Sync::split || flags.batches % flags.workers == 0) return;
  const double share = static_cast<double>(flags.batches) / flags.workers;
  std::fprintf(
      stderr, "%d batches are no multiple of %d workers: the equations take %s of each, a run %d\n",
      flags.batches, flags.workers, fixed(share, 2).c_str(),
      (flags.batches + flags.workers - 1) / flags.workers);
}

/// The two cases between which the true value lies, as the thesis numbers them.
struct Between {
  const char *which, *worst, *best;
};

Between between(net::Sync sync) {
  return sync == net::Sync::none ? Between{"(4.19)", "(4.16)", "(4.13) to (4.15)"}
                                 : Between{"(4.10)", "(4.7)", "(4.4)"};
}

/// Says where the true speedups lie, worst case and best, where the thesis has both: of one number
/// of workers, or of all from 1 on, as csv prints them. On standard error, so that standard output
/// is the estimate alone.
void say_between(const Flags& flags, const Costs& costs, int from) {
  std::string worst, best;
  for (int n = from; n <= flags.workers; ++n) {
    const auto speedups = speedup_between(costs, flags.sync(), net::parse_server_mode(flags.server),
                                          n, flags.batches);
    if (!speedups) return;
    for (const auto& [text, value] : {std::pair(&worst, speedups->low), {&best, speedups->high}}) {
      std::array<char, 32> figure{};
      std::snprintf(figure.data(), figure.size(), "%.9g", value);
      *text += (n > from ? ";" : "") + std::string(figure.data());
    }
  }
  const Between cases = between(flags.sync());
  const char gap = from < flags.workers ? '\n' : ' ';
  std::fflush(stdout);
  std::fprintf(stderr,
               "%s: the true value lies between%c%s in the worst case %s and%c%s in the best %s\n",
               cases.which, gap, worst.c_str(), cases.worst, gap, best.c_str(), cases.best);
}

/// What `plan` says of as many machines.
int advise(const Flags& flags, const Costs& costs) {
  const auto text_of = [](double seconds) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.17g", seconds);
    return std::string(text.data());
  };
  std::vector<std::string> words{"plan",
                                 "--net",
                                 flags.model.net,
                                 "--t-grad",
                                 text_of(costs.grad),
                                 "--t-comm",
                                 text_of(costs.comm),
                                 "--machines",
                                 std::to_string(flags.workers)};
  const models::ModelOptions& options = flags.model.options;
  for (const auto& [flag, value] :
       {std::pair("--classes", options.classes), std::pair("--input", options.input)})
    if (value != 0) words.insert(words.end(), {flag, std::to_string(value)});
  for (const std::string& directory : flags.from) {
    const MeasuredCosts measured = measured_costs(directory);
    if (flags.grad || !measured.grad || !measured.batch) continue;
    words.insert(words.end(), {"--batch", std::to_string(*measured.batch)});
    break;
  }
  if (options.auxiliary) words.emplace_back("--auxiliary");
  if (options.zero_padded_shortcuts) words.emplace_back("--pad-shortcuts");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return plan(static_cast<int>(argv.size()), argv.data());
}

void draw(const Flags& flags, const Costs& costs) {
  const net::Sync sync = flags.sync();
  const net::ServerMode server = net::parse_server_mode(flags.server);
  Chart chart;
  chart.title = "t_grad " + duration_text(costs.grad) + ", t_comm " + duration_text(costs.comm) +
                "; " + flags.type + ", " + flags.server;
  chart.x = "workers";
  chart.y = "speedup";
  chart.curves = {{"estimate", {}}, {"as many times as workers", {}, true}};
  for (int n = 1; n <= flags.workers; ++n) {
    chart.curves[0].values.push_back(speedup(costs, sync, server, n, flags.batches));
    chart.curves[1].values.push_back(n);
  }
  if (speedup_between(costs, sync, server, 1, flags.batches)) {
    const Between cases = between(sync);
    Curve best{std::string("best ") + cases.best, {}, true},
        worst{std::string("worst ") + cases.worst, {}, true};
    for (int n = 1; n <= flags.workers; ++n) {
      const auto speedups = speedup_between(costs, sync, server, n, flags.batches);
      best.values.push_back(speedups->high);
      worst.values.push_back(speedups->low);
    }
    chart.curves.insert(chart.curves.end(), {std::move(best), std::move(worst)});
  }
  plot(chart, flags.file);
}

}  // namespace

int estimate(int argc, const char* const* argv) {
  CommandLine app{
      "Predicts the speedup of training on N machines from t_grad and t_comm, by the thesis's "
      "equations (4.4) to (4.23).",
      "duplex estimate"};
  Flags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  flags.resolve();
  const Costs costs = given_by(flags);

  if (flags.advise) return advise(flags, costs);
  say_what_is_left_over(flags);
  const net::ServerMode server = net::parse_server_mode(flags.server);
  if (flags.output == "plot") {
    draw(flags, costs);
  } else if (flags.output == "csv") {
    for (int n = 1; n <= flags.workers; ++n)
      std::printf("%s%.9g", n > 1 ? ";" : "",
                  speedup(costs, flags.sync(), server, n, flags.batches));
    std::printf("\n");
    say_between(flags, costs, 1);
  } else {
    std::fprintf(
        stderr,
        "the speedup of %d workers over one machine (sync %s, server %s), over %d batches, "
        "each as large as the one that t_grad is of:\n",
        flags.workers, net::name_of(flags.sync()), net::name_of(server), flags.batches);
    std::printf("%.9g\n", speedup(costs, flags.sync(), server, flags.workers, flags.batches));
    say_between(flags, costs, flags.workers);
    std::fprintf(stderr,
                 "duplex plan simulates the order that dist has, and every way beside it\n");
  }
  return 0;
}

}  // namespace duplex::tools
