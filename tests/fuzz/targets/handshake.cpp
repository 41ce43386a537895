// The bytes of a peer that connects to a rank, or that a rank connects to, before it has proved
// that it knows the key. The first byte says which of the two it is.
#include "net/rendezvous/handshake.h"

#include "tests/fuzz/byte_stream.h"

namespace duplex::fuzz {

void handshake(const Bytes& input) {
  if (input.empty() || input.size() > 64 * 1024) return;
  const bool listens = input[0] % 2 == 1;
  const Bytes said(input.begin() + 1, input.end());
  ByteStream somebody(said);
  net::Self self;
  self.size = 2;
  self.rank = listens ? 0 : 1;
  self.identity = {"job", net::fingerprint("model"), net::fingerprint("data"),
                   net::fingerprint("settings"), net::fingerprint("start")};
  self.key = net::Key(net::sha256("a key that the input cannot know"));
  self.protection.seal = net::ProtectionSpec::Seal::never;
  // A text can be quoted several times in a message.
  const bool in = reads(said, 64, [&] {
    const Deadline deadline = ByteStream::deadline();
    if (listens)
      net::server_handshake(
          somebody.stream, self, [](int) {}, deadline);
    else
      net::client_handshake(somebody.stream, self, 0, deadline);
  });
  require(!in, "somebody got in without the key");
}

}  // namespace duplex::fuzz
