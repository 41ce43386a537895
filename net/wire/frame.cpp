#include "net/wire/frame.h"

#include <algorithm>

namespace duplex::net {
namespace {

/// Returns how many bytes the printable character at `at` has, in UTF-8; 0 if there is none. U+0080
/// to U+009F are control characters, too.
std::size_t printable_bytes(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  std::size_t length = 0;
  unsigned lowest = 0x80;  // The second byte's least value; smaller ones have a shorter form.
  if (first >= 0xC2 && first < 0xE0) {
    length = 2;
    if (first == 0xC2) lowest = 0xA0;
  } else if (first >= 0xE0 && first < 0xF0) {
    length = 3;
    if (first == 0xE0) lowest = 0xA0;
  } else if (first >= 0xF0 && first < 0xF5) {
    length = 4;
    if (first == 0xF0) lowest = 0x90;
  }
  if (second < lowest) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) >= 0xC0) return 0;
  return length;
}

}  // namespace

std::string name_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::hello:
      return "hello";
    case FrameKind::challenge:
      return "challenge";
    case FrameKind::response:
      return "response";
    case FrameKind::accept:
      return "accept";
    case FrameKind::reject:
      return "reject";
    case FrameKind::ping:
      return "ping";
    case FrameKind::pong:
      return "pong";
    case FrameKind::offer:
      return "offer";
    case FrameKind::resume:
      return "resume";
    case FrameKind::holding:
      return "holding";
    case FrameKind::transfers:
      return "transfers";
    case FrameKind::file:
      return "file";
    case FrameKind::weights:
      return "weights";
    case FrameKind::gradient:
      return "gradient";
    case FrameKind::heartbeat:
      return "heartbeat";
    case FrameKind::report:
      return "report";
    case FrameKind::goodbye:
      return "goodbye";
    case FrameKind::abort:
      return "abort";
    case FrameKind::done:
      return "done";
    case FrameKind::ask:
      return "ask";
    case FrameKind::grant:
      return "grant";
    case FrameKind::release:
      return "release";
    case FrameKind::window:
      return "window";
    case FrameKind::pace:
      return "pace";
    case FrameKind::checkpoint:
      return "checkpoint";
    case FrameKind::snapshot:
      return "snapshot";
    case FrameKind::state:
      return "state";
    case FrameKind::lease:
      return "lease";
    case FrameKind::factors:
      return "factors";
    case FrameKind::map:
      return "map";
    case FrameKind::map_gradient:
      return "map-gradient";
  }
  return "kind " + std::to_string(static_cast<unsigned>(kind));
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = printable_bytes(text, i);
    if (length == 0) text[i] = '?';
    i += std::max<std::size_t>(length, 1);
  }
  return text;
}

void PayloadWriter::text(const std::string& value) {
  number(static_cast<std::uint32_t>(value.size()));
  bytes_.insert(bytes_.end(), value.begin(), value.end());
}

const std::uint8_t* PayloadReader::take(std::size_t size) {
  if (size > left_) throw ProtocolError("a message ends too early");
  const std::uint8_t* from = at_;
  at_ += size;
  left_ -= size;
  return from;
}

void PayloadReader::text(std::string& value) {
  std::uint32_t size = 0;
  number(size);
  if (size > text_limit) throw ProtocolError("a text of " + std::to_string(size) + " bytes");
  const std::uint8_t* from = take(size);
  value = printable(std::string(from, from + size));
}

void PayloadReader::done() const {
  if (left_ > 0) throw ProtocolError("a message is longer than its fields");
}

void check_header(const FrameHeader& header) {
  if (header.magic != frame_magic) throw ProtocolError("what came is no frame header");
  if (header.version != protocol_version)
    throw ProtocolError("it is of version " + std::to_string(header.version) +
                        " of the protocol, this program speaks version " +
                        std::to_string(protocol_version));
  if (!is_data(header.kind) && header.coding != Coding::float32)
    throw ProtocolError(name_of(header.kind) + " with a coding of values");
}

AbortReason reason_of(const std::exception_ptr& cause) {
  try {
    std::rethrow_exception(cause);
  } catch (const Error& error) {
    return {error.what(), error.code};
  } catch (const std::exception& error) {
    return {error.what(), Exit::failed};
  }
}

std::vector<std::uint8_t> encode(const AbortReason& reason) {
  PayloadWriter writer;
  writer.number(static_cast<std::uint32_t>(reason.code));
  writer.text(reason.text.substr(0, PayloadReader::text_limit));
  return writer.take();
}

AbortReason decode_abort(const std::uint8_t* data, std::size_t size) {
  AbortReason reason;
  std::uint32_t code = 0;
  PayloadReader reader(data, size);
  reader.number(code);
  reader.text(reason.text);
  reader.done();
  // A code that this version does not know is a failure all the same; an abort is never a success.
  const bool known = code >= static_cast<std::uint32_t>(Exit::failed) &&
                     code <= static_cast<std::uint32_t>(Exit::timed_out);
  reason.code = known ? static_cast<Exit>(code) : Exit::failed;
  return reason;
}

}  // namespace duplex::net
