#include "tools/check/machine/network_facts.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "core/error.h"
#include "net/wire/socket_setup.h"
#include "tools/check/machine/queue.h"
#include "tools/check/machine/system_files.h"

namespace duplex::tools {
namespace {

namespace fs = std::filesystem;

/// The result of looking up a name, which a thread fills in.
struct Lookup {
  bool done = false;
  std::string trouble;
  sockaddr_storage address{};
  socklen_t size = 0;
};

/// Looks names up, each in a thread of its own: nothing can stop a thread that waits for a name
/// server, so it may outlive whoever waits for it.
class Lookups {
 public:
  explicit Lookups(const std::vector<CheckedMachine>& machines) : found_(machines.size()) {
    for (const CheckedMachine& machine : machines)
      addresses_.push_back({machine.host, static_cast<std::uint16_t>(machine.ports.front())});
  }

  static std::vector<Lookup> run(const std::vector<CheckedMachine>& machines,
                                 std::chrono::milliseconds limit) {
    const auto lookups = std::make_shared<Lookups>(machines);
    for (std::size_t i = 0; i < machines.size(); ++i)
      std::thread([lookups, i] { lookups->look_up(i); }).detach();
    std::unique_lock<std::mutex> lock(lookups->mutex_);
    lookups->changed_.wait_for(lock, limit, [&] {
      return std::all_of(lookups->found_.begin(), lookups->found_.end(),
                         [](const Lookup& one) { return one.done; });
    });
    return lookups->found_;
  }

 private:
  void look_up(std::size_t at) {
    Lookup one;
    one.done = true;
    try {
      const net::Addresses list = net::resolve(addresses_[at], 0);
      one.size = std::min<socklen_t>(list->ai_addrlen, sizeof one.address);
      std::memcpy(&one.address, list->ai_addr, one.size);  // The one that ranks try first.
    } catch (const Error& error) {
      one.trouble = error.what();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    found_[at] = one;
    changed_.notify_all();
  }

  std::vector<net::Address> addresses_;
  std::mutex mutex_;  ///< Guards what is found; the threads and whoever waits for them take it.
  std::condition_variable changed_;
  std::vector<Lookup> found_;
};

/// The address of this machine from which packets to another leave. Empty size: there is no route.
Lookup source_of(const Lookup& to) {
  Lookup from;
  const int socket = ::socket(to.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return from;
  from.size = sizeof from.address;
  // This sends nothing, and only asks for a route.
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to.address), to.size) != 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&from.address), &from.size) != 0)
    from.size = 0;
  ::close(socket);
  return from;
}

std::string host_of(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST] = "";
  if (::getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return host;
}

/// The interface that has this address.
std::string interface_with(const std::string& host) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, &freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    const bool four = each->ifa_addr->sa_family == AF_INET;
    if (!four && each->ifa_addr->sa_family != AF_INET6) continue;
    const socklen_t size = four ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (host_of(each->ifa_addr, size) == host) return each->ifa_name;
  }
  return host.rfind("127.", 0) == 0 ? "lo" : "";
}

std::uint64_t count_in(const std::string& folder, const char* name) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(number_in(folder + "/statistics/" + name).value_or(0), 0));
}

}  // namespace

InterfaceFacts interface_facts(const std::string& name, const std::string& folder) {
  constexpr std::int64_t loopback = 772;  // ARPHRD_LOOPBACK
  InterfaceFacts facts;
  facts.name = name;
  std::error_code none;
  const std::string device = fs::canonical(folder, none).string();
  // Several cards that are bonded are real, and their speed is that of all.
  const bool made_up =
      device.find("/virtual/") != std::string::npos && !fs::exists(folder + "/bonding", none);
  if (number_in(folder + "/type").value_or(0) == loopback)
    facts.kind = "loopback";
  else if (fs::exists(folder + "/wireless", none) || fs::exists(folder + "/phy80211", none))
    facts.kind = "wireless";
  else
    facts.kind = made_up ? "virtual" : "wired";
  if (facts.kind == "wired") {
    facts.mbit = std::max<std::int64_t>(number_in(folder + "/speed").value_or(0), 0);
    const std::string duplex = word_in(folder + "/duplex");
    if (duplex == "full" || duplex == "half") facts.duplex = duplex;
  }
  facts.mtu = number_in(folder + "/mtu").value_or(0);
  facts.packets = count_in(folder, "rx_packets") + count_in(folder, "tx_packets");
  facts.errors = count_in(folder, "rx_errors") + count_in(folder, "tx_errors");
  return facts;
}

void add_network_facts(MachineFacts& facts, const std::vector<CheckedMachine>& machines,
                       std::chrono::milliseconds limit) {
  const std::string preferred = net::preferred_congestion();
  facts.congestion =
      preferred.empty() ? word_in("/proc/sys/net/ipv4/tcp_congestion_control") : preferred;
  facts.forgets_pace = net::forgets_pace();
  for (const Lookup& found : Lookups::run(machines, limit)) {
    RouteFacts& route = facts.routes.emplace_back();
    if (!found.done) {
      route.trouble =
          "no name server answered within " + std::to_string(limit.count() / 1000) + " s";
      continue;
    }
    route.trouble = found.trouble;
    if (found.size == 0) continue;
    route.address = host_of(reinterpret_cast<const sockaddr*>(&found.address), found.size);
    const Lookup from = source_of(found);
    if (from.size == 0) continue;
    route.interface =
        interface_with(host_of(reinterpret_cast<const sockaddr*>(&from.address), from.size));
    const auto same = [&](const InterfaceFacts& each) { return each.name == route.interface; };
    if (route.interface.empty() ||
        std::any_of(facts.interfaces.begin(), facts.interfaces.end(), same))
      continue;
    const std::string folder = "/sys/class/net/" + route.interface;
    facts.interfaces.push_back(interface_facts(route.interface, folder));
    facts.interfaces.back().queue =
        queue_of(static_cast<int>(number_in(folder + "/ifindex").value_or(0)));
  }
}

}  // namespace duplex::tools
