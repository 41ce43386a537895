#include "net/rendezvous/file_sharing.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"
#include "core/files/output_file.h"
#include "net/rendezvous/talk.h"

namespace duplex::net {
namespace {

constexpr const char* phase = "sharing the files of a checkpoint";
constexpr std::size_t most_transfers = 512;  ///< In one frame.

struct TransfersMessage {
  OwnTransfers own;
  bool more = false;  ///< Another frame follows.
};

template <class Fields>
void describe_entry(Fields& f, std::int32_t& from, std::int32_t& to, std::int32_t& rank,
                    std::uint8_t& copy) {
  f.number(from);
  f.number(to);
  f.number(rank);
  f.number(copy);
}

void describe(PayloadWriter& f, const TransfersMessage& m) {
  f.number(static_cast<std::uint8_t>((m.own.shared ? 1 : 0) + (m.more ? 2 : 0)));
  f.number(static_cast<std::uint32_t>(m.own.transfers.size()));
  for (const FileTransfer& each : m.own.transfers) {
    std::int32_t from = each.from, to = each.to, rank = each.rank;
    std::uint8_t copy = each.copy ? 1 : 0;
    describe_entry(f, from, to, rank, copy);
  }
}
void describe(PayloadReader& f, TransfersMessage& m) {
  std::uint8_t flags = 0;
  std::uint32_t count = 0;
  f.number(flags);
  f.number(count);
  if (count > most_transfers) throw ProtocolError(std::to_string(count) + " files in one frame");
  m.own.shared = (flags & 1) != 0;
  m.more = (flags & 2) != 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int32_t from = 0, to = 0, rank = 0;
    std::uint8_t copy = 0;
    describe_entry(f, from, to, rank, copy);
    m.own.transfers.push_back({from, to, rank, copy != 0});
  }
}

/// Talks over one link, and adds the frames to its records.
template <class Say>
void with(Link& link, Deadline deadline, const Say& say) {
  Talk talk(link.stream, deadline, phase);
  say(talk);
  const std::vector<FrameRecord> frames = talk.frames(link.rank);
  link.handshake.insert(link.handshake.end(), frames.begin(), frames.end());
}

class Sharing {
 public:
  Sharing(Mesh& mesh, const FileSharing& sharing, const ResumePoint& point,
          std::chrono::milliseconds timeout)
      : mesh_(mesh), sharing_(sharing), point_(point), timeout_(timeout), told_(Clock::now()) {}

