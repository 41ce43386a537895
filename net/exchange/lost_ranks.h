// The report of a central server to the workers of an asynchronous run that has lost others.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "net/wire/frame.h"

namespace duplex::net {

/// Encodes the lost ranks, which are ascending.
inline std::string encode_ranks(const std::vector<int>& ranks) {
  PayloadWriter writer;
  writer.number(static_cast<std::uint32_t>(ranks.size()));
  for (const int rank : ranks) writer.number(static_cast<std::uint32_t>(rank));
  const std::vector<std::uint8_t> bytes = writer.take();
  return {bytes.begin(), bytes.end()};
}

/// Decodes what encode_ranks() has made in a run of `size` ranks. Throws ProtocolError for anything
/// else.
inline std::vector<int> decode_ranks(const std::string& bytes, int size) {
  PayloadReader reader(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  std::uint32_t count = 0;
  reader.number(count);
  std::vector<int> ranks;
  for (std::uint32_t i = 0; i < count; ++i) {  // A count that is too great makes the reader throw.
    std::uint32_t rank = 0;
    reader.number(rank);
    if (rank >= static_cast<std::uint32_t>(size) ||
        (!ranks.empty() && rank <= static_cast<std::uint32_t>(ranks.back())))
      throw ProtocolError("report: there is no such rank");
    ranks.push_back(static_cast<int>(rank));
  }
  reader.done();
  return ranks;
}

}  // namespace duplex::net
