// Exchanges the factors of linear layers: sends this worker's to all others that train with a
// layer, takes theirs, and has the layers updated by them.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/exchange.h"
#include "net/coding/coding.h"
#include "net/connection/peers.h"
#include "net/connection/progress.h"
#include "net/factors/factor_map.h"
#include "net/factors/factor_store.h"
#include "net/topology/topology.h"
#include "net/wire/frame.h"

namespace duplex::net {

class FactorExchange {
 public:
  /// All arguments must outlive it. `coding`: of the factors on the wire. `spec.own` is this rank's
  /// worker.
  FactorExchange(FactorMap map, FactorStoreSpec spec, Coding coding, const std::vector<Span>& spans,
                 const Topology& topology, Peers& peers, const Progress& progress);

  const FactorMap& map() const { return map_; }
  FactorStore& store() { return store_; }
  const FactorStore& store() const { return store_; }

  /// Returns how many frames push() sends.
  std::size_t frames(std::size_t layer) const;
  /// The factors of this worker are in the span; sends them, and hands them to the store.
  void push(std::size_t layer, std::uint64_t step);
  /// Does what ConnectionHandler's function does for a frame of factors.
  Reservation reserve(int peer, const FrameHeader& header);
  void commit(const Reservation& reservation);

  /// "rank 2 (...): no factors of fc6.weight for step 7 within 15.0 s; it got on 3.2 s ago", of
  /// those that have been waited for so long; "": there are none.
  std::string late(Clock::duration least) const;
  /// The error if factors are overdue, or missing from a rank that has ended its training; null if
  /// there is none.
  std::exception_ptr trouble(std::chrono::milliseconds timeout) const;

 private:
  /// Returns the ranks that train with a layer.
  std::vector<int> members(std::size_t layer) const;
  std::vector<float> rounded(std::size_t layer) const;
  /// Returns the ranks other than this one that are waited for.
  std::vector<int> ranks_of(const Store::Overdue& overdue) const;
  std::string text_of(const Store::Overdue& overdue, const std::vector<int>& ranks) const;

  const FactorMap map_;
  const int own_;
  const Coding coding_;
  const std::vector<Span>& spans_;
  const std::vector<int> workers_;  ///< Ranks of the workers, by worker number.
  const Topology& topology_;
  Peers& peers_;
  const Progress& progress_;
  FactorStore store_;  ///< Its thread ends before the rest.
};

}  // namespace duplex::net
