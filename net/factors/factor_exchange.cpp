#include "net/factors/factor_exchange.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace duplex::net {

FactorExchange::FactorExchange(FactorMap map, FactorStoreSpec spec, Coding coding,
                               const std::vector<Span>& spans, const Topology& topology,
                               Peers& peers, const Progress& progress)
    : map_(std::move(map)),
      own_(spec.own),
      coding_(coding),
      spans_(spans),
      workers_(topology.workers()),
      topology_(topology),
      peers_(peers),
      progress_(progress),
      store_(map_, std::move(spec), spans) {}

std::size_t FactorExchange::frames(std::size_t layer) const {
  return map_.pieces(layer, own_).size() * (members(layer).size() - 1);
}

std::vector<int> FactorExchange::members(std::size_t layer) const {
  std::vector<int> ranks;
  for (std::size_t worker = 0; worker < workers_.size(); ++worker)
    if (map_.trains(static_cast<int>(worker), layer)) ranks.push_back(workers_[worker]);
  return ranks;
}

void FactorExchange::push(std::size_t layer, std::uint64_t step) {
  const float* factors = spans_[map_.layers()[layer].weights].factors;
  // They go first: every rank multiplies when the last of them has come, while gradients still
  // travel.
  constexpr std::size_t priority = 0;
  const std::vector<int> ranks = members(layer);
  // Each piece goes to all before the next one does, so that all get on alike.
  for (const Chunk& piece : map_.pieces(layer, own_))
    for (const int rank : ranks)
      if (Connection* connection = peers_.connection(rank))
        connection->send(FrameKind::factors, piece, step, factors + piece.offset, priority,
                         coding_);
  store_.submit(layer, step, is_exact(coding_) ? std::vector<float>() : rounded(layer));
}

/// Returns this worker's factors as the others get them.
std::vector<float> FactorExchange::rounded(std::size_t layer) const {
  const float* factors = spans_[map_.layers()[layer].weights].factors;
  std::vector<float> values(map_.values(layer, own_));
  std::vector<std::uint8_t> coded;
  for (const Chunk& piece : map_.pieces(layer, own_)) {
    coded.resize(coded_bytes(coding_, piece.count) + coding_slack);
    const std::size_t size = encode(coding_, factors + piece.offset, piece.count, coded.data());
    decode(coding_, Values::gradient, coded.data(), size, piece.count,
           values.data() + piece.offset);
  }
  return values;
}

Reservation FactorExchange::reserve(int peer, const FrameHeader& header) {
  const auto refused = [&](const std::string& why) {
    return ProtocolError("factors of parameter " + std::to_string(header.parameter) + ", piece " +
                         std::to_string(header.chunk) + ", step " + std::to_string(header.step) +
                         ": " + why);
  };
  const std::optional<std::size_t> layer = map_.layer_of(header.parameter);
  const int worker = topology_.worker_number(peer);
  if (!layer || map_.layers()[*layer].weights != header.parameter || worker < 0)
    throw refused("there are none of them");
  // A piece that packing does not shrink is sent as float32.
  const bool plain = header.coding == Coding::float32 && coding_ == Coding::lossless;
  if (header.coding != coding_ && !plain)
    throw refused(name_of(header.coding) + " where " + name_of(coding_) + " is due");
  const std::vector<Chunk>& pieces = map_.pieces(*layer, worker);
  if (header.chunk >= pieces.size()) throw refused("there is no such piece");
  const std::size_t count = pieces[header.chunk].count;
  if (!fits(header.coding, count, header.length))
    throw refused(std::to_string(header.length) + " bytes where " +
                  std::to_string(coded_bytes(header.coding, count)) + " are due" +
                  (header.coding == Coding::lossless ? " at most" : ""));
  Reservation reservation;
  reservation.to = store_.reserve(*layer, worker, header.chunk, header.step);
  reservation.count = count;
  reservation.chunk = *layer;
  reservation.worker = worker;
  reservation.piece = header.chunk;
  reservation.step = header.step;
  return reservation;
}

void FactorExchange::commit(const Reservation& reservation) {
  store_.commit(reservation.chunk, reservation.worker, reservation.piece.value(), reservation.step);
}

std::vector<int> FactorExchange::ranks_of(const Store::Overdue& overdue) const {
  std::vector<int> ranks;
  for (const int worker : overdue.missing)
    if (worker != own_) ranks.push_back(workers_[static_cast<std::size_t>(worker)]);
  return ranks;
}

std::string FactorExchange::text_of(const Store::Overdue& overdue,
                                    const std::vector<int>& ranks) const {
  std::string names;
  for (const int rank : ranks) names += (names.empty() ? "" : ", ") + peers_.name_of(rank);
  const auto waited =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(overdue.seconds));
  return names + ": no factors of " + spans_[map_.layers()[overdue.chunk].weights].name +
         " for step " + std::to_string(overdue.step) + " within " + seconds_text(waited);
}

std::string FactorExchange::late(Clock::duration least) const {
  const auto overdue = store_.overdue(least);
  if (!overdue) return "";
  const std::vector<int> ranks = ranks_of(*overdue);
  if (ranks.empty()) return "";
  return text_of(*overdue, ranks) +
         (ranks.size() == 1 ? "; " + progress_.text(ranks.front()) : std::string());
}

std::exception_ptr FactorExchange::trouble(std::chrono::milliseconds timeout) const {
  // Parted workers are collected before missing factors: these may come just before a goodbye.
  std::vector<int> parted;
  for (const int rank : workers_)
    if (peers_.parted(rank)) parted.push_back(rank);
  const auto open = store_.overdue(Clock::duration(0));
  if (!open) return nullptr;
  const std::vector<int> ranks = ranks_of(*open);
  for (const int rank : ranks)
    if (std::find(parted.begin(), parted.end(), rank) != parted.end())
      return std::make_exception_ptr(peers_.left_early(rank));
  Deadline last;
  for (const int rank : ranks) last = std::max(last, progress_.last(rank));
  if (ranks.empty() || open->seconds < std::chrono::duration<double>(timeout).count() ||
      Clock::now() < last + timeout)
    return nullptr;
  return std::make_exception_ptr(Error(text_of(*open, ranks), Exit::timed_out));
}

}  // namespace duplex::net
