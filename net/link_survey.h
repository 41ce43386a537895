// Measures all links of a mesh, pair by pair, and gathers what every rank has measured.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "net/rendezvous/mesh.h"

namespace duplex::net {

struct SurveySpec {
  double seconds = 0.3;                      ///< Seconds of each transfer that counts, about.
  std::chrono::milliseconds timeout{60000};  ///< A peer may come so much later.
};

/// What one rank has measured with each other, by rank; 0 with itself. Every pair has its turn
/// while neither of them talks to anybody else, so that no link is shared at its ends.
struct LinkRates {
  std::vector<double> out, in;     ///< Bytes a second that TCP carries, to and from that rank.
  std::vector<double> round_trip;  ///< Seconds, the shortest.
  /// Processor seconds of this process that a byte takes to send to that rank, and to receive.
  std::vector<double> sending, receiving;
};

/// All ranks of a mesh call it in which each is connected to each. Throws NetworkError if a peer is
/// lost or late, ProtocolError if it says something else than is due.
LinkRates survey_links(Mesh& mesh, const SurveySpec& spec);

/// The pairs that have their turn in one round, of `ranks` ranks; every pair has one in one of the
/// rounds 0 to survey_rounds() - 1. A rank is in one pair of a round at most.
std::vector<std::pair<int, int>> survey_round(int ranks, int round);
int survey_rounds(int ranks);

/// Gives every rank the texts of all, by rank: at most 1 MiB each. All ranks call it. Throws as
/// survey_links() does.
std::vector<std::string> share_texts(Mesh& mesh, const std::string& own,
                                     std::chrono::milliseconds timeout);

}  // namespace duplex::net
