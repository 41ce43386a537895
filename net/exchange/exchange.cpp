#include "net/exchange/exchange.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/clock.h"
#include "core/error.h"

namespace duplex::net {
namespace {

/// Time that a failing rank gives its `abort` to reach the peers.
constexpr std::chrono::milliseconds last_words{1000};

std::vector<std::size_t> counts_of(const std::vector<Span>& spans) {
  std::vector<std::size_t> counts;
  counts.reserve(spans.size());
  for (const Span& span : spans) counts.push_back(span.count);
  return counts;
}

bool is_paced(const ExchangeSpec& spec) {
  return spec.sync != Sync::none && !spec.semaphore && spec.overlap && spec.shards == Shards::even;
}

LedgerSpec ledger_spec(const ExchangeSpec& spec, int rank, const CoordinatorTime& time) {
  return {rank, time, spec.ledger, spec.ledger_frames, spec.first_step, spec.trace_steps, spec.log};
}

}  // namespace

Fingerprint fingerprint_of(const std::string& text, const std::vector<Span>& spans) {
  std::string table;
  for (const Span& span : spans) table += span.name + '\0' + std::to_string(span.count) + '\n';
  return {text, sha256(table)};
}

ParameterExchange::ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh,
                                     Unstarted)
    : spec_(spec),
      spans_(std::move(spans)),
      topology_(mesh.topology()),
      rank_(mesh.rank()),
      trains_(topology_.is_worker(rank_)),
      map_(topology_.shard_map(counts_of(spans_), spec_.shards, spec_.chunk_bytes, spec_.members)),
      time_(mesh.coordinator_time()),
      ledger_(ledger_spec(spec_, rank_, time_)),
      trace_(spec_.trace_steps),
      progress_(rank_, topology_.size),
      peers_(rank_, topology_.size),
      incoming_(map_, spans_, spec_.first_step, rank_,
                rank_ == topology_.coordinator() ? spec_.last_step : std::nullopt),
      flow_(topology_, rank_, spec_.semaphore, is_paced(spec_), peers_),
      context_{spec_,     spans_, topology_,
               rank_,     map_,   peers_,
               progress_, trace_, [this](const std::exception_ptr& cause) { fail(cause); }},
      step_(spec_.first_step),
      stragglers_(spec_.timeout, spec_.log),
      pushed_(spans_.size(), spec_.first_step) {
  if (topology_.workers().empty())
    throw Error("a run without a worker: give it one more rank", Exit::usage);
  for (std::size_t p = 0; p < spans_.size(); ++p)
    if (spans_[p].weights == nullptr && (map_.trains(rank_, p) || rank_ == topology_.coordinator()))
      throw Error("parameter " + spans_[p].name + " has no memory");
  if (!spec_.factored.empty()) {
    require_factors();
    factors_.emplace(FactorMap(spec_.factored), factor_spec(), spec_.wire.gradients, spans_,
                     topology_, peers_, progress_);
    expect_initial_state();
  }
  for (std::size_t p = 0; p < spans_.size(); ++p)
    if (is_worker() && spans_[p].gradient == nullptr && !is_factored(p) && map_.trains(rank_, p))
      throw Error("parameter " + spans_[p].name + " has no memory for a gradient");
  if (!spec_.members.empty())
    maps_.emplace(map_spec(), rank_, peers_, progress_,
                  [this](std::uint64_t known) { wait_for_maps(known); });
  if (topology_.is_owner(rank_)) {
    server_.emplace(context_, trains_ ? &incoming_ : nullptr,
                    factors_ ? &factors_->map() : nullptr);
    store_ = &server_->store();
  }
  for (Link& link : mesh.links()) peers_.add(connection_to(std::move(link)));
  door_ = mesh.take_door();
}

ParameterExchange::ParameterExchange(const ExchangeSpec& spec, std::vector<Span> spans, Mesh mesh)
    : ParameterExchange(spec, std::move(spans), std::move(mesh), Unstarted()) {
  start();
}

std::unique_ptr<Connection> ParameterExchange::connection_to(Link link) {
  ConnectionHandler& owner = *this;
  auto connection = std::make_unique<Connection>(std::move(link), owner, ledger_, spec_.timeout);
  flow_.attach(*connection);
  // The weights may be all that is left of a server (AsyncCheckpoints::keep_weights).
  if (spec_.sync == Sync::none && topology_.mode == ServerMode::central)
    connection->take_whole_weights();
  if (spec_.semaphore)
    connection->take_turns(topology_.is_owner(connection->peer()), map_.chunks_of(rank_));
  return connection;
}

