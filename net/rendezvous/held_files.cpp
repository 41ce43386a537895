#include "net/rendezvous/held_files.h"

#include <algorithm>
#include <set>

#include "net/rendezvous/talk.h"

namespace duplex::net {
namespace {

struct HeldMessage {
  std::vector<HeldFiles> held;
};

template <class Fields>
void describe_entry(Fields& f, HeldFiles& m, std::uint8_t& flags) {
  f.number(m.point.steps);
  f.number(m.point.samples);
  f.number(m.point.ranks);
  auto first = static_cast<std::int32_t>(m.first), last = static_cast<std::int32_t>(m.last);
  f.number(first);
  f.number(last);
  f.number(flags);
  m.first = first;
  m.last = last;
}

void describe(PayloadWriter& f, const HeldMessage& m) {
  f.number(static_cast<std::uint32_t>(m.held.size()));
  for (HeldFiles each : m.held) {
    auto flags = static_cast<std::uint8_t>((each.copies ? 1 : 0) + (each.partial ? 2 : 0) +
                                           (each.point.kept ? 4 : 0) + (each.cut ? 8 : 0) +
                                           (each.none ? 16 : 0));
    describe_entry(f, each, flags);
  }
}
void describe(PayloadReader& f, HeldMessage& m) {
  std::uint32_t count = 0;
  f.number(count);
  if (count > most_held)
    throw ProtocolError("a rank that holds " + std::to_string(count) + " lots of files");
  m.held.resize(count);
  for (HeldFiles& each : m.held) {
    std::uint8_t flags = 0;
    describe_entry(f, each, flags);
    each.copies = (flags & 1) != 0;
    each.partial = (flags & 2) != 0;
    each.point.kept = (flags & 4) != 0;
    each.cut = (flags & 8) != 0;
    each.none = (flags & 16) != 0;
    if (flags > 31) throw ProtocolError("files of kind " + std::to_string(flags));
    if (each.first < 0 || each.last < each.first || each.last >= most_ranks)
      throw ProtocolError("files of ranks " + std::to_string(each.first) + " to " +
                          std::to_string(each.last));
  }
}

/// The planning of one checkpoint.
class Planner {
 public:
  Planner(const Topology& topology, const ResumePoint& point, std::vector<RankHolding> ranks)
      : topology_(topology),
        point_(point),
        ranks_(std::move(ranks)),
        before_(ranks_),
        load_(ranks_.size()) {}

  bool held(int part, bool whole) const {
    return std::any_of(ranks_.begin(), ranks_.end(),
                       [&](const RankHolding& rank) { return find(rank, part, whole) != nullptr; });
  }

  /// Returns whether some rank knows such a thing of the checkpoint.
  template <class Is>
  bool known(const Is& is) const {
    return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankHolding& rank) {
      return std::any_of(rank.held.begin(), rank.held.end(),
                         [&](const HeldFiles& each) { return each.point == point_ && is(each); });
    });
  }

  /// Plans that `to` gets a part, unless it has it.
  void bring(int to, const PartNeed& need) {
    if (find(at(to), need.rank, need.whole) != nullptr) return;
    const int from = best_source(to, need);
    if (topology_.connected(from, to)) return send(from, to, need);
    // Workers of a central server are connected to it alone.
    bring(topology_.server, need);
    send(topology_.server, to, need);
  }

  /// Ranks work on different transfers at once where each begins with another peer. What a central
  /// server passes on comes to it first.
  std::vector<FileTransfer> transfers() && {
    const auto round = [this](const FileTransfer& each) {
      if (topology_.mode == ServerMode::central) return each.to == topology_.server ? 0 : 1;
      return (each.to - each.from + topology_.size) % topology_.size;
    };
    std::stable_sort(
        transfers_.begin(), transfers_.end(),
        [&](const FileTransfer& a, const FileTransfer& b) { return round(a) < round(b); });
    return std::move(transfers_);
  }

 private:
  RankHolding& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  const HeldFiles* find(const RankHolding& rank, int part, bool whole) const {
    const auto found = std::find_if(rank.held.begin(), rank.held.end(), [&](const HeldFiles& each) {
      return each.has(point_, part) && !each.none && !(whole && each.partial);
    });
    return found == rank.held.end() ? nullptr : &*found;
  }

  /// Returns whether a rank can send a part. Nobody but a central server sends what it has to get
  /// first.
  bool can_send(int rank, const PartNeed& need) const {
    const bool passes_on = topology_.mode == ServerMode::central && rank == topology_.server;
    return find((passes_on ? ranks_ : before_)[static_cast<std::size_t>(rank)], need.rank,
                need.whole) != nullptr;
  }

  /// One that is connected rather than not, and of those the one that sends least.
  int best_source(int to, const PartNeed& need) const {
    int best = -1;
    const auto cost = [&](int rank) {
      return std::pair(!topology_.connected(rank, to), load_[static_cast<std::size_t>(rank)]);
    };
    for (int rank = 0; rank < topology_.size; ++rank)
      if (can_send(rank, need) && (best < 0 || cost(rank) < cost(best))) best = rank;
    return best;
  }

  /// A rank that receives a file puts it in the place of its own.
  void send(int from, int to, const PartNeed& need) {
    const HeldFiles& source = *find(at(from), need.rank, need.whole);
    transfers_.push_back({from, to, need.rank, source.copies});
    ++load_[static_cast<std::size_t>(from)];
    // It is found before a partial one that was there.
    HeldFiles received{point_, need.rank, need.rank};
    received.partial = source.partial;
    at(to).held.insert(at(to).held.begin(), received);
  }

  const Topology& topology_;
  const ResumePoint& point_;
  std::vector<RankHolding> ranks_;  ///< With what the transfers bring.
  const std::vector<RankHolding> before_;
  std::vector<std::size_t> load_;  ///< By rank: files that it sends.
  std::vector<FileTransfer> transfers_;
};

}  // namespace

std::vector<std::uint8_t> encode_held(const std::vector<HeldFiles>& held) {
  HeldMessage message{held};
  message.held.resize(std::min(held.size(), most_held));
  return payload_of(message);
}

std::vector<HeldFiles> decode_held(const std::vector<std::uint8_t>& payload) {
  return parse<HeldMessage>(payload).held;
}

SharingPlan plan_sharing(const Topology& topology, const ResumePoint& point,
                         const std::vector<RankHolding>& ranks, const Needs& needs) {
  Planner planner(topology, point, ranks);
  const Planner before = planner;
  const HeldParts parts{before.known([](const HeldFiles& each) { return each.cut; }),
                        [&](int part, bool whole) { return before.held(part, whole); }};
  std::set<int> missing;
  for (int rank = 0; rank < topology.size; ++rank) {
    if (ranks[static_cast<std::size_t>(rank)].ready) continue;
    for (const PartNeed& need : needs(point, rank, parts)) {
      if (before.held(need.rank, need.whole))
        planner.bring(rank, need);
      else if (!before.known(
                   [&](const auto& each) { return each.none && each.has(point, need.rank); }))
        missing.insert(need.rank);
    }
  }
  SharingPlan plan;
  plan.missing.assign(missing.begin(), missing.end());
  if (missing.empty()) plan.transfers = std::move(planner).transfers();
  return plan;
}

}  // namespace duplex::net
