// The notices that peers send: what each may say, and when.
#include <utility>

#include "core/error.h"
#include "net/exchange/exchange.h"
#include "net/exchange/lost_ranks.h"

namespace duplex::net {
namespace {

void refuse_unless(bool due, const char* why) {
  if (!due) throw ProtocolError(why);
}

}  // namespace

void ParameterExchange::notice(int peer, Notice notice) {
  switch (notice.kind) {
    case FrameKind::heartbeat:
      if (progress_.heard(peer, notice.value) && !is_worker()) progress_.made();
      break;
    case FrameKind::report:
      hear_report(peer, std::move(notice.text));
      break;
    case FrameKind::goodbye:
      hear_goodbye(peer);
      break;
    case FrameKind::done:
      refuse_unless(is_async() && server_ && topology_.is_worker(peer), "it ends no training here");
      server_->done(peer, notice.value);
      break;
    case FrameKind::ask:
      refuse_unless(server_ && server_->ask_turn(peer), "it may ask for no turn now");
      break;
    case FrameKind::release:
      refuse_unless(server_ && server_->release_turn(peer),
                    "it never had the turn that it gives back");
      break;
    case FrameKind::checkpoint:
      hear_checkpoint(peer, notice.value, notice.number);
      break;
    case FrameKind::snapshot:
      hear_snapshot(peer, {notice.value, ending_signal(notice.number)});
      break;
    case FrameKind::lease:
      hear_lease(notice);
      break;
    case FrameKind::state:
      refuse_unless(spec_.state_inbox != nullptr, "this rank awaits no state");
      progress_.moved(peer);
      spec_.state_inbox->add(peer, notice.value, notice.number, notice.text);
      break;
    case FrameKind::window:
      flow_.hear_window(peer, notice.value);
      break;
    case FrameKind::pace:
      flow_.hear_pace(peer, notice.value);
      break;
    default:
      throw ProtocolError("it belongs to no run");
  }
}

/// The coordinator takes reports of all ranks; the workers of a central server, which may go on
/// without some of them, learn from its report whom it has lost.
void ParameterExchange::hear_report(int peer, std::string report) {
  refuse_unless(rank_ == topology_.coordinator() || takes_leases(), "this rank takes no reports");
  if (takes_leases()) decode_ranks(report, topology_.size);
  peers_.keep_report(peer, std::move(report));
}

void ParameterExchange::hear_goodbye(int peer) {
  if (server_ && topology_.is_worker(peer)) server_->require_parting(peer);
  peers_.part(peer);
  incoming_.wake();
}

}  // namespace duplex::net
