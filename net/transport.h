// Measures one link between two machines: t_comm, the time for all weights of a model, in each
// direction and in both at once, beside what the link carries without frames.
#pragma once
#include <chrono>
#include <cstddef>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

struct TransportSpec {
  std::vector<std::size_t> counts;  ///< Elements by parameter: what a transfer carries.
  std::size_t chunk_bytes = std::size_t{1} << 20;
  int repeats = 5;  ///< Of every measurement, after one that does not count.
  std::chrono::milliseconds timeout{60000};  ///< For one transfer.
};

/// Seconds from the first byte's sending to the word that the last byte has come, without the time
/// that the word takes.
struct TransportTimes {
  std::vector<double> framed;  ///< As the run sends them: chunks with headers.
  std::vector<double> raw;     ///< As many bytes as one stream.
};

struct TransportResult {
  std::size_t bytes = 0;             ///< Of the weights, without headers.
  TransportTimes out, in;            ///< One direction alone: from this side, to this side.
  TransportTimes out_both, in_both;  ///< Both at once.
  double round_trip = 0.0;           ///< Seconds, the shortest.
};

/// Both sides call it, over a mesh of two ranks with one link; rank 0 leads. Throws NetworkError
/// where the peer is lost or late. Both get the same figures, seen from either side.
TransportResult measure_transport(Mesh& mesh, const TransportSpec& spec);

}  // namespace duplex::net
