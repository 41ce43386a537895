#include "tools/flags/wire_flags.h"

#include <memory>

#include "core/error.h"
#include "net/rendezvous/key.h"
#include "net/wire/socket_setup.h"
#include "tools/flags/command_line.h"
#include "tools/text/rate.h"

namespace duplex::tools {

namespace {

void add_protection_flags(CommandLine& app, net::ProtectionSpec& spec) {
  using Seal = net::ProtectionSpec::Seal;
  add_choice(
      app, "--secure", {"auto", "on", "off"},
      "encrypt and authenticate every frame, by AES-256-GCM with keys of this run: auto, "
      "beyond loopback (default); on, everywhere; off, nowhere: for measuring the bare wire, "
      "and for networks that nobody else writes to",
      [&spec](const std::string& word) {
        spec.seal = word == "on"    ? Seal::always
                    : word == "off" ? Seal::never
                                    : Seal::beyond_loopback;
      });
  add_choice(app, "--checksum", {"on", "off"},
             "on: frames that are not encrypted have a CRC32C, which finds damage by accident "
             "(default off)",
             [&spec](const std::string& word) { spec.checksum = word == "on"; });
}

}  // namespace

void WireFlags::add_to(CommandLine& app) {
  app.add_option("--key", key, "the cluster's key file (duplex keygen); needed beyond loopback");
  add_protection_flags(app, protection);
  app.add_option("--congestion", congestion,
                 "TCP congestion control (default: cubic where allowed; system: the machine's)");
  app.add_option("--link-rate", link_rate,
                 "send and take at most so much in each direction, such as 100Mbit/s, over all "
                 "connections together: a slow network on a fast one");
  app.add_option("--timeout", timeout_s,
                 "seconds that a rank may go without getting on, or a wait may take (default 60)")
      .transform(as_seconds())
      .check(between(0.1, 86400.0));
}

std::chrono::milliseconds WireFlags::timeout() const {
  return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
}

double WireFlags::rate() const {
  if (link_rate.empty()) return 0.0;
  constexpr double least = 1e3 / 8;
  const double rate = parse_rate(link_rate);
  if (rate < least)
    throw Error("--link-rate " + link_rate + " is less than 1 kbit/s, over which ranks cannot meet",
                Exit::usage);
  return rate;
}

void WireFlags::apply_to(net::MeshSpec& spec) const {
  if (!key.empty()) spec.key = net::read_key(key);
  spec.protection = protection;
  if (congestion.empty())
    spec.congestion = net::preferred_congestion();
  else if (congestion != "system")
    spec.congestion = congestion;
  spec.timeout = timeout();
  if (!link_rate.empty()) spec.link_rate = std::make_shared<net::LinkRate>(rate());
}

}  // namespace duplex::tools
