#include "tools/flags/scenario_flags.h"

#include <cstdlib>
#include <filesystem>

#include "net/wire/link_rate.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/run_directory/run_files.h"
#include "tools/scenario/measured_scenario.h"
#include "tools/scenario/stragglers.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

/// What the runs of --from have measured, as far as the user has not given it.
struct Measured {
  std::optional<double> grad, comm, link_rate, owner_rate, seal_rate, send_processor,
      receive_processor;
  double frame_processor = 0.0;
  std::optional<double> gradients_down, weights_up, sample_processor;
  std::string profile;
  std::optional<double> profile_grad;  ///< t_grad of the whole run that the profile is of.
  std::optional<std::int64_t> batch;
  std::optional<int> cores, threads;
};

/// Reads "0.53:0.81". Calls refuse().
net::PackedParts parse_packed(const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto part = [&](const std::string& number) {
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !(value > 0.0 && value <= 1.0))
      refuse("--packed", "'" + text +
                             "' is not two numbers above 0 and at most 1 with "
                             "a colon between them, as in 0.53:0.81");
    return value;
  };
  if (colon == std::string::npos) part("");
  return {part(text.substr(0, colon)), part(text.substr(colon + 1))};
}

}  // namespace

std::pair<std::string, std::string> at_colon(const std::string& text, const std::string& what) {
  const auto colon = text.find(':');
  if (colon == std::string::npos)
    throw Error(what + " '" + text + "' has no colon (see --help)", Exit::usage);
  return {text.substr(0, colon), text.substr(colon + 1)};
}

void ScenarioFlags::add_to(CommandLine& app, const std::string& command, const std::string& who) {
  command_ = command;
  app_ = &app;
  add_model_flags(app, model, false);
  app.add_option("--profile", profile,
                 "layers' seconds: profile.json, which local and dist write with --profile");
  app.add_option("--t-grad", grad,
                 "instead of --profile: seconds for the gradient of a batch, shared out by "
                 "multiply-adds")
      .transform(as_seconds())
      .check(positive());
  app.add_option("--rate", rate, "rate of every machine's link in each direction, such as 1Gbit/s");
  app.add_option("--t-comm", comm,
                 "instead of --rate: seconds for one transfer of all weights, as transport "
                 "measures it")
      .transform(as_seconds())
      .check(positive());
  app.add_option("--from", from,
                 "run directories of local, transport or dist: network, profile or t_grad, t_comm "
                 "and the owners' rate, of the first that has them, unless given");
  app.add_option("--measured", measured,
                 "instead: what plan has measured, its machines.json: the network, and what "
                 "computing and links take on those machines");
  app.add_option("--latency", latency,
                 "seconds from one rank to another (default 0.00005, or as --measured has it)")
      .transform(as_seconds())
      .check(between(0.0, 60.0));
  app.add_option("--link", links, "WHO:RATE, links that differ; WHO: " + who + " 3, 0-7 or all");
  app.add_option(
         "--batch", batch,
         "images a batch, which split shares out (default: those of --profile or --from, else 32)")
      .check(between(1, most_images));
  app.add_option("--slow", slow,
                 "WHO:HOW, stragglers: the factor that computing takes longer by in every step, "
                 "such as 3:1.5, all:lognormal:0.1, 0-3:uniform:1:2 or 7:exponential:0.3");
  app.add_option("--owner-rate", owner_rate,
                 "rate at which an owner adds a gradient, and updates, such as 4GB/s (default: as "
                 "--from has it of transport, else in no time)");
  app.add_option(
      "--seal-rate", seal_rate,
      "frames are sealed, and all processors of a machine together seal or open so much, "
      "such as 9GB/s (default: as --from has it of transport, else frames are plain)");
  app.add_option("--moving", moving,
                 "SEND:RECEIVE:FRAME, processor seconds that a gigabyte takes at each end, and, if "
                 "that is given, each frame, such as 0.25:0.4:0.00003 (default: as --from has it "
                 "of transport, else none)");
  app.add_option("--cores", cores,
                 "cores of a machine (default: as --from has it of local); where all of them "
                 "compute, what --moving and owners take makes computing longer")
      .check(between(1, 1024));
  app.add_option("--burst", burst,
                 "bytes that a link which was idle lets pass at once, as the token bucket of a "
                 "shaped link does (default 0; tools/netlab.sh: 131072)")
      .check(between(0.0, 1e9));
  app.add_option_function(
      "--packed", [this](const std::string& text) { packed = parse_packed(text); },
      "WEIGHTS:GRADIENTS, the parts of float32's bytes that they come to with --wire lossless, as "
      "dist has measured them (default 0.53:0.81)");
  app.add_option(
         "--factor-rate", factor_rate,
         "GFLOP/s at which a rank multiplies factors with --factors (default 30 for each of its "
         "threads, as a core with AVX2 has; bench --codings tells; 0: that takes no time)")
      .check(between(0.0, 1e9));
  app.add_option("--queue", queue,
                 "bytes that wait at a port of the switch while more comes than goes (default "
                 "1000000)")
      .check(between(0.0, 1e9));
  app.add_option("--unfair", unfair,
                 "standard deviation of the logarithm of a connection's share of a switch's port, "
                 "as TCP's differ "
                 "(default 0.08; for more than 128 ranks 0: all alike)")
      .check(between(0.0, 2.0));
  app.add_option("--seed", seed, "seed of all that is drawn (default 1)");
  app.add_option("--resolution", resolution,
                 "seconds within which events count as one moment (default: a nanosecond; for "
                 "more than 32 ranks a thousandth of t_grad)")
      .check(between(1e-12, 1e6));
}