void ParameterExchange::start() {
  if (server_) server_->start();
  if (factors_) {
    send_initial_state();
    factors_->store().start();
  }
  flow_.start();
  if (spec_.ready) spec_.ready(*this);
  peers_.for_each([](Connection& connection) { connection.start(); });
  if (door_) doorkeeper_ = std::thread([this] { watch_door(); });
}

ParameterExchange::~ParameterExchange() {
  close_door();
  if (!finished_) {
    fail(std::make_exception_ptr(
        Error(peers_.name_of(rank_) + " stopped before the end of the run", Exit::peer_lost)));
    const Deadline deadline = Clock::now() + last_words;
    peers_.for_each([&](Connection& connection) { connection.wait_until_over(deadline); });
  }
  if (server_) server_->join();
  // Stop all connections before the first is destroyed: a thread of one may still hand a frame to
  // another.
  peers_.for_each([](Connection& connection) { connection.stop(); });
  if (finished_) return;
  try {
    ledger_.close();  // The records so far may show what went wrong.
  } catch (const Error&) {
  }
}

// ---- Called by the training thread in each step.

void ParameterExchange::begin(std::uint64_t step) {
  if (!is_worker() || step != step_ || in_step_)
    throw Error("step " + std::to_string(step) + " begins where step " + std::to_string(step_) +
                (in_step_ ? " has not ended" : " is due"));
  in_step_ = true;
}

void ParameterExchange::await(std::size_t p) {
  peers_.check();
  if (incoming_.complete(p)) return;
  const std::int64_t from = clock_ns();
  const Deadline begin = Clock::now();
  while (!incoming_.wait(p, look_every) && !peers_.failed()) {
    ledger_.flush();  // Others may train on meanwhile.
    std::exception_ptr trouble = server_ ? server_->trouble() : nullptr;
    if (!trouble && factors_) trouble = factors_->trouble(spec_.timeout);
    if (!trouble) trouble = trouble_with(p, is_overdue(begin));
    if (trouble) {
      fail(trouble);
      continue;
    }
    mind_turns();
    name_stragglers();
    name_owner(p, Clock::now() - begin);
    if (ending_ && spec_.while_ending) spec_.while_ending();
  }
  const std::int64_t to = clock_ns();
  const std::uint64_t due = incoming_.due_step(map_.first(p));
  ledger_.waited({from, to}, due);
  if (spec_.trace_steps > 0)
    note(TraceEvent::Kind::wait, due, static_cast<std::uint32_t>(p), 0, from, to);
  peers_.check();
}

void ParameterExchange::push(std::size_t p) {
  peers_.check();
  const bool factored = is_factored(p);
  if (!in_step_ || pushed_[p] != step_ || !(factored ? expect_update(p) : expect_weights(p)))
    throw Error("gradient of " + spans_[p].name + " in step " + std::to_string(step_) +
                " out of turn");
  pushed_[p] = step_ + 1;
  if (factored) return push_factors(p);
  const std::int64_t now = clock_ns();
  for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i) {
    const Chunk& chunk = map_[i];
    const float* gradient = spans_[p].gradient + chunk.offset;
    if (chunk.owner == rank_) {
      if (spec_.trace_steps > 0)
        note(TraceEvent::Kind::pushed, step_, chunk.parameter, chunk.number, now, now);
      server_->submit(i, step_, gradient);
    } else {
      peers_.connection(chunk.owner)
          ->send(FrameKind::gradient, chunk, step_, gradient, chunk.position, spec_.wire.gradients);
    }
  }
}

/// The gradient of p goes to the owners of its chunks, and these answer with weights.
bool ParameterExchange::expect_weights(std::size_t p) {
  std::size_t frames = 0;
  for (std::size_t i = map_.first(p); i < map_.first(p + 1); ++i)
    if (map_[i].owner != rank_) ++frames;
  return incoming_.expect_after_gradient(p, step_ + 1, frames);
}

