#include "net/maps/map_traffic.h"

#include <tuple>
#include <utility>

namespace duplex::net {

MapTraffic::MapTraffic(MapTrafficSpec spec, int rank, Peers& peers, Progress& progress,
                       std::function<void(std::uint64_t known)> wait)
    : spec_(std::move(spec)),
      rank_(rank),
      peers_(peers),
      progress_(progress),
      wait_(std::move(wait)),
      streams_(2 * spec_.routes.size()) {
  for (std::size_t i = 0; i < streams_.size(); ++i)
    streams_[i].next = spec_.first_step * messages(i / 2);
}

std::uint32_t MapTraffic::parts(std::size_t route) const {
  return map_frames(spec_.routes[route].elements, spec_.part_bytes);
}

MapTraffic::Part MapTraffic::part(std::size_t route, std::uint32_t number) const {
  const std::size_t all = spec_.routes[route].elements;
  const std::size_t from = map_frame_begin(all, number, parts(route));
  return {from, map_frame_begin(all, number + 1, parts(route)) - from};
}

MapTraffic::Values MapTraffic::buffer_for(const MapMessage& message) {
  std::vector<Values>& spare = stream(message.transfer, message.gradient).spare;
  if (spare.empty()) return map_memory(spec_.routes[message.transfer].elements * sizeof(float));
  Values values = std::move(spare.back());
  spare.pop_back();
  return values;
}

float* MapTraffic::room(const MapMessage& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Kept& kept = leaving_[message];
  kept = {buffer_for(message), parts(message.transfer)};
  return kept.data();
}

void MapTraffic::send(const MapMessage& message) {
  const float* values = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    values = leaving_.at(message).data();
    stream(message.transfer, message.gradient).next = message.micro_batch + 1;
  }
  Connection* const connection = peers_.connection(receiver(message.transfer, message.gradient));
  const std::uint32_t count = parts(message.transfer);
  for (std::uint32_t number = 0; number < count; ++number) {
    const Part own = part(message.transfer, number);
    Chunk chunk;
    chunk.parameter = static_cast<std::uint32_t>(message.transfer);
    chunk.number =
        static_cast<std::uint32_t>(message.micro_batch % messages(message.transfer)) * count +
        number;
    chunk.count = own.count;
    connection->send(message.gradient ? FrameKind::map_gradient : FrameKind::map, chunk,
                     message.micro_batch / messages(message.transfer), values + own.offset, 0);
  }
}

void MapTraffic::sent(const Outgoing& frame) {
  const std::size_t route = frame.header.parameter;
  const MapMessage message{route, frame.header.kind == FrameKind::map_gradient,
                           frame.header.step * messages(route) + frame.header.chunk / parts(route)};
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = leaving_.find(message);
  if (--kept->second.parts_left > 0) return;
  stream(route, message.gradient).spare.push_back(std::move(kept->second.values));
  leaving_.erase(kept);
}

std::string MapTraffic::text_of(const MapMessage& message) const {
  const MapRoute& route = spec_.routes[message.transfer];
  if (route.every_step) return route.name + " of step " + std::to_string(message.micro_batch);
  return std::string(message.gradient ? "the gradient of the map of " : "the map of ") +
         route.name + " for micro-batch " +
         std::to_string(message.micro_batch % spec_.micro_batches) + " of step " +
         std::to_string(message.micro_batch / spec_.micro_batches);
}