double ScenarioFlags::processor_seconds(const std::string& text) const {
  double seconds = -1.0;
  if (!read_number(text, seconds) || !(seconds >= 0.0 && seconds <= 1e3))
    throw refusal("--moving '" + moving +
                  "' is not SEND:RECEIVE or SEND:RECEIVE:FRAME, numbers of seconds");
  return seconds;
}

Error ScenarioFlags::refusal(const std::string& text) const {
  return Error(command_ + ": " + text, Exit::usage);
}

bool ScenarioFlags::has_figures() const {
  return grad || comm || !profile.empty() || !rate.empty() || !from.empty();
}

void ScenarioFlags::refuse_measured(const std::string& who) const {
  for (const char* flag : {"--owner-rate", "--seal-rate", "--moving", "--cores"})
    if (app_->count(flag) > 0)
      throw refusal(who + " what " + flag + " would say: leave the flag out");
}

/// Takes the network and the batch that machines were measured with.
void ScenarioFlags::take_machines() {
  if (has_figures())
    throw refusal("--measured and figures of computing or links say the same; give one of them");
  refuse_measured(measured + " says");
  const MachinesFile& file = machines_.emplace(read_machines(measured));
  if ((!model.net.empty() && model.net != file.network) ||
      (model.options.classes != 0 && model.options.classes != file.classes) ||
      (batch && *batch != file.batch))
    throw refusal(measured + " is of " + file.network + " with " + std::to_string(file.classes) +
                  " classes in batches of " + std::to_string(file.batch) +
                  ": leave --net, --classes and --batch out, or measure again");
  model.take_kept(file.network, file.network_file, measured);
  model.options.classes = file.classes;
  model.set_input(file.input);
  batch = file.batch;
}

void ScenarioFlags::resolve() {
  if (!measured.empty()) take_machines();
  model.fill_from(from);
  if (model.net.empty()) throw refusal("no network; give --net, or --from a run of local or dist");
  if (grad && !profile.empty())
    throw refusal("--t-grad and --profile say the same; give one of them");
  if (comm && !rate.empty()) throw refusal("--t-comm and --rate say the same; give one of them");
}

void ScenarioFlags::bound_links(double link_rate) {
  bounded_rate_ = link_rate;
}

