// The record that a checkpoint of an asynchronous run has of its chunks, and its staleness.
#include "tools/dist/chunk_records.h"

#include "tests/fuzz/target.h"

namespace duplex::fuzz {

void chunk_records(const Bytes& input) {
  const std::string text = text_of(input);
  const std::size_t end = std::min(text.find("\n\n"), text.size());
  constexpr std::size_t chunks = 5;
  std::vector<net::ChunkRecord> records;
  reads(input, 400, [&] {
    records = tools::parse_records(text.substr(0, end), chunks, 2);
    const std::string again = tools::text_of(records);
    require(tools::text_of(tools::parse_records(again, chunks, 2)) == again,
            "records change their text");
    const std::size_t positions = tools::positions_of(records).size();
    require(positions == 0 || positions == 2, "a worker has no position");
  });
  reads(input, 400, [&] {
    for (const net::Staleness& step : tools::parse_staleness(text.substr(end), records))
      require(step.worker >= 0 && step.worker < 2, "a worker that there is not");
  });
}

}  // namespace duplex::fuzz
