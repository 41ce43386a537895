// Addresses, as nodefiles, flags and environment variables give them.
#include "net/wire/address.h"
#include "tests/fuzz/target.h"

namespace duplex::fuzz {

void address(const Bytes& input) {
  reads(input, 8, [&] {
    const net::Address read = net::Address::parse(text_of(input), 7117);
    const net::Address again = net::Address::parse(read.str(), 0);
    require(again.host == read.host && again.port == read.port, "an address changes its text");
  });
}

}  // namespace duplex::fuzz
