// duplex probe is one rank of the measurement that plan makes on the machines of a nodefile: how
// long a batch's gradient takes, layer by layer, how fast an owner works, and what every link
// carries.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/factors/outer_products.h"
#include "core/files/output_file.h"
#include "core/files/own_files.h"
#include "core/processor/cores.h"
#include "datasets/loader.h"
#include "net/crypto/seal_rate.h"
#include "net/exchange_cost.h"
#include "net/link_survey.h"
#include "net/store/owner_rate.h"
#include "tools/check/machine/host_facts.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/device_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/wire_flags.h"
#include "tools/launch/rank_source.h"
#include "tools/parts/part_measurement.h"
#include "tools/plan/machines_file.h"
#include "tools/setup/setup.h"
#include "tools/slots/slot_places.h"
#include "tools/text/host_name.h"
#include "tools/text/quartiles.h"
#include "tools/text/rate.h"
#include "tools/training/profile.h"
#include "tools/training/random_steps.h"
#include "tools/training/staging.h"

namespace duplex::tools {
namespace {

struct Flags {
  ModelSpec model;
  DeviceSpec computing;
  WireFlags wire;
  std::int64_t batch = 32;
  double seconds = 10.0;
  std::string nodefile, output, datadir;
  int index = -1;

  void add_to(CommandLine& app);
};

void Flags::add_to(CommandLine& app) {
  add_model_flags(app, model);
  app.add_option("--batch", batch, "images a batch (default 32)").check(between(1, most_images));
  add_device_flags(app, computing);
  app.add_option("--nodefile", nodefile, "the machines, in the order of the ranks").required();
  app.add_option("--index", index, "this process's rank, from 0").required().check(at_least(0));
  app.add_option("--seconds", seconds, "seconds of computing that are timed (default 10)")
      .transform(as_seconds())
      .check(between(0.01, 3600.0));
  app.add_option("--datadir", datadir,
                 "the data set that will be trained with: what reading its images takes is "
                 "measured, too");
  app.add_option("--output", output, "write what all ranks have measured there, machines.json");
  wire.add_to(app);
}

constexpr int warm_up = 2;

/// The other slots of this machine: they compute, each in a thread of its own, while one is
/// measured.
class OtherSlots {
 public:
  /// Returns when all of them compute. Throws what one of them has thrown.
  OtherSlots(const Flags& flags, const Model& model, const std::vector<SlotPlace>& places) {
    for (std::size_t slot = 1; slot < places.size(); ++slot)
      threads_.emplace_back([this, &flags, &model, place = places[slot]] {
        bind_thread(place.cores);
        try {
          compute(flags, model, place.device);
        } catch (...) {
          const std::lock_guard<std::mutex> lock(mutex_);
          failure_ = std::current_exception();
          changed_.notify_all();
        }
      });
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || computing_ == threads_.size(); });
    if (!failure_) return;
    lock.unlock();
    end();
  }
  ~OtherSlots() { stop(); }
  /// Ends them. Throws what one of them has thrown meanwhile.
  void end() {
    stop();
    if (failure_) std::rethrow_exception(failure_);
  }
  OtherSlots(const OtherSlots&) = delete;
  OtherSlots& operator=(const OtherSlots&) = delete;

 private:
  void compute(const Flags& flags, const Model& model, const std::string& which) {
    DeviceSpec computing = flags.computing;
    computing.device = which;
    const auto device = computing.make();
    const auto network = computing.build(model, *device, flags.batch);
    network->initialise(1);
    bool told = false;
    time_random_steps(*network, warm_up, [&](std::size_t) {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!std::exchange(told, true)) {
        ++computing_;
        changed_.notify_all();
      }
      return stopped_ || failure_;
    });
  }
  void stop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  std::mutex
      mutex_;  ///< Guards all below but the threads; these and the one that measures take it.
  std::condition_variable changed_;
  std::size_t computing_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::thread> threads_;
};

