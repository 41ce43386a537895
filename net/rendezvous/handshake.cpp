#include "net/rendezvous/handshake.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "core/clock.h"
#include "core/list_text.h"
#include "net/crypto/key_agreement.h"
#include "net/rendezvous/talk.h"

namespace duplex::net {
namespace {

constexpr int round_trips = 8;
constexpr const char* same_nodefile =
    "give every rank the same nodefile, and each its own line's number as its index";

struct Hello {
  std::int32_t rank = 0;    ///< The rank that connects.
  std::int32_t wanted = 0;  ///< The rank that it wants to reach.
  Digest nonce{};
  Digest public_key{};  ///< Of KeyAgreement, if frames are to be sealed; else zeros.
};
struct Challenge {
  Digest nonce{};
  Digest public_key{};
};
struct Response {
  std::int32_t size = 0;
  std::uint8_t protection = 0;
  std::uint8_t refused = 0;  ///< Identity::refused.
  Identity identity;
  Digest proof{};
};
struct Accept {
  std::int64_t epoch_ns = 0;
  Digest proof{};
};
struct Pong {
  std::int64_t clock_ns = 0;
};

template <class Fields>
void describe(Fields& f, Hello& m) {
  f.number(m.rank);
  f.number(m.wanted);
  f.raw(m.nonce);
  f.raw(m.public_key);
}
template <class Fields>
void describe(Fields& f, Challenge& m) {
  f.raw(m.nonce);
  f.raw(m.public_key);
}
template <class Fields>
void describe(Fields& f, Fingerprint& m) {
  f.text(m.text);
  f.raw(m.digest);
}
template <class Fields>
void describe(Fields& f, Response& m) {
  f.number(m.size);
  f.number(m.protection);
  f.number(m.refused);
  f.text(m.identity.job);
  describe(f, m.identity.model);
  describe(f, m.identity.data);
  describe(f, m.identity.settings);
  describe(f, m.identity.start);
  f.raw(m.proof);
}
template <class Fields>
void describe(Fields& f, Accept& m) {
  f.number(m.epoch_ns);
  f.raw(m.proof);
}
template <class Fields>
void describe(Fields& f, Pong& m) {
  f.number(m.clock_ns);
}

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

/// Everything that both sides have said so far. A proof covers all of it, so that none of it can be
/// exchanged for something said in another handshake.
std::string transcript(const char* side, const Bytes& hello, const Bytes& challenge,
                       const Bytes& last) {
  std::string text = "duplex 6 ";
  text += side;
  text += '\0';
  for (const Bytes* part : {&hello, &challenge, &last}) text.append(part->begin(), part->end());
  return text;
}

/// Cuts the texts to what a payload may hold and a reader takes out of it; the digests stand for
/// the whole.
Identity clipped(Identity identity) {
  for (std::string* text : {&identity.job, &identity.model.text, &identity.data.text,
                            &identity.settings.text, &identity.start.text})
    *text = printable(text->substr(0, PayloadReader::text_limit));
  return identity;
}

std::string shortened(const std::string& text) {
  constexpr std::size_t readable = 300;
  return text.size() <= readable ? text : text.substr(0, readable) + "...";
}

std::string quoted(const Fingerprint& fingerprint) {
  return "'" + shortened(fingerprint.text) + "' [" + short_hex(fingerprint.digest) + "]";
}

std::string settings_difference(const std::string& them, const Fingerprint& theirs,
                                const std::string& us, const Fingerprint& ours) {
  const std::string more = only_in(theirs.text, ours.text), less = only_in(ours.text, theirs.text);
  const auto told = [&](const Fingerprint& all, const std::string& own, const std::string& other) {
    if (own.empty() && other.empty()) return quoted(all);
    return own.empty() ? "no '" + shortened(other) + "'" : "'" + shortened(own) + "'";
  };
  return "settings differ: " + them + " has " + told(theirs, more, less) + ", " + us + " has " +
         told(ours, less, more) + ": give every rank the same flags and the same nodefile";
}

/// The exit code that ranks end with which do not belong together: that of the one that cannot
/// start, if that is why.
Exit code_of(std::uint8_t theirs, Exit ours) {
  if (ours != Exit::ok) return ours;
  return theirs >= 1 && theirs <= 4 ? static_cast<Exit>(theirs) : Exit::failed;
}

std::string different_keys(const std::string& them, const std::string& us) {
  return them + " and " + us +
         " have different cluster keys, or one of them has none (a rank with a key prints the "
         "key's " +
         "fingerprint at the start): copy one key file to every machine and give every rank " +
         "--key FILE";
}

/// Returns one line that names both sides and what they disagree on; empty if they agree.
std::string difference(const std::string& them, const Response& theirs, const std::string& us,
                       const Self& ours, Protection protection) {
  const auto line = [&](const char* what, const std::string& a, const std::string& b,
                        const char* advice) {
    return them + " has " + what + " " + a + ", " + us + " has " + b + ": " + advice;
  };
  const Identity& a = theirs.identity;
  const Identity& b = ours.identity;
  if (b.refused != Exit::ok) return us + " cannot start: " + b.model.text;
  if (theirs.refused != 0) return them + " cannot start: " + a.model.text;
  if (theirs.size != ours.size)
    return "the nodefiles differ: " + them + " is of a run of " + std::to_string(theirs.size) +
           " ranks, " + us + " of " + std::to_string(ours.size) + ": " + same_nodefile;
  if (static_cast<Protection>(theirs.protection) != protection)
    return "the protection of frames differs: " + them + " wants '" +
           name_of(static_cast<Protection>(theirs.protection)) + "', " + us + " '" +
           name_of(protection) + "': give every rank the same --secure and --checksum";
  if (!equal(a.model.digest, b.model.digest))
    return line("model", quoted(a.model), quoted(b.model), "every rank must train the same one");
  if (!equal(a.data.digest, b.data.digest))
    return line("data set", quoted(a.data), quoted(b.data), "every rank must read the same one");
  if (!equal(a.settings.digest, b.settings.digest))
    return settings_difference(them, a.settings, us, b.settings);
  if (!equal(a.start.digest, b.start.digest))
    return line("starting weights", quoted(a.start), quoted(b.start),
                "give every rank the same --weights");
  return "";
}

/// This is what a side does about the protection of its frames in a handshake.
class Protector {
 public:
  Protector(const Self& self, FrameStream& stream)
      : key_(self.key),
        stream_(stream),
        protection_(self.protection.of(stream.socket().loopback())) {
    if (protection_ == Protection::sealed) agreement_.emplace();
  }

