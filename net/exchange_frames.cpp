#include <algorithm>
#include <utility>

#include "net/exchange_state.h"

namespace duplex::net {

void* ParameterExchange::State::destination(int peer, const FrameHeader& header) {
  const std::size_t chunk = map_.find(header.parameter, header.chunk);
  const std::string what = name_of(header.kind) + " of parameter " +
                           std::to_string(header.parameter) + ", chunk " +
                           std::to_string(header.chunk) + ", step " + std::to_string(header.step);
  if (chunk == map_.chunks()) throw ProtocolError(what + ": there is no such chunk");
  if (header.length != map_[chunk].bytes())
    throw ProtocolError(what + ": " + std::to_string(header.length) + " bytes where " +
                        std::to_string(map_[chunk].bytes()) + " are due");
  if (header.kind == FrameKind::gradient) return destination_of_gradient(peer, chunk, header);

  if (!is_worker() || map_[chunk].owner != peer)
    throw ProtocolError(what + ": it does not own the chunk");
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failure_) return nullptr;
  Incoming& incoming = incoming_[chunk];
  if (incoming.state != Incoming::due || incoming.step != header.step)
    throw ProtocolError(what + ": not due");
  incoming.state = Incoming::arriving;
  return spans_[header.parameter].weights + map_[chunk].offset;
}

void ParameterExchange::State::fill(int peer, const FrameHeader& header, void* payload) {
  store_->read(map_.find(header.parameter, header.chunk), topology_.worker_number(peer),
               static_cast<float*>(payload));
}

void ParameterExchange::State::received(int peer, const FrameHeader& header) {
  const std::size_t chunk = map_.find(header.parameter, header.chunk);
  if (header.kind == FrameKind::gradient)
    store_->arrived(chunk, topology_.worker_number(peer));
  else
    weights_are_here(chunk);
}

void ParameterExchange::State::sent(int, const FrameHeader& header) {
  if (header.kind == FrameKind::gradient)
    one_less(header.parameter);
  else
    store_->sent(map_.find(header.parameter, header.chunk));
}

void ParameterExchange::State::reported(int peer, std::string report) {
  if (rank_ != topology_.hub())
    throw ProtocolError(name_of_rank(peer) + " sent its report to the wrong rank");
  const std::lock_guard<std::mutex> lock(mutex_);
  reports_[index(peer)] = std::move(report);
}

void ParameterExchange::State::asked(int peer) {
  if (!spec_.semaphore || !store_ || !topology_.is_worker(peer) || !gradients_turn_.ask(peer))
    throw ProtocolError(name_of_rank(peer) + " asked for a turn out of turn");
  if (is_lost(peer)) gradients_turn_.leave(peer);  // lose() may have been faster.
}

void ParameterExchange::State::released(int peer) {
  if (!spec_.semaphore || !store_)
    throw ProtocolError(name_of_rank(peer) + " gave back a turn that it never had");
  gradients_turn_.leave(peer);
}

void ParameterExchange::State::window_changed() {
  if (!is_worker()) return;  // Its workers send to nobody else.
  for (auto& connection : connections_)
    if (connection) connection->tell_window(receive_window_.own());
}

void ParameterExchange::State::told_window(int peer, std::uint64_t bytes) {
  if (!is_worker() || !receive_window_.bytes())
    throw ProtocolError(name_of_rank(peer) + " told its window to a rank that shares none");
  if (bytes < least_window)
    throw ProtocolError(name_of_rank(peer) + " has a window of " + std::to_string(bytes) +
                        " bytes");
  receive_window_.hear(peer, bytes);
}

void ParameterExchange::State::wants_weights_turn(int peer) {
  weights_turn_.ask(peer);
  if (is_lost(peer)) weights_turn_.leave(peer);
}

void ParameterExchange::State::steps_aside(int peer, bool waits) {
  weights_turn_.step_aside(peer, waits);
}

void ParameterExchange::State::leaves_weights_turn(int peer) {
  weights_turn_.leave(peer);
}

void ParameterExchange::State::done(int peer) {
  if (!is_async() || !store_ || !topology_.is_worker(peer))
    throw ProtocolError(name_of_rank(peer) + " ended its training out of turn");
  store_->done(topology_.worker_number(peer), false);
}

void ParameterExchange::State::parted(int peer) {
  const std::lock_guard<std::mutex> lock(mutex_);
  parted_[index(peer)] = true;
  changed_.notify_all();
}

void ParameterExchange::State::failed(int peer, std::exception_ptr cause) {
  if (is_async() && !is_worker())
    lose(peer, cause);
  else
    fail(cause);
}

void* ParameterExchange::State::destination_of_gradient(int peer, std::size_t chunk,
                                                        const FrameHeader& header) {
  if (!store_ || !topology_.is_worker(peer)) throw ProtocolError("it is no worker of this rank");
  float* place = store_->place(chunk, topology_.worker_number(peer), header.step,
                               Clock::now() + spec_.timeout);
  if (place != nullptr) return place;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure_) return nullptr;
  }
  if (const auto overdue = store_->overdue(std::chrono::seconds(0))) throw error_of(*overdue);
  throw Error("no room for more gradients for too long", Exit::timed_out);
}

/// The store's: new weights go to the other workers that they are for, and count as arrived here.
void ParameterExchange::State::publish(std::size_t chunk_index, std::uint64_t step, int worker) {
  if (worker != Store::every_worker) {
    const int to = workers_[index(worker)];
    if (to == rank_)
      take(chunk_index);
    else if (!is_lost(to))
      send_weights(to, map_[chunk_index], step, nullptr);
    return;
  }
  const bool here = is_worker();
  store_->sending(chunk_index, static_cast<int>(workers_.size()) - (here ? 1 : 0));
  for (const int to : workers_)
    if (to != rank_) send_weights(to, map_[chunk_index], step, store_->published(chunk_index));
  if (here) weights_are_here(chunk_index);
}

void ParameterExchange::State::send_weights(int to, const Chunk& chunk, std::uint64_t step,
                                            const float* values) {
  connections_[index(to)]->send(FrameKind::weights, chunk, step, values,
                                chunk.position + head_start_);
}

/// This rank's worker is given this rank's weights as they are; the store's go on changing.
void ParameterExchange::State::take(std::size_t chunk) {
  store_->read(chunk, topology_.worker_number(rank_),
               spans_[map_[chunk].parameter].weights + map_[chunk].offset);
  weights_are_here(chunk);
}

void ParameterExchange::State::weights_are_here(std::size_t chunk) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    incoming_[chunk].state = Incoming::here;
  }
  one_less(map_[chunk].parameter);
}

void ParameterExchange::State::one_less(std::size_t parameter) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--remaining_[parameter] == 0) changed_.notify_all();
}

void ParameterExchange::State::note(const StoreWork& work) {
  TraceEvent event;
  event.kind = work.kind == StoreWork::add ? TraceEvent::Kind::add : TraceEvent::Kind::update;
  if (work.kind == StoreWork::add || is_async()) event.peer = workers_[index(work.worker)];
  event.parameter = map_[work.chunk].parameter;
  event.chunk = map_[work.chunk].number;
  event.step = work.step;
  event.from = work.from;
  event.to = work.to;
  window_.add(event);
}

}  // namespace duplex::net