void ParameterExchange::end() {
  for (std::size_t p = 0; p < spans_.size(); ++p)
    if (pushed_[p] != step_ + 1 && map_.trains(rank_, p))
      throw Error("step " + std::to_string(step_) + " ends without the gradient of " +
                  spans_[p].name);
  ++step_;
  in_step_ = false;
  progress_.made();
  ledger_.flush();
  flow_.step_ended();
}

/// Adds an event of the training thread to the trace.
void ParameterExchange::note(TraceEvent::Kind kind, std::uint64_t step, std::uint32_t parameter,
                             std::uint32_t chunk, std::int64_t from, std::int64_t to) {
  TraceEvent event;
  event.kind = kind;
  event.parameter = parameter;
  event.chunk = chunk;
  event.step = step;
  event.from = from;
  event.to = to;
  trace_.add(event);
}

// ---- Called by the connections' threads.

Reservation ParameterExchange::reserve(int peer, const FrameHeader& header) {
  progress_.moved(peer);
  if (!trains_) progress_.made();  // The workers hear of each other from their server alone.
  const Chunk* const chunk = map_.find(header.parameter, header.chunk);
  const auto refused = [&](const std::string& why) {
    return ProtocolError(
        name_of(header.kind) + " of parameter " + std::to_string(header.parameter) + ", chunk " +
        std::to_string(header.chunk) + ", step " + std::to_string(header.step) + ": " + why);
  };
  if (is_map(header.kind)) {
    if (!maps_) throw refused("this network is not cut");
    return maps_->reserve(peer, header);
  }
  if (header.kind == FrameKind::factors) {
    if (!factors_) throw refused("this run has none");
    return factors_->reserve(peer, header);
  }
  if (chunk == nullptr && factors_ && header.kind == FrameKind::weights)
    return reserve_state(peer, header);
  if (chunk == nullptr) throw refused("there is no such chunk");
  const bool gradient = header.kind == FrameKind::gradient;
  const Coding agreed = gradient ? spec_.wire.gradients : spec_.wire.weights;
  // The last weights may be float32 in any case, and so may a chunk that packing does not shrink.
  const bool plain = header.coding == Coding::float32 && (!gradient || agreed == Coding::lossless);
  if (header.coding != agreed && !plain)
    throw refused(name_of(header.coding) + " where " + name_of(agreed) + " is due");
  if (!fits(header.coding, chunk->count, header.length))
    throw refused(std::to_string(header.length) + " bytes where " +
                  std::to_string(coded_bytes(header.coding, chunk->count)) + " are due" +
                  (header.coding == Coding::lossless ? " at most" : ""));
  if (gradient) {
    if (!server_) throw refused("this rank owns no weights");
    if (is_factored(chunk->parameter)) throw refused("the layer's gradients are factors");
    return server_->reserve(peer, *chunk, header.step);
  }
  if (!trains_ || chunk->owner != peer) throw refused("it does not own the chunk");
  float* to = incoming_.reserve(chunk->index, header.step);
  if (to == nullptr && !peers_.failed()) throw refused("not due");
  Reservation reservation;
  reservation.to = to;
  reservation.count = chunk->count;
  reservation.chunk = chunk->index;
  return reservation;
}

void ParameterExchange::commit(const Reservation& reservation) {
  if (reservation.map != Reservation::Map::none)
    maps_->commit(reservation);
  else if (reservation.piece)
    factors_->commit(reservation);
  else if (reservation.state)
    incoming_.more(map_[reservation.chunk].parameter);
  else if (reservation.worker >= 0)
    store_->commit(reservation.chunk, reservation.worker);
  else {
    incoming_.commit(reservation.chunk);
    last_weights_ns_ = clock_ns();
  }
}

void ParameterExchange::copy_payload(int peer, const Outgoing& frame, float* to) {
  server_->copy_weights(peer, frame.chunk, to);
}

void ParameterExchange::sent(const Outgoing& frame) {
  if (is_map(frame.header.kind))
    maps_->sent(frame);
  else if (frame.header.kind == FrameKind::state)
    state_.part_sent();
  else if (frame.header.kind == FrameKind::gradient || frame.header.kind == FrameKind::factors)
    incoming_.gradient_sent(frame.header.parameter);
  else
    store_->sent(frame.chunk);
}

void ParameterExchange::weights_turn(int peer, SendOrder::TurnRequest what) {
  if (server_) server_->weights_turn(peer, what);
}