/// Times the network on random images, for so many seconds.
void measure_network(const Flags& flags, const Model& model, double for_seconds,
                     MeasuredMachine& machine) {
  constexpr std::size_t least_steps = 3;
  const auto device = flags.computing.make();
  const auto network = flags.computing.build(model, *device, flags.batch);
  network->initialise(1);
  Profile profile(*network, warm_up);
  const std::int64_t begin = clock_ns();
  time_random_steps(*network, warm_up, [&](std::size_t counted) {
    return counted >= least_steps && seconds(clock_ns() - begin) >= for_seconds;
  });
  machine.profile = profile.file();
  machine.grad = profile.sum();
  machine.computes_on = device->description();
  if (!device->asynchronous()) {
    const StagingTimes staging = measure_staging(*network);
    machine.gradients_down = staging.download;
    machine.weights_up = staging.upload;
  }
  machine.threads = flags.computing.threads;
  // A GPU needs none of them.
  machine.cores = device->asynchronous() ? 0 : machine.cores;
}

/// Times the network on a slot of this machine, while all others compute, too.
void measure_computing(Flags flags, const Model& model, const RankSource& source,
                       MeasuredMachine& machine) {
  machine.cores = usable_cores();
  const int slots = source.slots[static_cast<std::size_t>(source.rank)];
  if (slots == 1) {
    const int ranks = static_cast<int>(source.addresses.size());
    // A network is cut over machines that have no slots.
    const bool parts = ranks > 1 && std::all_of(source.slots.begin(), source.slots.end(),
                                                [](int each) { return each == 1; });
    measure_network(flags, model, parts ? flags.seconds / 2 : flags.seconds, machine);
    // cuDNN would have to choose engines for every part, which takes a GPU minutes.
    if (parts && machine.cores > 0)
      machine.parts = measure_parts(
          model, {flags.computing, flags.batch, ranks, machine.grad, flags.seconds / 2,
                  [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }});
    return;
  }
  const std::vector<SlotPlace> places =
      slot_places(flags.computing, slots, source.computing_before, source.computing_here, "probe");
  flags.computing.device = places.front().device;
  machine.slots = slots;
  OtherSlots others(flags, model, places);
  run_bound(places.front().cores, [&] { measure_network(flags, model, flags.seconds, machine); });
  others.end();
}

/// Measures the processor seconds that reading an image takes, as dist reads them.
double measure_reading(const Flags& flags) {
  constexpr double most_seconds = 1.0;
  TrainingSpec spec;
  spec.model = flags.model;
  spec.datadir = flags.datadir;
  const datasets::Subset train = open_training(spec).split.train;
  const auto all = static_cast<std::int64_t>(train.size());
  datasets::BatchLoader loader(
      train, loader_options(spec, datasets::join_share(std::min(flags.batch, all))));
  const std::int64_t begin = clock_ns();
  do loader.next();
  while (seconds(clock_ns() - begin) < most_seconds);
  return loader.processor_seconds_a_sample();
}

net::MeshSpec mesh_spec(const Flags& flags, const Model& model, const RankSource& source) {
  net::MeshSpec spec;
  spec.topology = {net::ServerMode::distributed, static_cast<int>(source.addresses.size()), 0};
  spec.rank = source.rank;
  spec.addresses = source.addresses;
  spec.identity.job = "probe";
  spec.identity.model = flags.model.fingerprint(model);
  spec.identity.data = net::fingerprint("no images");
  spec.identity.start = net::fingerprint("no weights");
  spec.identity.settings = net::fingerprint("batch " + std::to_string(flags.batch));
  flags.wire.apply_to(spec);
  spec.log = [rank = source.rank](const std::string& line) {
    std::fprintf(stderr, "rank %d: %s\n", rank, line.c_str());
  };
  return spec;
}

std::vector<std::size_t> counts_of(const Model& model) {
  std::vector<std::size_t> counts;
  for (const ParameterSpec& parameter : model.trained())
    counts.push_back(static_cast<std::size_t>(parameter.shape.elements()));
  return counts;
}

/// Measures an exchange of a few small gradients, in which frames count for more than bytes.
net::ExchangeCost exchange_cost(net::Mesh mesh, const Flags& flags) {
  constexpr std::size_t parameters = 16, elements = 4096;
  constexpr std::uint64_t steps = 20;
  if (mesh.links().empty()) return {};
  return net::measure_exchange(std::move(mesh), std::vector<std::size_t>(parameters, elements),
                               {steps, 0.0}, flags.wire.timeout());
}

/// The most of what a byte takes over any link; none: there is no other machine.
std::optional<double> dearest(const std::vector<double>& seconds) {
  const auto most = std::max_element(seconds.begin(), seconds.end());
  if (most == seconds.end() || *most <= 0.0) return std::nullopt;
  return *most;
}

}  // namespace

