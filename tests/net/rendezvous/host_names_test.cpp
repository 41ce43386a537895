// Host names that lead nowhere, and the names of interfaces.
#include "net/rendezvous/host_names.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include "core/error.h"

namespace duplex::net {
namespace {

std::vector<Address> hosts(const std::vector<std::string>& names) {
  std::vector<Address> addresses;
  for (const std::string& name : names) addresses.push_back({name, 7117});
  return addresses;
}

/// Resolves names as a machine called lab1 with Debian's /etc/hosts does.
std::string on_lab1(const std::string& host) {
  return host == "lab1" || host == "also-lab1" ? "127.0.1.1" : "";
}

std::string refusal(const Topology& topology, int rank, const std::vector<std::string>& names) {
  try {
    check_names(topology, rank, hosts(names), on_lab1);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, Exit::usage);
    return error.what();
  }
  return "";
}

TEST(Names, ANameThatIsLoopbackHereIsRefusedWithBothRanks) {
  const Topology distributed{ServerMode::distributed, 2, 0}, central{ServerMode::central, 2, 0};
  for (const Topology& topology : {distributed, central}) {
    const std::string text = refusal(topology, 0, {"lab1", "lab2"});
    EXPECT_NE(text.find("rank 0 (lab1) is 127.0.1.1 by its name"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 1 (lab2) cannot reach it"), std::string::npos) << text;
  }
  // On a machine that is also called lab1, rank 0's name leads rank 1 to its own machine.
  const std::string text = refusal(distributed, 1, {"lab1", "10.0.0.2"});
  EXPECT_NE(text.find("rank 0 (lab1) is 127.0.1.1 by its name on the machine of rank 1"),
            std::string::npos)
      << text;
}

TEST(Names, WhatIsMeantOrNotUsedPasses) {
  const Topology distributed{ServerMode::distributed, 2, 0}, central{ServerMode::central, 2, 0};
  EXPECT_EQ(refusal(distributed, 0, {"lab1", "lab1"}), "");
  EXPECT_EQ(refusal(distributed, 0, {"lab1", "also-lab1"}), "");
  EXPECT_EQ(refusal(central, 0, {"lab1", ""}), "");
  EXPECT_EQ(refusal(distributed, 0, {"127.0.0.1", "localhost"}), "");
  EXPECT_EQ(refusal(distributed, 0, {"lab2", "10.0.0.2"}), "");
  EXPECT_EQ(refusal(central, 1, {"lab2", "lab1"}), "");  // Nobody connects to a worker.
}

TEST(Names, ThisMachinesOwn) {
  EXPECT_EQ(loopback_behind("localhost"), "");
  EXPECT_EQ(loopback_behind("127.0.0.1"), "");
  EXPECT_EQ(loopback_behind("10.0.0.1"), "");
  EXPECT_EQ(loopback_behind("no-such-host.invalid"), "");
  EXPECT_EQ(interface_text("127.0.0.1:7117"), " (lo)");
  EXPECT_EQ(interface_text("203.0.113.7:7117"), "");
}

}  // namespace
}  // namespace duplex::net
