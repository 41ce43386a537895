#include "net/store/store.h"

#include "core/error.h"

namespace duplex::net {

Sync parse_sync(const std::string& name) {
  for (const Sync sync : {Sync::join, Sync::split, Sync::none})
    if (name == name_of(sync)) return sync;
  throw Error("unknown sync '" + name + "'; known: join, split, none", Exit::usage);
}

const char* name_of(Sync sync) {
  switch (sync) {
    case Sync::join:
      return "join";
    case Sync::split:
      return "split";
    case Sync::none:
      break;
  }
  return "none";
}

ProtocolError refused_gradient(const Chunk& chunk, int worker, std::uint64_t step,
                               const std::string& why) {
  return ProtocolError("gradient of parameter " + std::to_string(chunk.parameter) + ", chunk " +
                       std::to_string(chunk.number) + ", step " + std::to_string(step) +
                       ", from worker " + std::to_string(worker) + ": " + why);
}

}  // namespace duplex::net