int probe(int argc, const char* const* argv) {
  CommandLine app{
      "Measures this machine and its links for duplex plan, which starts it on every machine of a "
      "nodefile.",
      "duplex probe"};
  Flags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;
  require_own_files("probe",
                    {{"--net", flags.model.path()},
                     {"--nodefile", flags.nodefile},
                     {"--key", flags.wire.key},
                     {"--datadir", flags.datadir}},
                    {{"--output", flags.output}});
  std::signal(SIGPIPE, SIG_IGN);
  const RankSource source = find_rank({flags.nodefile, flags.index, false, {}, true}, std::getenv);
  std::fprintf(stderr, "%s\n", source.str().c_str());
  if (flags.computing.threads == 0)
    flags.computing.threads =
        source.threads(usable_cores(), static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  const Model model = flags.model.build();
  const std::string device = flags.computing.device;  // As the user has it.
  flags.computing.device = device_behind(device, source.computing_before);
  const net::MeshSpec spec = mesh_spec(flags, model, source);
  // Measuring an exchange uses its mesh up. The second is joined at once, since all are there.
  net::MeshSpec exchanging = spec;
  exchanging.identity.job += ", exchange";
  const net::ExchangeCost cost = exchange_cost(net::Mesh::join(exchanging), flags);
  net::MeshSpec surveying = spec;
  surveying.log = {};  // Who has come has been said.
  net::Mesh mesh = net::Mesh::join(surveying);

  MeasuredMachine machine;
  machine.address = source.addresses[static_cast<std::size_t>(source.rank)].str();
  machine.host = host_name();
  machine.memory_bytes = static_cast<std::int64_t>(available_memory());
  measure_computing(flags, model, source, machine);
  if (!flags.datadir.empty() && machine.cores > 0)
    machine.sample_processor = measure_reading(flags);
  machine.owner_rate = net::owner_rate(counts_of(model));
  machine.factor_rate = OuterProducts::operations_a_second();
  const int all_threads = flags.computing.threads * machine.slots.value_or(1);
  for (const net::Link& link : mesh.links())
    if (link.stream.protection() == net::Protection::sealed && !machine.seal_rate)
      machine.seal_rate = net::seal_rate() * all_threads;
  spec.log("t_grad " + duration_text(machine.grad) + " a batch of " + std::to_string(flags.batch) +
           ", " + std::to_string(machine.threads) +
           (machine.threads == 1 ? " thread" : " threads"));
  // Ranks that compute longer are waited for.
  const net::LinkRates links =
      net::survey_links(mesh, {0.3, flags.wire.timeout() + std::chrono::minutes(10)});
  machine.out = links.out;
  machine.in = links.in;
  machine.round_trip = links.round_trip;
  machine.send_processor = dearest(links.sending);
  machine.receive_processor = dearest(links.receiving);
  if (machine.send_processor && machine.receive_processor) {
    // The survey moves plain bytes; the seal rate tells what sealing takes.
    const double sealing = machine.seal_rate ? all_threads / *machine.seal_rate : 0.0;
    machine.frame_processor = cost.frame(*machine.send_processor + sealing,
                                         *machine.receive_processor + sealing, machine.owner_rate);
  }
  spec.log("its link carries " + rate_text(machine.rate()));

  MachinesFile file;
  const RunConfig config = flags.model.config(model);
  file.network = config.network;
  file.title = config.title;
  file.input = config.input;
  file.classes = config.classes;
  file.network_file = config.network_file;
  file.batch = flags.batch;
  file.device = device;
  file.precision = flags.computing.precision;
  file.layout = flags.computing.layout;
  if (!flags.wire.link_rate.empty()) file.link_rate = flags.wire.link_rate;
  const std::vector<std::string> texts =
      net::share_texts(mesh, text_of(machine), flags.wire.timeout());
  for (std::size_t rank = 0; rank < texts.size(); ++rank)
    file.machines.push_back(parse_machine(texts[rank], static_cast<int>(rank)));
  if (flags.output.empty()) return 0;
  OutputFile output(flags.output);
  output.write(text_of(file));
  output.commit();
  return 0;
}

}  // namespace duplex::tools
