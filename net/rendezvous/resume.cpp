#include "net/rendezvous/resume.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "net/rendezvous/file_sharing.h"
#include "net/rendezvous/held_files.h"
#include "net/rendezvous/link_watch.h"
#include "net/rendezvous/talk.h"

namespace duplex::net {
namespace {

struct Offer {
  bool any = false, complete = false, never = false, resumes = false;
  std::vector<ResumePoint> points;
};
/// The coordinator's answer to all offers.
struct Decision {
  bool found = false;
  ResumePoint point;
  std::string error;  ///< Not empty: there is nothing to go on from.
};

void describe(PayloadWriter& f, const ResumePoint& m) {
  f.number(m.steps);
  f.number(m.samples);
  f.number(m.ranks);
  f.number(static_cast<std::uint8_t>((m.kept ? 1 : 0) + (m.late ? 2 : 0)));
  for (const auto* steps : {&m.positions, &m.ends}) {
    f.number(static_cast<std::uint32_t>(steps->size()));
    for (const std::uint64_t step : *steps) f.number(step);
  }
}
void describe(PayloadReader& f, ResumePoint& m) {
  std::uint8_t flags = 0;
  f.number(m.steps);
  f.number(m.samples);
  f.number(m.ranks);
  f.number(flags);
  m.kept = (flags & 1) != 0;
  m.late = (flags & 2) != 0;
  for (auto* steps : {&m.positions, &m.ends}) {
    std::uint32_t count = 0;
    f.number(count);
    if (count > f.left() / sizeof(std::uint64_t))
      throw ProtocolError("a checkpoint of " + std::to_string(count) + " workers");
    steps->resize(count);
    for (std::uint64_t& step : *steps) f.number(step);
  }
}

void describe(PayloadWriter& f, const Offer& m) {
  f.number(static_cast<std::uint8_t>((m.any ? 1 : 0) + (m.complete ? 2 : 0) + (m.never ? 4 : 0) +
                                     (m.resumes ? 8 : 0)));
  f.number(static_cast<std::uint32_t>(m.points.size()));
  for (const ResumePoint& point : m.points) describe(f, point);
}
void describe(PayloadReader& f, Offer& m) {
  std::uint8_t flags = 0;
  std::uint32_t count = 0;
  f.number(flags);
  f.number(count);
  if (count > ResumeOffer::most_points)
    throw ProtocolError("an offer of " + std::to_string(count) + " checkpoints");
  m.any = (flags & 1) != 0;
  m.complete = (flags & 2) != 0;
  m.never = (flags & 4) != 0;
  m.resumes = (flags & 8) != 0;
  m.points.resize(count);
  for (ResumePoint& point : m.points) describe(f, point);
}

void describe(PayloadWriter& f, const Decision& m) {
  f.number(static_cast<std::uint8_t>(m.found));
  describe(f, m.point);
  f.text(m.error.substr(0, PayloadReader::text_limit));
}
void describe(PayloadReader& f, Decision& m) {
  std::uint8_t found = 0;
  f.number(found);
  describe(f, m.point);
  f.text(m.error);
  m.found = found != 0;
}

/// All that the coordinator knows before it decides.
struct Offers {
  std::vector<Offer> offers;         ///< By rank.
  std::vector<RankHolding> holding;  ///< Likewise; `ready` is of the point that is looked at.
};

/// Adds the checkpoints of which files are held, but which nobody has offered, and sorts all,
/// newest first.
void add_held(std::vector<ResumePoint>& points, const RankHolding& holding) {
  for (const HeldFiles& held : holding.held)
    if (std::find(points.begin(), points.end(), held.point) == points.end())
      points.push_back(held.point);
  std::stable_sort(points.begin(), points.end(),
                   [](const ResumePoint& a, const ResumePoint& b) { return a.steps > b.steps; });
}

std::string steps_text(const Offer& offer, const RankHolding& holding, std::size_t ranks) {
  if (offer.any) return "any";
  std::vector<ResumePoint> points = offer.points;
  add_held(points, holding);
  std::string text;
  for (const ResumePoint& point : points)
    text += (text.empty() ? "" : ", ") + std::to_string(point.steps) +
            (point.ranks == ranks ? "" : " (by " + std::to_string(point.ranks) + " ranks)") +
            (point.kept ? " (kept without the server)" : "");
  return text.empty() ? "none" : text;
}

/// Says which parts of a checkpoint are lost.
std::string lack_text(const ResumePoint& point, const std::vector<int>& missing) {
  constexpr std::size_t most_named = 8;
  std::string ranks;
  for (std::size_t i = 0; i < std::min(missing.size(), most_named); ++i)
    ranks += (i == 0 ? "" : i + 1 == missing.size() ? " and " : ", ") + std::to_string(missing[i]);
  if (missing.size() > most_named) ranks += ", ...";
  return "; of the one after " + std::to_string(point.steps) + " steps by " +
         std::to_string(point.ranks) + " ranks, no rank has the part of rank " + ranks +
         ", nor a copy of it";
}

/// Returns whether a rank can go on from the decision's point, and takes the positions that it
/// tells into it.
bool take_part(const Offer& offer, int rank, Decision& decision) {
  ResumePoint& point = decision.point;
  if (offer.any || point.absent.count(rank) != 0) return true;
  const auto own = std::find(offer.points.begin(), offer.points.end(), point);
  if (own == offer.points.end()) return false;
  if (point.ends.empty()) point.ends = own->ends;
  point.positions.resize(std::max(point.positions.size(), own->positions.size()),
                         ResumePoint::no_position);
  for (std::size_t worker = 0; worker < own->positions.size(); ++worker)
    point.positions[worker] = std::min(point.positions[worker], own->positions[worker]);
  return true;
}

/// Looks at one checkpoint. Returns how the ranks that lack files get them; none: they cannot, and
/// `lack` says why, if it was empty and the ranks share files.
std::optional<std::vector<FileTransfer>> plan_of(const Topology& topology, Decision& decision,
                                                 Offers& all, const FileSharing* sharing,
                                                 std::string& lack) {
  bool ready = true;
  for (std::size_t rank = 0; rank < all.offers.size(); ++rank) {
    all.holding[rank].ready = take_part(all.offers[rank], static_cast<int>(rank), decision);
    ready = ready && all.holding[rank].ready;
  }
  if (ready) return std::vector<FileTransfer>();
  if (sharing == nullptr || !sharing->needs) return std::nullopt;
  SharingPlan plan = plan_sharing(topology, decision.point, all.holding, sharing->needs);
  if (plan.missing.empty()) return std::move(plan.transfers);
  if (lack.empty()) lack = lack_text(decision.point, plan.missing);
  return std::nullopt;
}

/// `transfers`: takes the files that have to be sent before ranks go on.
Decision decide(const Topology& topology, Offers& all, const FileSharing* sharing,
                std::vector<FileTransfer>& transfers) {
  Decision decision;
  for (std::size_t rank = 1; rank < all.offers.size(); ++rank)
    if (all.offers[rank].resumes != all.offers[0].resumes)
      decision.error = "rank " + std::to_string(all.offers[rank].resumes ? rank : 0) +
                       " has --resume, and rank " +
                       std::to_string(all.offers[rank].resumes ? 0 : rank) +
                       " has not: give all ranks the same";
  if (!decision.error.empty()) return decision;
  std::vector<ResumePoint> points;
  for (const Offer& offer : all.offers)
    points.insert(points.end(), offer.points.begin(), offer.points.end());
  for (const RankHolding& holding : all.holding) add_held(points, holding);
  std::string lack;
  for (const ResumePoint& point : points) {
    decision.point = point;
    const auto plan = plan_of(topology, decision, all, sharing, lack);
    decision.found = plan.has_value() && (!point.kept || keeps_training(decision.point));
    if (!decision.found) continue;
    transfers = *plan;
    return decision;
  }
  const auto any = [&](bool Offer::*is) {
    return std::any_of(all.offers.begin(), all.offers.end(),
                       [is](const Offer& offer) { return offer.*is; });
  };
  const bool kept = std::any_of(points.begin(), points.end(), keeps_training);
  if (!any(&Offer::complete) || (any(&Offer::never) && !kept)) return {};
  // The others are told no more than a text may have.
  constexpr std::size_t most_listed = 600;
  decision.error = "--resume: no checkpoint is there on all ranks; steps there are";
  for (std::size_t rank = 0; rank < all.offers.size() && decision.error.size() < most_listed;
       ++rank)
    decision.error += (rank == 0 ? " on rank " : "; on rank ") + std::to_string(rank) + ": " +
                      steps_text(all.offers[rank], all.holding[rank], all.offers.size());
  decision.error += lack;
  return decision;
}

/// A rank that was told why the run does not begin ends at once. The coordinator tells the others,
/// one after the other, within that time.
constexpr std::chrono::milliseconds told_within{1500};

/// Waits for the next frame of a link, while it watches all of them. `told`: the frame may say why
/// another link has ended.
void await_frame(std::vector<Link>& links, const Link& link, FrameKind kind, Deadline begun,
                 Deadline deadline, bool told = false) {
  std::optional<Deadline> last;  // For the frame, since a link has ended.
  while (!has_next(link, kind)) {
    const Deadline now = Clock::now();
    const double waited = std::chrono::duration<double>(now - begun).count();
    try {
      check_links(links, waited);
    } catch (const NetworkError&) {
      if (told && has_next(link, kind)) return;  // It came meanwhile.
      if (!last) last = now + told_within;
      if (!told || link.stream.socket().ended() || now >= *last) throw;
    }
    if (now >= deadline)
      throw NetworkError("recv", link.peer, "waiting for the ranks that it waits for",
                         "deadline passed", waited, Exit::timed_out);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

/// Talks over one link, and adds the frames to its records.
template <class Exchange>
void with(Link& link, Deadline deadline, const Exchange& exchange) {
  Talk talk(link.stream, deadline, "agreeing to begin");
  exchange(talk);
  const std::vector<FrameRecord> frames = talk.frames(link.rank);
  link.handshake.insert(link.handshake.end(), frames.begin(), frames.end());
}

/// This is what all ranks do next.
struct Agreement {
  Decision decision;
  OwnTransfers own;
};

Agreement agreed(Mesh& mesh, const Offer& mine, const FileSharing* sharing,
                 std::chrono::milliseconds timeout) {
  const int coordinator = mesh.topology().coordinator();
  const bool decides = mesh.rank() == coordinator;
  // The coordinator knows whose offer it lacks, and is given the time to report it.
  const Deadline begun = Clock::now();
  const Deadline deadline = begun + timeout + (decides ? 0 * timeout : to_report(timeout));
  std::vector<Link>& links = mesh.links();
  const std::vector<HeldFiles> held = sharing != nullptr ? sharing->held : std::vector<HeldFiles>();
  Agreement agreement;
  if (decides) {
    Offers all;
    all.offers.resize(static_cast<std::size_t>(mesh.topology().size));
    all.holding.resize(all.offers.size());
    all.offers[static_cast<std::size_t>(mesh.rank())] = mine;
    all.holding[static_cast<std::size_t>(mesh.rank())].held = held;
    for (Link& link : links) {
      const auto rank = static_cast<std::size_t>(link.rank);
      await_frame(links, link, FrameKind::offer, begun, deadline);
      with(link, deadline, [&](Talk& talk) {
        all.offers[rank] = parse<Offer>(talk.receive(FrameKind::offer, 0, resume_limit));
        await_frame(links, link, FrameKind::holding, begun, deadline);
        all.holding[rank].held = decode_held(talk.receive(FrameKind::holding));
      });
    }
    std::vector<FileTransfer> transfers;
    agreement.decision = decide(mesh.topology(), all, sharing, transfers);
    agreement.own = own_transfers(transfers, mesh.rank());
    for (Link& link : links)
      with(link, deadline,
           [&](Talk& talk) { talk.send(FrameKind::resume, payload_of(agreement.decision)); });
    if (agreement.decision.found) tell_transfers(mesh, transfers, deadline);
    return agreement;
  }
  const auto link = std::find_if(links.begin(), links.end(),
                                 [&](const Link& each) { return each.rank == coordinator; });
  with(*link, deadline, [&](Talk& talk) {
    talk.send(FrameKind::offer, payload_of(mine));
    talk.send(FrameKind::holding, encode_held(held));
    await_frame(links, *link, FrameKind::resume, begun, deadline, true);
    agreement.decision = parse<Decision>(talk.receive(FrameKind::resume, 0, resume_limit));
  });
  if (agreement.decision.found && !agreement.decision.point.late) {
    await_frame(links, *link, FrameKind::transfers, begun, deadline, true);
    agreement.own = hear_transfers(mesh, deadline);
  }
  return agreement;
}

}  // namespace

bool keeps_training(const ResumePoint& point) {
  const auto trained = [](std::uint64_t at) { return at != 0 && at != ResumePoint::no_position; };
  return point.kept && (point.positions.empty() ||
                        std::any_of(point.positions.begin(), point.positions.end(), trained));
}

std::chrono::milliseconds to_report(std::chrono::milliseconds timeout) {
  return timeout / 10 + std::chrono::milliseconds(200);
}

std::optional<ResumePoint> agree_to_begin(Mesh& mesh, const ResumeOffer& own,
                                          std::chrono::milliseconds timeout,
                                          const FileSharing* sharing) {
  Offer mine{own.any, own.complete, own.never, own.resumes, own.points};
  mine.points.resize(std::min(mine.points.size(), ResumeOffer::most_points));
  while (payload_of(mine).size() > resume_limit) mine.points.pop_back();
  Decision decision;
  try {
    const Agreement agreement = agreed(mesh, mine, sharing, timeout);
    decision = agreement.decision;
    if (agreement.own.shared) {
      if (sharing == nullptr) throw ProtocolError("files are shared, and this rank has no place");
      share_files(mesh, *sharing, decision.point, agreement.own, timeout);
    }
  } catch (...) {
    end_links(mesh.links(), reason_of(std::current_exception()));
    throw;
  }
  if (!decision.error.empty()) throw Error(decision.error, Exit::failed);
  return decision.found ? std::optional(decision.point) : std::nullopt;
}

void answer_late(Link& link, ResumePoint point, const std::string& error, Deadline deadline) {
  Decision decision;
  decision.found = error.empty();
  decision.point = std::move(point);
  decision.error = error;
  with(link, deadline, [&](Talk& talk) {
    parse<Offer>(talk.receive(FrameKind::offer, 0, resume_limit));
    decode_held(talk.receive(FrameKind::holding));
    talk.send(FrameKind::resume, payload_of(decision));
  });
}

}  // namespace duplex::net
