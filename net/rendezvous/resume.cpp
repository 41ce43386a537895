#include "net/rendezvous/resume.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "net/rendezvous/link_watch.h"
#include "net/rendezvous/talk.h"

namespace duplex::net {
namespace {

/// Of a worker whose position no owner has told.
constexpr std::uint64_t no_position = std::numeric_limits<std::uint64_t>::max();

struct Offer {
  bool any = false, complete = false, never = false;
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
  f.number(static_cast<std::uint8_t>(m.kept));
  f.number(static_cast<std::uint32_t>(m.positions.size()));
  for (const std::uint64_t position : m.positions) f.number(position);
}
void describe(PayloadReader& f, ResumePoint& m) {
  std::uint8_t kept = 0;
  std::uint32_t count = 0;
  f.number(m.steps);
  f.number(m.samples);
  f.number(m.ranks);
  f.number(kept);
  f.number(count);
  if (count > f.left() / sizeof(std::uint64_t))
    throw ProtocolError("a checkpoint of " + std::to_string(count) + " workers");
  m.kept = kept != 0;
  m.positions.resize(count);
  for (std::uint64_t& position : m.positions) f.number(position);
}

void describe(PayloadWriter& f, const Offer& m) {
  f.number(static_cast<std::uint8_t>((m.any ? 1 : 0) + (m.complete ? 2 : 0) + (m.never ? 4 : 0)));
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

std::string steps_text(const Offer& offer, std::size_t ranks) {
  if (offer.any) return "any";
  if (offer.points.empty()) return "none";
  std::string text;
  for (const ResumePoint& point : offer.points)
    text += (text.empty() ? "" : ", ") + std::to_string(point.steps) +
            (point.ranks == ranks ? "" : " (by " + std::to_string(point.ranks) + " ranks)") +
            (point.kept ? " (kept without the server)" : "");
  return text;
}

/// Returns whether a rank can go on from the decision's point, and takes the positions that it
/// tells into it.
bool take_part(const Offer& offer, int rank, Decision& decision) {
  ResumePoint& point = decision.point;
  if (offer.any || point.absent.count(rank) != 0) return true;
  const auto own = std::find(offer.points.begin(), offer.points.end(), point);
  if (own == offer.points.end()) return false;
  point.positions.resize(std::max(point.positions.size(), own->positions.size()), no_position);
  for (std::size_t worker = 0; worker < own->positions.size(); ++worker)
    point.positions[worker] = std::min(point.positions[worker], own->positions[worker]);
  return true;
}

/// `offers`: by rank.
Decision decide(const std::vector<Offer>& offers) {
  Decision decision;
  std::vector<ResumePoint> all;
  for (const Offer& offer : offers) all.insert(all.end(), offer.points.begin(), offer.points.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const ResumePoint& a, const ResumePoint& b) { return a.steps > b.steps; });
  for (const ResumePoint& point : all) {
    decision.found = true;
    decision.point = point;
    for (std::size_t rank = 0; rank < offers.size(); ++rank)
      decision.found = decision.found && take_part(offers[rank], static_cast<int>(rank), decision);
    if (decision.found) return decision;
  }
  const auto any = [&](bool Offer::*is) {
    return std::any_of(offers.begin(), offers.end(),
                       [is](const Offer& offer) { return offer.*is; });
  };
  const bool kept =
      std::any_of(all.begin(), all.end(), [](const ResumePoint& point) { return point.kept; });
  if (!any(&Offer::complete) || (any(&Offer::never) && !kept)) return {};
  decision.error = "--resume: no checkpoint is there on all ranks; steps there are";
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    decision.error += (rank == 0 ? " on rank " : "; on rank ") + std::to_string(rank) + ": " +
                      steps_text(offers[rank], offers.size());
  return decision;
}

std::chrono::milliseconds to_report(std::chrono::milliseconds timeout) {
  return timeout / 10 + std::chrono::milliseconds(200);
}

/// Waits for the next frame of a link, while it watches all of them.
void await_frame(std::vector<Link>& links, const Link& link, FrameKind kind, Deadline deadline,
                 std::chrono::milliseconds timeout) {
  while (!has_next(link, kind)) {
    const double left = std::chrono::duration<double>(deadline - Clock::now()).count();
    const double waited = std::chrono::duration<double>(timeout).count() - left;
    check_links(links, waited);
    if (left <= 0)
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

Decision decided(Mesh& mesh, const Offer& mine, std::chrono::milliseconds timeout) {
  const int coordinator = mesh.topology().coordinator();
  const bool decides = mesh.rank() == coordinator;
  // The coordinator knows whose offer it lacks, and is given the time to report it.
  const Deadline deadline = Clock::now() + timeout + (decides ? 0 * timeout : to_report(timeout));
  std::vector<Link>& links = mesh.links();
  Decision decision;
  if (decides) {
    std::vector<Offer> offers(static_cast<std::size_t>(mesh.topology().size));
    offers[static_cast<std::size_t>(mesh.rank())] = mine;
    for (Link& link : links) {
      await_frame(links, link, FrameKind::offer, deadline, timeout);
      with(link, deadline, [&](Talk& talk) {
        offers[static_cast<std::size_t>(link.rank)] =
            parse<Offer>(talk.receive(FrameKind::offer, 0, resume_limit));
      });
    }
    decision = decide(offers);
    for (Link& link : links)
      with(link, deadline, [&](Talk& talk) { talk.send(FrameKind::resume, payload_of(decision)); });
    return decision;
  }
  const auto link = std::find_if(links.begin(), links.end(),
                                 [&](const Link& each) { return each.rank == coordinator; });
  with(*link, deadline, [&](Talk& talk) {
    talk.send(FrameKind::offer, payload_of(mine));
    await_frame(links, *link, FrameKind::resume, deadline, timeout);
    decision = parse<Decision>(talk.receive(FrameKind::resume, 0, resume_limit));
  });
  return decision;
}

}  // namespace

std::optional<ResumePoint> agree_to_begin(Mesh& mesh, const ResumeOffer& own,
                                          std::chrono::milliseconds timeout) {
  Offer mine{own.any, own.complete, own.never, own.points};
  mine.points.resize(std::min(mine.points.size(), ResumeOffer::most_points));
  while (payload_of(mine).size() > resume_limit) mine.points.pop_back();
  Decision decision;
  try {
    decision = decided(mesh, mine, timeout);
  } catch (...) {
    end_links(mesh.links(), reason_of(std::current_exception()));
    throw;
  }
  if (!decision.error.empty()) throw Error(decision.error, Exit::failed);
  return decision.found ? std::optional(decision.point) : std::nullopt;
}

}  // namespace duplex::net