  Protection protection() const { return protection_; }
  std::uint8_t number() const { return static_cast<std::uint8_t>(protection_); }
  Digest public_key() const { return agreement_ ? agreement_->public_key() : Digest{}; }

  /// Protects the stream from here on. Both sides have proved themselves, and that hello and
  /// challenge, public keys among them, are each other's.
  void protect(const Digest& their_public_key, const Bytes& hello, const Bytes& challenge,
               bool connects) {
    DirectionSecrets secrets;
    if (agreement_) {
      // HKDF (RFC 5869): the cluster key is the salt, and each direction has its label.
      const Digest shared = agreement_->shared_secret(their_public_key);
      const Digest secret =
          key_.hmac({reinterpret_cast<const char*>(shared.data()), shared.size()});
      secrets.out = hmac(secret, transcript("connecting side seals", hello, challenge, {1}));
      secrets.in = hmac(secret, transcript("listening side seals", hello, challenge, {1}));
      if (!connects) std::swap(secrets.out, secrets.in);
    }
    stream_.protect(protection_, secrets);
  }

 private:
  const Key& key_;
  FrameStream& stream_;
  const Protection protection_;
  std::optional<KeyAgreement> agreement_;
};

ClockOffset measure_clock(Talk& talk, std::int64_t epoch_ns) {
  ClockOffset best;
  best.epoch_ns = epoch_ns;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    const std::int64_t before = clock_ns();
    talk.send(FrameKind::ping, {}, i);
    const Pong pong = parse<Pong>(talk.receive(FrameKind::pong, i));
    const std::int64_t trip = clock_ns() - before;
    if (trip >= shortest) continue;
    shortest = trip;
    best.offset_ns = pong.clock_ns - (before + trip / 2);
    best.error_ns = trip / 2;
  }
  return best;
}

}  // namespace

Identity refusal(const std::string& job, const AbortReason& reason) {
  Identity identity;
  identity.job = job;
  identity.model.text = reason.text;
  identity.refused = reason.code;
  return identity;
}

std::string rank_name(int rank, const std::string& address) {
  return "rank " + std::to_string(rank) + " (" + address + ")";
}

