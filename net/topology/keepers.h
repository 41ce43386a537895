// The keepers say which rank keeps a copy of the part of a checkpoint that an owner writes, so that
// the loss of one machine loses no part.
#pragma once
#include <string>
#include <vector>

#include "net/topology/topology.h"

namespace duplex::net {

/// An owner's keeper is the next worker, cyclically, by the same distance for all owners: 1 where
/// every rank has a machine of its own, else the least with which no owner and keeper share one. If
/// there is none, it is the next worker on another machine or, where all are on one, the next
/// worker. Every rank computes the same from the same arguments.
class Keepers {
 public:
  /// `hosts`: by rank; an empty name is a machine of its own.
  Keepers(const Topology& topology, const std::vector<std::string>& hosts);

  /// -1: nobody keeps a copy, since the rank owns nothing or trains alone.
  int of(int owner) const { return keepers_[static_cast<std::size_t>(owner)]; }
  /// The owners whose parts a rank keeps copies of, ascending.
  std::vector<int> owners_of(int keeper) const;
  /// This is what ranks compare, for people: "nodefile with copies 2 workers on", "nodefile with
  /// copies at 2 2 0"; "" where every owner's keeper is the next worker.
  std::string str() const;

 private:
  std::size_t distance_ = 0;  ///< 0: there is no common one.
  std::vector<int> keepers_;  ///< By rank.
};

}  // namespace duplex::net