/// Returns whether --link-rate bounds the links that are simulated.
bool ScenarioFlags::bounded() const {
  if (bounded_rate_ || (machines_ && machines_->link_rate)) return true;
  if (!rate.empty() || comm) return false;
  for (const std::string& directory : from) {
    const MeasuredCosts measured = measured_costs(directory);
    if (measured.link_rate || measured.comm) return measured.link_rate.has_value();
  }
  return false;
}

SimulationRequest ScenarioFlags::request(int ranks) const {
  SimulationRequest request;
  request.seed = seed;
  request.latency = latency;
  request.burst = burst.value_or(bounded() ? net::TokenBucket::burst : 0.0);
  request.packed = packed;
  if (factor_rate) request.factor_rate = *factor_rate * 1e9;
  request.queue = queue;
  request.unfairness = unfair;
  request.resolution = resolution;
  for (const std::string& text : links) {
    const auto [who, how] = at_colon(text, command_ + ": --link");
    request.links.emplace_back(parse_ranks(who, ranks, command_ + ": --link '" + text + "'"),
                               parse_rate(how));
  }
  for (const std::string& text : slow) request.stragglers.push_back(Straggler::parse(text, ranks));
  return request;
}

void ScenarioFlags::add_machines(SimulationRequest& request, int ranks) const {
  if (!machines_) return;
  if (app_->count("--latency") == 0) request.latency = measured_latency(*machines_);
  if (static_cast<std::size_t>(ranks) > machines_->machines.size())
    throw refusal(std::to_string(ranks) + " ranks, and " + measured + " is of " +
                  std::to_string(machines_->machines.size()) + " machines");
  const std::vector<int> hosts = hosts_of(*machines_);
  const double fastest = fastest_of(*machines_).grad;
  std::vector<std::pair<Ranks, double>> rates;
  for (int rank = 0; rank < ranks; ++rank) {
    const MeasuredMachine& machine = machines_->machines[static_cast<std::size_t>(rank)];
    request.machine_of.push_back(hosts[static_cast<std::size_t>(rank)]);
    rates.emplace_back(Ranks{rank, rank}, machine.rate());
    Straggler slower;
    slower.first = slower.last = rank;
    slower.a = machine.grad / fastest;
    if (slower.a > 1.0) request.stragglers.push_back(slower);
  }
  // Those that --link gives come behind, and count.
  request.links.insert(request.links.begin(), rates.begin(), rates.end());
}