Reservation MapTraffic::reserve(int peer, const FrameHeader& header) {
  const bool gradient = header.kind == FrameKind::map_gradient;
  const std::size_t route = header.parameter;
  const auto refused = [&](const std::string& why) {
    return ProtocolError(name_of(header.kind) + " of route " + std::to_string(header.parameter) +
                         ", part " + std::to_string(header.chunk) + ", step " +
                         std::to_string(header.step) + ": " + why);
  };
  if (route >= spec_.routes.size()) throw refused("there is no such route");
  if (sender(route, gradient) != peer || receiver(route, gradient) != rank_)
    throw refused("it does not lead from that rank to this one");
  if (gradient && !spec_.routes[route].gradient) throw refused("no gradient goes back on it");
  if (header.coding != Coding::float32)
    throw refused(name_of(header.coding) + " where float32 is due");
  const std::lock_guard<std::mutex> lock(mutex_);
  Stream& its = stream(route, gradient);
  const std::uint64_t step = its.next / messages(route);
  const std::uint64_t number = its.next % messages(route) * parts(route) + its.next_part;
  if (header.step != step || header.chunk != number)
    throw refused("part " + std::to_string(number) + " of step " + std::to_string(step) +
                  " is due");
  const MapMessage message{route, gradient, its.next};
  if (gradient && stream(route, false).next <= its.next)
    throw refused("this rank has not sent its map yet");
  const Part own = part(route, its.next_part);
  if (header.length != own.count * sizeof(float))
    throw refused(std::to_string(header.length) + " bytes where " +
                  std::to_string(own.count * sizeof(float)) + " are due");
  if (its.next_part == 0) {
    if (its.waiting == most(route))
      throw refused("more than " + std::to_string(most(route)) + " are under way");
    ++its.waiting;
    coming_[message] = {buffer_for(message), parts(route)};
  }
  Reservation reservation;
  reservation.to = stopped_ ? nullptr : coming_.at(message).data() + own.offset;
  reservation.count = own.count;
  reservation.chunk = route;
  reservation.step = its.next;
  reservation.map = gradient ? Reservation::Map::gradient : Reservation::Map::values;
  if (++its.next_part == parts(route)) {
    its.next_part = 0;
    ++its.next;
  }
  return reservation;
}

void MapTraffic::commit(const Reservation& reservation) {
  const MapMessage message{reservation.chunk, reservation.map == Reservation::Map::gradient,
                           reservation.step};
  const std::lock_guard<std::mutex> lock(mutex_);
  if (--coming_.at(message).parts_left > 0) return;
  ++arrivals_;
  changed_.notify_all();
}

bool MapTraffic::arrived(const MapMessage& message) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = coming_.find(message);
  return kept != coming_.end() && kept->second.parts_left == 0;
}

std::uint64_t MapTraffic::arrivals() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return arrivals_;
}

const float* MapTraffic::take(const MapMessage& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return coming_.at(message).data();
}

void MapTraffic::release(const MapMessage& message) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto kept = coming_.find(message);
  Stream& its = stream(message.transfer, message.gradient);
  its.spare.push_back(std::move(kept->second.values));
  --its.waiting;
  coming_.erase(kept);
}

bool MapTraffic::wait(std::uint64_t known, std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, at_most, [&] { return stopped_ || arrivals_ > known; });
}

std::optional<MapTraffic::Due> MapTraffic::due() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::optional<MapMessage> first;
  // A value of every step comes behind all of its step's maps.
  const auto moment = [&](const MapMessage& message) {
    return spec_.routes[message.transfer].every_step
               ? (message.micro_batch + 1) * spec_.micro_batches
               : message.micro_batch;
  };
  for (std::size_t route = 0; route < spec_.routes.size(); ++route)
    for (const bool gradient : {false, true}) {
      if (receiver(route, gradient) != rank_ || (gradient && !spec_.routes[route].gradient))
        continue;
      const MapMessage message{route, gradient, stream(route, gradient).next};
      // A gradient is due when its map has left.
      if (gradient && stream(route, false).next <= message.micro_batch) continue;
      if (!first || std::make_tuple(moment(message), message.gradient) <
                        std::make_tuple(moment(*first), first->gradient))
        first = message;
    }
  if (!first) return std::nullopt;
  return Due{sender(first->transfer, first->gradient), text_of(*first)};
}

void MapTraffic::stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace duplex::net
