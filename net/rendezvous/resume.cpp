#include "net/rendezvous/resume.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "net/rendezvous/talk.h"

namespace duplex::net {
namespace {

struct Offer {
  bool any = false, complete = false;
  std::vector<std::uint64_t> steps;
};
/// What the coordinator decides.
struct Decision {
  bool found = false;
  std::uint64_t step = 0;
  std::string error;  ///< Not empty: there is no step to go on from.
};

void describe(PayloadWriter& f, const Offer& m) {
  f.number(static_cast<std::uint8_t>((m.any ? 1 : 0) + (m.complete ? 2 : 0)));
  f.number(static_cast<std::uint32_t>(m.steps.size()));
  for (const std::uint64_t step : m.steps) f.number(step);
}
void describe(PayloadReader& f, Offer& m) {
  std::uint8_t flags = 0;
  std::uint32_t count = 0;
  f.number(flags);
  f.number(count);
  if (count > ResumeOffer::most_steps)
    throw ProtocolError("an offer of " + std::to_string(count) + " checkpoints");
  m.any = (flags & 1) != 0;
  m.complete = (flags & 2) != 0;
  m.steps.resize(count);
  for (std::uint64_t& step : m.steps) f.number(step);
}

void describe(PayloadWriter& f, const Decision& m) {
  f.number(static_cast<std::uint8_t>(m.found));
  f.number(m.step);
  f.text(m.error.substr(0, PayloadReader::text_limit));
}
void describe(PayloadReader& f, Decision& m) {
  std::uint8_t found = 0;
  f.number(found);
  f.number(m.step);
  f.text(m.error);
  m.found = found != 0;
}

std::string steps_text(const Offer& offer) {
  if (offer.any) return "any";
  if (offer.steps.empty()) return "none";
  std::string text;
  for (const std::uint64_t step : offer.steps)
    text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text;
}

/// `offers`: by rank.
Decision decide(const std::vector<Offer>& offers) {
  Decision decision;
  std::vector<std::uint64_t> all;
  for (const Offer& offer : offers) all.insert(all.end(), offer.steps.begin(), offer.steps.end());
  std::sort(all.rbegin(), all.rend());
  for (const std::uint64_t step : all) {
    decision.found = std::all_of(offers.begin(), offers.end(), [&](const Offer& offer) {
      return offer.any ||
             std::find(offer.steps.begin(), offer.steps.end(), step) != offer.steps.end();
    });
    decision.step = step;
    if (decision.found) return decision;
  }
  if (std::none_of(offers.begin(), offers.end(), [](const Offer& offer) { return offer.complete; }))
    return {};
  decision.error = "--resume: no checkpoint is there on all ranks; steps there are";
  for (std::size_t rank = 0; rank < offers.size(); ++rank)
    decision.error += (rank == 0 ? " on rank " : "; on rank ") + std::to_string(rank) + ": " +
                      steps_text(offers[rank]);
  return decision;
}

}  // namespace

std::optional<std::uint64_t> agree_on_resume(Mesh& mesh, const ResumeOffer& own,
                                             std::chrono::milliseconds timeout) {
  const int coordinator = mesh.topology().coordinator();
  const Deadline deadline = Clock::now() + timeout;
  Offer mine{own.any, own.complete, own.steps};
  mine.steps.resize(std::min(mine.steps.size(), ResumeOffer::most_steps));
  Decision decision;
  const auto with = [&](Link& link, const auto& exchange) {
    Talk talk(link.socket, deadline, "agreeing on a checkpoint");
    exchange(talk);
    const std::vector<FrameRecord> frames = talk.frames(link.rank);
    link.handshake.insert(link.handshake.end(), frames.begin(), frames.end());
  };
  if (mesh.rank() == coordinator) {
    std::vector<Offer> offers(static_cast<std::size_t>(mesh.topology().size));
    offers[static_cast<std::size_t>(mesh.rank())] = mine;
    for (Link& link : mesh.links())
      with(link, [&](Talk& talk) {
        offers[static_cast<std::size_t>(link.rank)] = parse<Offer>(talk.receive(FrameKind::offer));
      });
    decision = decide(offers);
    for (Link& link : mesh.links())
      with(link, [&](Talk& talk) { talk.send(FrameKind::resume, payload_of(decision)); });
  } else {
    for (Link& link : mesh.links())
      if (link.rank == coordinator)
        with(link, [&](Talk& talk) {
          talk.send(FrameKind::offer, payload_of(mine));
          decision = parse<Decision>(talk.receive(FrameKind::resume));
        });
  }
  if (!decision.error.empty()) throw Error(decision.error, Exit::failed);
  return decision.found ? std::optional(decision.step) : std::nullopt;
}

}  // namespace duplex::net
