#include "net/rendezvous/host_names.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <system_error>

#include "core/error.h"

namespace duplex::net {
namespace {

std::string host_text(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address != nullptr && address->sa_family == AF_INET)
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  if (address != nullptr && address->sa_family == AF_INET6)
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
              sizeof text);
  return text;
}

bool is_loopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1";
}

/// Returns whether an interface has no hardware behind it; the kernel then makes its speed up.
bool is_virtual(const std::string& folder) {
  std::error_code error;
  const std::string device = std::filesystem::canonical(folder, error).string();
  return !error && device.find("/virtual/") != std::string::npos;
}

}  // namespace

bool means_loopback(const std::string& host) {
  return is_loopback(host) || host == "localhost";
}

std::string loopback_behind(const std::string& host) {
  if (host.empty() || means_loopback(host)) return "";
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  // connect() will report it.
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(list, &freeaddrinfo);
  const std::string first = host_text(list->ai_addr);  // The one that is tried first.
  return is_loopback(first) ? first : "";
}

void check_names(const Topology& topology, int rank, const std::vector<Address>& addresses,
                 const std::function<std::string(const std::string& host)>& loopback) {
  const auto host_of = [&](int each) -> const std::string& {
    return addresses[static_cast<std::size_t>(each)].host;
  };
  const auto name = [&](int each) {
    return "rank " + std::to_string(each) + " (" + host_of(each) + ")";
  };
  for (const int peer : topology.peers_of(rank)) {
    const int listening = topology.listens(rank, peer) ? rank : peer;
    const int calling = listening == rank ? peer : rank;
    const std::string& caller = host_of(calling);
    if (caller.empty() || caller == host_of(listening) || means_loopback(caller)) continue;
    const std::string found = loopback(host_of(listening));
    if (found.empty() || !loopback(caller).empty()) continue;  // Both run on this machine.
    throw Error(name(listening) + " is " + found + " by its name on the machine of rank " +
                    std::to_string(rank) + ", so " + name(calling) +
                    " cannot reach it: write its address into the nodefile, or mend /etc/hosts",
                Exit::usage);
  }
}

std::string interface_text(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 1 && host.front() == '[') host = host.substr(1, host.size() - 2);
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return "";
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, &freeifaddrs);
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (host_text(each->ifa_addr) != host) continue;
    const std::string name = each->ifa_name;
    const std::string folder = "/sys/class/net/" + name;
    std::ifstream file(folder + "/speed");
    long megabits = -1;
    if (!(file >> megabits) || megabits <= 0 || is_virtual(folder)) return " (" + name + ")";
    const std::string speed = megabits % 1000 == 0 ? std::to_string(megabits / 1000) + " Gbit/s"
                                                   : std::to_string(megabits) + " Mbit/s";
    return " (" + name + ", " + speed + ")";
  }
  return "";
}

}  // namespace duplex::net