Scenario ScenarioFlags::scenario(std::vector<std::string>& notes) const {
  const Model net = model.build();
  if (machines_) {
    notes.push_back("what machines take from " + measured);
    return measured_scenario(*machines_, measured, net);
  }
  Measured found;
  found.grad = grad;
  found.comm = comm;
  found.link_rate = bounded_rate_;
  found.profile = profile;
  found.batch = batch;
  found.cores = cores;
  found.threads = threads;
  if (!owner_rate.empty()) found.owner_rate = parse_rate(owner_rate);
  if (!seal_rate.empty()) found.seal_rate = parse_rate(seal_rate);
  if (!moving.empty()) {
    const auto [send, rest] = at_colon(moving, command_ + ": --moving");
    const auto colon = rest.find(':');
    found.send_processor = processor_seconds(send) * 1e-9;
    found.receive_processor = processor_seconds(rest.substr(0, colon)) * 1e-9;
    if (colon != std::string::npos)
      found.frame_processor = processor_seconds(rest.substr(colon + 1));
  }
  for (const std::string& directory : from) {
    const MeasuredCosts measured = measured_costs(directory);
    const std::string where = directory + " (" + measured.what + ")";
    const auto take = [&](std::optional<double>& into, const std::optional<double>& value,
                          const std::string& words) {
      if (into || !value) return;
      into = value;
      notes.push_back(words + " from " + where);
    };
    const std::string profiled = directory + "/" + profile_file;
    if (!found.grad && found.profile.empty() && std::filesystem::exists(profiled)) {
      found.profile = profiled;
      found.profile_grad = measured.grad;
      notes.push_back("profile from " + where);
    }
    if (!found.grad && found.profile.empty() && measured.grad) {
      if (batch && measured.batch && *batch != *measured.batch)
        throw refusal(where + " has not measured batches of " + std::to_string(*batch) +
                      ": leave --batch out, or give a run of that batch");
      found.batch = measured.batch;
      take(found.grad, measured.grad, "t_grad " + duration_text(*measured.grad));
    }
    if (rate.empty() && !found.comm && !found.link_rate && measured.link_rate)
      take(found.link_rate, measured.link_rate, "links of " + rate_text(*measured.link_rate));
    if (rate.empty() && !found.link_rate && measured.comm)
      take(found.comm, measured.comm, "t_comm " + duration_text(*measured.comm));
    take(found.owner_rate, measured.owner_rate,
         "owners' " + fixed(measured.owner_rate.value_or(0.0) * 1e-9, 2) + " GB/s");
    take(found.seal_rate, measured.seal_rate,
         "sealing at " + fixed(measured.seal_rate.value_or(0.0) * 1e-9, 2) + " GB/s");
    if (measured.weights_up && !found.weights_up) {
      found.weights_up = measured.weights_up;
      found.sample_processor = measured.sample_processor;
      take(found.gradients_down, measured.gradients_down,
           "bringing gradients away from where layers compute, and weights there,");
    }
    if (measured.receive_processor && !found.receive_processor) {
      found.receive_processor = measured.receive_processor;
      found.frame_processor = measured.frame_processor.value_or(0.0);
      take(found.send_processor, measured.send_processor, "what moving bytes takes");
    }
    if (measured.threads && measured.cores && !(found.cores && found.threads)) {
      if (!found.threads) found.threads = measured.threads;
      if (!found.cores) found.cores = measured.cores;
      notes.push_back(std::to_string(*found.threads) + " of " + std::to_string(*found.cores) +
                      " cores compute, as in " + where);
    }
  }
  if (found.profile.empty() && !found.grad)
    throw refusal("no times; give --profile, --t-grad, or --from a run of local");
  LayerTimes times = found.profile.empty() ? share_out(*found.grad, net)
                                           : read_profile(found.profile, net, found.batch);
  if (!(times.sum() > 0.0)) throw Error("profile " + found.profile + ": no layer takes any time");
  if (!times.batch) times.batch = found.batch;
  if (times.batch && (*times.batch < 1 || *times.batch > most_images))
    throw refusal("what was measured is of batches of " + std::to_string(*times.batch) +
                  " images, and from 1 to " + std::to_string(most_images) + " are known");
  if (found.profile_grad) {
    // If the machine is disturbed, the layers' medians add up to less than the median step, which
    // is what estimate takes of the same run.
    notes.push_back("its layers add up to " + duration_text(times.sum()) +
                    " and are scaled to the run's t_grad, " + duration_text(*found.profile_grad));
    times.scale(*found.profile_grad / times.sum());
  }
  if (!rate.empty()) found.link_rate = parse_rate(rate);
  if (!found.comm && !found.link_rate)
    throw refusal("no link; give --rate, --t-comm, or --from a run of transport");
  const double sealed = found.seal_rate.value_or(0.0);
  Scenario scenario = found.comm ? Scenario::with_comm(net, times, *found.comm, sealed)
                                 : Scenario::with_rate(net, times, *found.link_rate, sealed);
  scenario.owner_rate = found.owner_rate.value_or(0.0);
  scenario.moving = {found.send_processor.value_or(0.0), found.receive_processor.value_or(0.0),
                     found.frame_processor};
  scenario.gradients_down = found.gradients_down.value_or(0.0);
  scenario.weights_up = found.weights_up.value_or(0.0);
  scenario.sample_processor = found.sample_processor.value_or(0.0);
  scenario.cores = found.cores.value_or(0);
  scenario.threads = found.threads.value_or(scenario.cores);
  if (found.send_processor && scenario.cores == 0)
    notes.push_back(
        "what moving bytes takes of the processors counts only beside --cores, or --from a run of "
        "local");
  return scenario;
}

}  // namespace duplex::tools
