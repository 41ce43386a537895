// duplex transport measures what moving a network's weights between two machines takes (Appendix
// C.2): t_comm in each direction and in both at once, beside what the link can do.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "core/error.h"
#include "net/crypto/seal_rate.h"
#include "net/exchange_cost.h"
#include "net/store/owner_rate.h"
#include "net/transport.h"
#include "tools/commands.h"
#include "tools/flags/command_line.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/wire_flags.h"
#include "tools/launch/nodefile.h"
#include "tools/run_directory/run_directory.h"
#include "tools/run_directory/run_files.h"
#include "tools/text/quartiles.h"
#include "tools/text/table.h"

namespace duplex::tools {
namespace {

struct Flags {
  ModelSpec model;
  WireFlags wire;
  std::string logdir, mine, other, role;
  int repeats = 5;

  bool serves() const { return role == "ps"; }
  void add_to(CommandLine& app);
};

void Flags::add_to(CommandLine& app) {
  add_model_flags(app, model);
  app.add_option("--logdir", logdir,
                 "run directory (default: runs/, named by command, net and time)");
  app.add_option("--my-address", mine, "this machine's address, host or host:port").required();
  app.add_option("--other-address", other, "the other machine's address").required();
  app.add_option("--my-role", role, "ps: listens, stands for the server; worker: connects to it")
      .required()
      .check(one_of({"ps", "worker"}));
  app.add_option("--repeats", repeats, "transfers of every kind that count (default 5)")
      .check(between(1, 10000));
  wire.add_to(app);
}

net::MeshSpec mesh_spec(const Flags& flags, const Model& model) {
  net::MeshSpec spec;
  spec.topology.mode = net::ServerMode::central;
  spec.topology.size = 2;
  spec.rank = flags.serves() ? 0 : 1;
  spec.addresses = {net::Address::parse(flags.serves() ? flags.mine : flags.other, default_port),
                    net::Address::parse(flags.serves() ? flags.other : flags.mine, default_port)};
  spec.identity.job = "transport";
  spec.identity.model = flags.model.fingerprint(model);
  spec.identity.data = net::fingerprint("no images");
  spec.identity.start = net::fingerprint("no weights");
  spec.identity.settings = net::fingerprint("repeats " + std::to_string(flags.repeats));
  flags.wire.apply_to(spec);
  spec.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  return spec;
}

struct Direction {
  const char* name;
  const net::TransportTimes* times;
  double DirectionTimes::*place;  ///< In transport-ROLE.json.
};

double gigabits(std::size_t bytes, double seconds) {
  return static_cast<double>(bytes) * 8e-9 / seconds;
}

}  // namespace

int transport(int argc, const char* const* argv) {
  CommandLine app{
      "Measures t_comm, the time for all weights of a network, between two machines: start it on "
      "both, as ps and as worker.",
      "duplex transport"};
  Flags flags;
  flags.add_to(app);
  if (const auto done = parse(app, argc, argv)) return *done;

  const Model model = flags.model.build();
  net::TransportSpec spec;
  for (const ParameterSpec& parameter : model.trained())
    spec.counts.push_back(static_cast<std::size_t>(parameter.shape.elements()));
  spec.repeats = flags.repeats;
  spec.timeout = flags.wire.timeout();
  TransportSummary summary;
  const std::string file = transport_file(flags.role);
  const RunDirectory directory(flags.logdir, summary.command, flags.model.net, {file});
  std::optional<net::Mesh> joined(net::Mesh::join(mesh_spec(flags, model)));
  net::Mesh& mesh = *joined;
  const std::string peer = mesh.links().at(0).peer;
  const std::string congestion = mesh.links().at(0).stream.socket().congestion();
  const net::TransportResult result = net::measure_transport(mesh, spec);
  const double owner_rate = net::owner_rate(spec.counts);
  const net::Protection protection = mesh.links().at(0).stream.protection();

  const bool ps = flags.serves();
  const Direction directions[] = {
      {"ps to worker", ps ? &result.out : &result.in, &DirectionTimes::down},
      {"worker to ps", ps ? &result.in : &result.out, &DirectionTimes::up},
      {"ps to worker, both at once", ps ? &result.out_both : &result.in_both,
       &DirectionTimes::down_both},
      {"worker to ps, both at once", ps ? &result.in_both : &result.out_both,
       &DirectionTimes::up_both}};
  Table table({{"direction", Table::Align::left},
               {"t_comm", Table::Align::right},
               {"quartiles", Table::Align::right},
               {"Gbit/s", Table::Align::right},
               {"link", Table::Align::right},
               {"of it", Table::Align::right}});
  summary.network = flags.model.net;
  summary.title = model.title();
  summary.bytes = result.bytes;
  summary.role = flags.role;
  summary.peer = peer;
  summary.congestion = congestion;
  if (!flags.wire.link_rate.empty()) summary.link_rate = flags.wire.rate();
  summary.round_trip = result.round_trip;
  for (const Direction& direction : directions) {
    const Quartiles framed = quartiles_of(direction.times->framed),
                    raw = quartiles_of(direction.times->raw);
    table.row({direction.name, duration_text(framed.median),
               duration_text(framed.low) + "-" + duration_text(framed.high),
               fixed(gigabits(result.bytes, framed.median), 3),
               fixed(gigabits(result.bytes, raw.median), 3),
               fixed(100.0 * raw.median / framed.median, 1) + "%"});
    summary.times.*direction.place = framed.median;
    summary.link.*direction.place = raw.median;
  }
  summary.comm = std::max(summary.times.up, summary.times.down);
  summary.owner_rate = owner_rate;
  const double gigabytes = static_cast<double>(result.bytes) * 1e-9;
  // seal_rate tells what sealing takes, so it is no part of this.
  const double sealing = protection == net::Protection::sealed ? 1e9 / net::seal_rate() : 0.0;
  const auto moving = [&](const std::vector<double>& seconds) {
    return std::max(quartiles_of(seconds).median / gigabytes - sealing, 0.0);
  };
  summary.send_processor = moving(result.sending);
  summary.receive_processor = moving(result.receiving);
  joined.reset();
  constexpr double exchange_seconds = 1.0;
  net::MeshSpec once_more = mesh_spec(flags, model);
  once_more.identity.job += ", exchange";
  const net::ExchangeCost cost = net::measure_exchange(
      net::Mesh::join(std::move(once_more)), spec.counts, {3, exchange_seconds}, spec.timeout);
  if (cost.frames > 0)
    summary.frame_processor = cost.frame((*summary.send_processor + sealing) * 1e-9,
                                         (*summary.receive_processor + sealing) * 1e-9, owner_rate);
  if (protection != net::Protection::none) summary.protection = name_of(protection);
  if (protection == net::Protection::sealed) summary.seal_rate = net::seal_rate() * usable_cores();
  std::printf("%s, %s parameters, %s MB; with %s, %s, %s, round trip %s\n\n%s\n",
              model.title().c_str(), grouped(model.trained_parameters()).c_str(),
              fixed(static_cast<double>(result.bytes) * 1e-6, 3).c_str(), peer.c_str(),
              congestion.c_str(), name_of(protection).c_str(),
              duration_text(result.round_trip).c_str(), table.str().c_str());
  std::printf("t_comm   %s, the slower direction alone; link: as many bytes as one stream\n",
              duration_text(summary.comm).c_str());
  std::printf(
      "owner    %s GB/s: what adding a gradient to another, or updating by it, takes here\n",
      fixed(owner_rate * 1e-9, 2).c_str());
  std::printf(
      "moving   %s and %s: what a gigabyte takes of this machine's processors to be\n"
      "         sent and received\n",
      duration_text(*summary.send_processor).c_str(),
      duration_text(*summary.receive_processor).c_str());
  if (summary.frame_processor)
    std::printf("         and %s a frame of dist beside its bytes\n",
                duration_text(*summary.frame_processor).c_str());
  if (summary.seal_rate)
    std::printf("sealing  %s GB/s: what all processors together encrypt or decrypt here\n",
                fixed(*summary.seal_rate * 1e-9, 2).c_str());
  directory.write(file, text_of(summary));
  std::printf("run      %s\n", directory.path().c_str());
  return 0;
}

}  // namespace duplex::tools