void ParameterExchange::failed(int peer, std::exception_ptr cause) {
  if (!is_async() || is_worker())
    fail(cause);
  else if (!peers_.parted(peer))  // finish() tells of one that has said goodbye.
    lose(peer, cause);
}

// ---- Early ends of a run.

/// The first cause counts: every call throws it from then on, and the peers are told it.
void ParameterExchange::fail(const std::exception_ptr& cause) {
  if (!peers_.fail(cause)) return;
  incoming_.stop();
  state_.stop();
  if (spec_.state_inbox) spec_.state_inbox->stop();
  if (server_) server_->stop();
  if (factors_) factors_->store().stop();
  if (maps_) maps_->stop();
  const AbortReason reason = reason_of(cause);
  peers_.for_each([&](Connection& connection) { connection.abort(reason); });
}

/// Gives up the worker that keeps its turn to send gradients though it has none.
void ParameterExchange::mind_turns() {
  const std::optional<int> idle = server_ ? server_->idle_with_turn() : std::nullopt;
  if (!idle) return;
  failed(*idle, std::make_exception_ptr(Error(
                    peers_.name_of(*idle) + " has had the turn to send gradients for " +
                        seconds_text(spec_.timeout) + " and sent none, while others wait for it",
                    Exit::timed_out)));
}

/// Names the workers whose gradients this owner has waited for longest.
void ParameterExchange::name_stragglers() {
  if (!server_ || !stragglers_.due(stragglers_.least())) return;
  std::string late = server_->late(stragglers_.least());
  if (late.empty() && factors_) late = factors_->late(stragglers_.least());
  if (!late.empty()) stragglers_.tell("waits for " + late);
}

/// Names the owner of weights that a worker waits for. An owner that trains, too, names whom it
/// waits for itself; one that does not answer at all names nobody.
void ParameterExchange::name_owner(std::size_t p, Clock::duration waited) {
  if (!stragglers_.due(waited) || !comes_from_owners(p)) return;
  for (std::size_t chunk = map_.first(p); chunk < map_.first(p + 1); ++chunk) {
    const int owner = map_[chunk].owner;
    if (owner == rank_ || !incoming_.missing(chunk)) continue;
    stragglers_.tell("waits for " + peers_.name_of(owner) + ": no weights of " + spans_[p].name +
                     " for step " + std::to_string(incoming_.due_step(chunk)) + " within " +
                     seconds_text(waited) + "; " + progress_.text(owner));
    return;
  }
}

/// Says whether a wait since `begin` has taken too long. It goes on while any peer makes progress.
bool ParameterExchange::is_overdue(Deadline begin) const {
  return Clock::now() - std::max(begin, progress_.last_of_others()) >= patience();
}

/// Returns the error of a wait for `what` of a rank that is overdue.
std::exception_ptr ParameterExchange::overdue(int rank, const std::string& what) const {
  return std::make_exception_ptr(
      NetworkError("await", peers_.name_of(rank), "waiting for " + what, "deadline passed",
                   std::chrono::duration<double>(patience()).count(), Exit::timed_out));
}

/// The error if the weights of p are waited for in vain, since they are overdue or their owner has
/// ended its training; null if there is none.
std::exception_ptr ParameterExchange::trouble_with(std::size_t p, bool late) const {
  const bool from_owners = comes_from_owners(p);
  if (!from_owners && factors_->store().is_busy()) return nullptr;
  for (std::size_t chunk = map_.first(p); from_owners && chunk < map_.first(p + 1); ++chunk) {
    const int owner = map_[chunk].owner;
    const bool parted = peers_.parted(owner);  // Asked before missing(): its last weights may come
                                               // just before its goodbye.
    if (owner == rank_ || !incoming_.missing(chunk)) continue;
    if (parted) return std::make_exception_ptr(peers_.left_early(owner));
    if (late)
      return overdue(owner, "weights of " + spans_[p].name + " for step " +
                                std::to_string(incoming_.due_step(chunk)));
  }
  if (late && !incoming_.complete(p))
    return std::make_exception_ptr(Error(
        "rank " + std::to_string(rank_) + " waited in vain for its own share of " + spans_[p].name,
        Exit::timed_out));
  return nullptr;
}

}  // namespace duplex::net