HandshakeResult client_handshake(FrameStream& stream, const Self& self, int rank,
                                 Deadline deadline) {
  const Socket& socket = stream.socket();
  Talk talk(stream, deadline);
  Protector protector(self, stream);
  const Bytes hello = payload_of(Hello{self.rank, rank, random_digest(), protector.public_key()});
  talk.send(FrameKind::hello, hello);
  Bytes challenge;
  try {
    challenge = talk.receive(FrameKind::challenge);
  } catch (const Rejected& rejected) {
    throw Mismatch(rejected.what(), false);
  }
  const Digest their_public_key = parse<Challenge>(challenge).public_key;

  Response response{self.size,
                    protector.number(),
                    static_cast<std::uint8_t>(self.identity.refused),
                    clipped(self.identity),
                    {}};
  response.proof = self.key.hmac(transcript("connects", hello, challenge, payload_of(response)));
  talk.send(FrameKind::response, payload_of(response));

  Accept accept;
  try {
    accept = parse<Accept>(talk.receive(FrameKind::accept));
  } catch (const Rejected& rejected) {
    const std::string reason = rejected.what();
    const bool proved =
        rejected.proof &&
        equal(*rejected.proof,
              self.key.hmac(transcript("rejects", hello, challenge,
                                       bytes_of(reason + static_cast<char>(rejected.code)))));
    throw Mismatch(reason, proved, -1, proved ? rejected.code : Exit::failed);
  }
  const Digest proof = std::exchange(accept.proof, Digest{});
  if (!equal(proof, self.key.hmac(transcript("listens", hello, challenge, payload_of(accept)))))
    throw Mismatch(different_keys(rank_name(rank, socket.peer()),
                                  rank_name(self.rank, socket.local_address())),
                   false);
  protector.protect(their_public_key, hello, challenge, true);
  const ClockOffset clock = measure_clock(talk, accept.epoch_ns);
  return {rank, talk.frames(rank), clock};
}

HandshakeResult server_handshake(FrameStream& stream, const Self& self,
                                 const std::function<void(int rank)>& welcome, Deadline deadline) {
  const Socket& socket = stream.socket();
  Talk talk(stream, deadline);
  Protector protector(self, stream);
  std::function<Digest(const std::string&)> prove;  // Set once the other has proved itself.
  const auto turn_away = [&](const std::string& message, bool fatal, int rank = -1,
                             Exit code = Exit::failed) {
    talk.reject(message, code, prove);
    return Mismatch(message, fatal, rank, code);
  };
  const auto receive = [&](FrameKind kind) {
    try {
      return talk.receive(kind);
    } catch (const Rejected& rejected) {  // It has proved nothing, so it may be a stranger's.
      throw Mismatch(socket.peer() + " turns this rank away: " + rejected.what(), false);
    }
  };
  const Bytes hello_bytes = receive(FrameKind::hello);
  const auto hello = parse<Hello>(hello_bytes);
  const Bytes challenge = payload_of(Challenge{random_digest(), protector.public_key()});
  talk.send(FrameKind::challenge, challenge);

  auto response = parse<Response>(receive(FrameKind::response));
  const Digest proof = std::exchange(response.proof, Digest{});
  const std::string them = rank_name(hello.rank, socket.peer());
  const std::string us = rank_name(self.rank, socket.local_address());
  if (!equal(proof,
             self.key.hmac(transcript("connects", hello_bytes, challenge, payload_of(response)))))
    throw turn_away(different_keys(them, us), false);
  prove = [&](const std::string& reason_and_code) {
    return self.key.hmac(transcript("rejects", hello_bytes, challenge, bytes_of(reason_and_code)));
  };
  if (response.identity.job != clipped(self.identity).job)
    throw turn_away(them + " is of job '" + response.identity.job + "', " + us + " of job '" +
                        self.identity.job + "'",
                    false);
  if (hello.wanted != self.rank)
    throw turn_away("the nodefiles differ, or a rank has the index of another: " + them +
                        " takes " + us + " for rank " + std::to_string(hello.wanted) + ": " +
                        same_nodefile,
                    true);
  const std::string differs = difference(them, response, us, self, protector.protection());
  if (!differs.empty())
    throw turn_away(differs, true, hello.rank, code_of(response.refused, self.identity.refused));
  try {
    welcome(hello.rank);
  } catch (const Mismatch& mismatch) {
    throw turn_away(mismatch.what(), mismatch.fatal);
  }

  Accept accept{self.epoch_ns, {}};
  accept.proof = self.key.hmac(transcript("listens", hello_bytes, challenge, payload_of(accept)));
  talk.send(FrameKind::accept, payload_of(accept));
  protector.protect(hello.public_key, hello_bytes, challenge, false);
  for (std::uint64_t i = 0; i < round_trips; ++i) {
    talk.receive(FrameKind::ping, i);
    talk.send(FrameKind::pong, payload_of(Pong{clock_ns()}), i);
  }
  return {hello.rank, talk.frames(hello.rank), {}};
}

}  // namespace duplex::net
