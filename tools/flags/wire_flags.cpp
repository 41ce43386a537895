#include "tools/flags/wire_flags.h"

#include "net/rendezvous/key.h"
#include "net/wire/socket_setup.h"
#include "tools/flags/command_line.h"

namespace duplex::tools {

void WireFlags::add_to(CLI::App& app) {
  app.add_option("--key", key, "the cluster's key file (duplex keygen); needed beyond loopback");
  app.add_option("--congestion", congestion,
                 "TCP congestion control (default: cubic where allowed; system: the machine's)");
  app.add_option("--timeout", timeout_s,
                 "seconds that a rank may go without getting on, or a wait may take (default 60)")
      ->transform(as_seconds())
      ->check(between(0.1, 86400.0));
}

std::chrono::milliseconds WireFlags::timeout() const {
  return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
}

void WireFlags::apply_to(net::MeshSpec& spec) const {
  if (!key.empty()) spec.key = net::read_key(key);
  if (congestion.empty())
    spec.congestion = net::preferred_congestion();
  else if (congestion != "system")
    spec.congestion = congestion;
  spec.timeout = timeout();
}

}  // namespace duplex::tools