  void send(const FileTransfer& transfer) {
    Link& link = link_to(transfer.to);
    const std::string path = sharing_.path(point_, transfer.rank, transfer.copy);
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
    file.seekg(0);
    if (size <= 0 || !file) throw Error(path + " cannot be read");
    // A receiver that still has others to hear would let this rank wait within a frame.
    next(link, FrameKind::ask);
    std::vector<char> bytes;
    for (auto left = static_cast<std::uint64_t>(size); left > 0; left -= bytes.size()) {
      bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, file_part)));
      if (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())))
        throw Error(path + " cannot be read to its end");
      FrameHeader header;
      header.kind = FrameKind::file;
      header.parameter = static_cast<std::uint32_t>(transfer.rank);
      header.step = left - bytes.size();
      header.length = bytes.size();
      write(link, header, bytes.data());
      say_that_it_lives();
    }
  }

  void receive(const FileTransfer& transfer) {
    Link& link = link_to(transfer.from);
    const std::string path = sharing_.path(point_, transfer.rank, false);
    std::error_code ignored;  // OutputFile tells it.
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
    OutputFile file(path);
    FrameHeader ask;
    ask.kind = FrameKind::ask;
    write(link, ask, nullptr);
    std::vector<char> bytes;
    std::optional<std::uint64_t> left;
    do {
      const FrameHeader header = next(link, FrameKind::file);
      if (header.parameter != static_cast<std::uint32_t>(transfer.rank) || header.length == 0 ||
          header.length > file_part || header.length + header.step < header.step ||
          (left && *left != header.length + header.step))
        throw ProtocolError(link.peer + " sent a part of a file that is not due");
      read_payload(link, header, bytes);
      file.write(bytes.data(), bytes.size());
      left = header.step;
      say_that_it_lives();
    } while (*left > 0);
    const std::size_t size = file.bytes();
    file.commit();
    sharing_.received(point_, transfer.rank);
    if (sharing_.log)
      sharing_.log(
          "has the part of rank " + std::to_string(transfer.rank) + " of the checkpoint after " +
          std::to_string(point_.steps) + " steps from rank " + std::to_string(transfer.from) +
          (transfer.copy ? ", which kept a copy" : "") + ": " + std::to_string(size) + " bytes");
  }

  /// No rank goes on before all have what they need: one that waits for weights would not know that
  /// another still waits for a file.
  void await_all() {
    FrameHeader done;
    done.kind = FrameKind::done;
    const int coordinator = mesh_.topology().coordinator();
    if (mesh_.rank() == coordinator) {
      for (Link& link : mesh_.links()) next(link, FrameKind::done);
      for (Link& link : mesh_.links()) write(link, done, nullptr);
      return;
    }
    Link& link = link_to(coordinator);
    write(link, done, nullptr);
    next(link, FrameKind::done);
  }

 private:
  Link& link_to(int rank) {
    for (Link& link : mesh_.links())
      if (link.rank == rank) return link;
    throw ProtocolError("rank " + std::to_string(rank) + " is not connected to this one");
  }

  Deadline deadline() const {
    // Whoever waits longest is given the time to say for whom.
    return Clock::now() + timeout_ + timeout_ / 10 + std::chrono::milliseconds(200);
  }

  /// Tells all ranks, now and then, since one of them may wait for this one, which waits for
  /// others.
  void say_that_it_lives() {
    if (Clock::now() - told_ < timeout_ / 4) return;
    FrameHeader header;
    header.kind = FrameKind::heartbeat;
    for (Link& link : mesh_.links()) write(link, header, nullptr);
    told_ = Clock::now();
  }

  void write(Link& link, const FrameHeader& header, const void* payload) {
    const std::int64_t first = clock_ns();
    link.stream.write(header, payload, Clock::now() + timeout_, phase);
    record(link, header, true, first);
  }

  /// Returns the header of the next frame that is no heartbeat, which has to be of that kind.
  FrameHeader next(Link& link, FrameKind kind) {
    for (;;) {
      const FrameHeader header = link.stream.read_header(deadline(), phase);
      check_header(header);
      if (header.kind == FrameKind::abort && header.length <= abort_limit) {
        std::vector<char> bytes;
        read_payload(link, header, bytes);
        const AbortReason reason =
            decode_abort(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
        throw Error(link.peer + " ended the run: " + reason.text, reason.code);
      }
      const bool heartbeat = header.kind == FrameKind::heartbeat && header.length == 0;
      if (!heartbeat && (header.kind != kind || (kind != FrameKind::file && header.length > 0)))
        throw ProtocolError(link.peer + " sent a " + name_of(header.kind) + " where a " +
                            name_of(kind) + " is due");
      if (header.length == 0) record(link, header, false, clock_ns());
      if (!heartbeat) return header;
      say_that_it_lives();
    }
  }

  void read_payload(Link& link, const FrameHeader& header, std::vector<char>& bytes) {
    const std::int64_t first = clock_ns();
    bytes.resize(static_cast<std::size_t>(header.length));
    link.stream.read_payload(bytes.data(), bytes.size(), deadline(), phase);
    record(link, header, false, first);
  }

  static void record(Link& link, const FrameHeader& header, bool sent, std::int64_t first) {
    FrameRecord record;
    record.kind = header.kind;
    record.step = header.step;
    record.parameter = header.parameter;
    record.sent = sent;
    record.peer = link.rank;
    record.bytes = link.stream.bytes_of(header.length);
    record.queued = record.first = first;
    record.last = clock_ns();
    link.handshake.push_back(record);
  }

  Mesh& mesh_;
  const FileSharing& sharing_;
  const ResumePoint& point_;
  const std::chrono::milliseconds timeout_;
  Deadline told_;
};

}  // namespace

OwnTransfers own_transfers(const std::vector<FileTransfer>& all, int rank) {
  OwnTransfers own;
  own.shared = !all.empty();
  for (const FileTransfer& each : all)
    if (each.from == rank || each.to == rank) own.transfers.push_back(each);
  return own;
}

void tell_transfers(Mesh& mesh, const std::vector<FileTransfer>& transfers, Deadline deadline) {
  for (Link& link : mesh.links()) {
    const OwnTransfers own = own_transfers(transfers, link.rank);
    std::size_t from = 0;
    do {
      const std::size_t to = std::min(from + most_transfers, own.transfers.size());
      TransfersMessage message;
      message.own.shared = own.shared;
      message.own.transfers.assign(own.transfers.begin() + static_cast<std::ptrdiff_t>(from),
                                   own.transfers.begin() + static_cast<std::ptrdiff_t>(to));
      message.more = to < own.transfers.size();
      with(link, deadline,
           [&](Talk& talk) { talk.send(FrameKind::transfers, payload_of(message)); });
      from = to;
    } while (from < own.transfers.size());
  }
}

OwnTransfers hear_transfers(Mesh& mesh, Deadline deadline) {
  OwnTransfers own;
  for (Link& link : mesh.links()) {
    if (link.rank != mesh.topology().coordinator()) continue;
    TransfersMessage message;
    do {
      with(link, deadline, [&](Talk& talk) {
        message = parse<TransfersMessage>(talk.receive(FrameKind::transfers));
      });
      own.shared = message.own.shared;
      for (const FileTransfer& each : message.own.transfers) {
        if ((each.from == mesh.rank()) == (each.to == mesh.rank()))
          throw ProtocolError(link.peer + " plans what is not for this rank");
        own.transfers.push_back(each);
      }
    } while (message.more);
  }
  return own;
}

void share_files(Mesh& mesh, const FileSharing& sharing, const ResumePoint& point,
                 const OwnTransfers& own, std::chrono::milliseconds timeout) {
  if (!own.shared) return;
  Sharing run(mesh, sharing, point, timeout);
  for (const FileTransfer& each : own.transfers) {
    if (each.from == mesh.rank())
      run.send(each);
    else
      run.receive(each);
  }
  run.await_all();
}

}  // namespace duplex::net
