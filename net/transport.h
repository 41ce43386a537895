// Measures one link between two machines: t_comm, the time for all weights of a model, in each
// direction and in both at once, and beside it what the link carries without frames.
#pragma once
#include <chrono>
#include <cstddef>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

struct TransportSpec {
  std::vector<std::size_t> counts;  ///< Elements by parameter; a transfer carries all of them.
  std::size_t chunk_bytes = std::size_t{1} << 20;
  int repeats = 5;  ///< Repetitions of every measurement, after one that does not count.
  std::chrono::milliseconds timeout{60000};  ///< Timeout of one transfer.
};

/// Seconds from the sending of the first byte to the word that the last byte has come, without the
/// time that the word takes.
struct TransportTimes {
  std::vector<double> framed;  ///< Chunks with headers, as a run sends them.
  std::vector<double> raw;     ///< The same number of bytes in one stream.
};

struct TransportResult {
  std::size_t bytes = 0;  ///< Bytes of the weights, without headers.
  /// Processor seconds of this process for all weights in frames, in one direction alone, by
  /// repetition. The kernel's work for incoming segments is in them only where it is done on this
  /// process's time, as over loopback.
  std::vector<double> sending, receiving;
  TransportTimes out, in;            ///< One direction alone: from this side, to this side.
  TransportTimes out_both, in_both;  ///< Both directions at once.
  double round_trip = 0.0;           ///< The shortest, in seconds.
};

/// Both sides call it, over a mesh of two ranks with one link; rank 0 leads. Throws NetworkError if
/// the peer is lost or late. Both get the same figures, seen from either side.
TransportResult measure_transport(Mesh& mesh, const TransportSpec& spec);

}  // namespace duplex::net
