// Addresses, and listeners that cannot have theirs.
#include "net/wire/address.h"

#include <gtest/gtest.h>

#include <string>

#include "net/wire/listener.h"

namespace duplex::net {
namespace {

TEST(Listener, ATakenPortIsNamed) {
  const Listener listener = Listener::open({"127.0.0.1", 0});
  try {
    Listener::open({"127.0.0.1", listener.port()});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("127.0.0.1:" + std::to_string(listener.port())),
              std::string::npos);
  }
  EXPECT_THROW(Listener::open({"192.0.2.1", 0}), Error);  // TEST-NET-1 belongs to nobody.
  EXPECT_TRUE(listener.loopback());
  EXPECT_FALSE(Listener::open({"0.0.0.0", 0}).loopback());
}

TEST(Address, Parse) {
  const auto parse = [](const char* text) { return Address::parse(text, 7117).str(); };
  EXPECT_EQ(parse("node1"), "node1:7117");
  EXPECT_EQ(parse("node1:80"), "node1:80");
  EXPECT_EQ(parse("10.0.0.1:0"), "10.0.0.1:0");
  EXPECT_EQ(parse("[::1]:99"), "[::1]:99");
  EXPECT_EQ(parse("[::1]"), "[::1]:7117");
  for (const char* bad :
       {"", ":80", "node1:", "node1:x", "node1:65536", "node1:1:2", "[::1", "[]:1", "[::1]80",
        "node1:-1", "-oProxyCommand=x", "a;b", "a b", "a\x1b[2J", "$(x)", "a'b"})
    EXPECT_THROW(Address::parse(bad, 1), Error) << bad;
}

}  // namespace
}  // namespace duplex::net
