#include "tools/tracing/trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/run_directory/trace_file.h"
#include "tools/text/quartiles.h"
#include "tools/tracing/critical_path.h"

namespace duplex::tools {
namespace {

using Json = nlohmann::ordered_json;
using net::FrameKind;
using net::TraceEvent;
using Kind = TraceEvent::Kind;

CriticalPath critical_path_of(const std::vector<RankTrace>& ranks) {
  std::vector<const std::vector<TraceEvent>*> events;
  for (const RankTrace& rank : ranks) events.push_back(&rank.events);
  return CriticalPath(events);
}

/// A row of a rank; rows are in this order from top to bottom. Each may need several lines, since
/// events of one line must not overlap.
struct Row {
  enum Kind { computing, waiting, store, to, from } kind;
  int peer = -1;

  static Row of(const TraceEvent& event) {
    switch (event.kind) {
      case TraceEvent::Kind::forward:
      case TraceEvent::Kind::backward:
        return {computing};
      case TraceEvent::Kind::wait:
        return {waiting};
      case TraceEvent::Kind::sent:
        return {to, event.peer};
      case TraceEvent::Kind::received:
        return {from, event.peer};
      default:
        return {store};
    }
  }
  std::string name() const {
    switch (kind) {
      case computing:
        return "computing";
      case waiting:
        return "waiting";
      case store:
        return "server";
      case to:
        return "to rank " + std::to_string(peer);
      case from:
        break;
    }
    return "from rank " + std::to_string(peer);
  }
  bool operator<(const Row& other) const {
    return std::make_pair(kind, peer) < std::make_pair(other.kind, other.peer);
  }
};

/// The lines of a rank, numbered by row; each event is on the first line of its row that is free.
class Lines {
 public:
  explicit Lines(const std::vector<TraceEvent>& events) {
    std::vector<const TraceEvent*> order;
    for (const TraceEvent& event : events) order.push_back(&event);
    std::stable_sort(order.begin(), order.end(),
                     [](const auto* a, const auto* b) { return a->from < b->from; });
    std::map<Row, std::vector<std::int64_t>> ends;
    std::map<const TraceEvent*, std::pair<Row, std::size_t>> places;
    for (const TraceEvent* event : order) {
      const Row row = Row::of(*event);
      std::vector<std::int64_t>& lines = ends[row];
      std::size_t line = 0;
      while (line < lines.size() && lines[line] > event->from) ++line;
      if (line == lines.size()) lines.push_back(0);
      lines[line] = event->to;
      places[event] = {row, line};
    }
    std::map<Row, int> first;
    for (const auto& [row, lines] : ends) {
      first[row] = static_cast<int>(names_.size());
      names_.insert(names_.end(), lines.size(), row.name());
    }
    for (const auto& [event, place] : places)
      lines_[event] = first[place.first] + static_cast<int>(place.second);
  }
  int of(const TraceEvent& event) const { return lines_.at(&event); }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::map<const TraceEvent*, int> lines_;
};

class Writer {
 public:
  Writer(const std::string& path, const Model& model, TraceNames names,
         const std::vector<RankTrace>& ranks)
      : file_(path, {model.title()}),
        model_(model),
        names_(std::move(names)),
        ranks_(ranks),
        critical_path_(critical_path_of(ranks)) {
    begin_ = std::numeric_limits<std::int64_t>::max();
    for (const RankTrace& rank : ranks)
      for (const TraceEvent& event : rank.events) begin_ = std::min(begin_, event.from);
  }

  void write() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) write(static_cast<int>(rank));
    file_.commit();
  }

 private:
  double microseconds(std::int64_t time) const { return static_cast<double>(time - begin_) * 1e-3; }

  /// Names a rank, or a row of it.
  void put_name(int rank, std::optional<int> row, const char* what, TraceFileDetails details) {
    TraceFileEvent event;
    event.phase = "M";
    event.rank = rank;
    event.row = row;
    event.name = what;
    event.details = std::move(details);
    file_.put(std::move(event));
  }

  void write(int rank) {
    const RankTrace& trace = ranks_[static_cast<std::size_t>(rank)];
    if (trace.events.empty()) return;
    const Lines lines(trace.events);
    TraceFileDetails details;
    details.name = trace.name;
    put_name(rank, std::nullopt, trace_names_rank, details);
    for (std::size_t line = 0; line < lines.names().size(); ++line) {
      details = {};
      details.name = lines.names()[line];
      put_name(rank, static_cast<int>(line), trace_names_row, details);
      details = {};
      details.sort_index = line;
      put_name(rank, static_cast<int>(line), trace_places_row, details);
    }
    for (const TraceEvent& event : trace.events) {
      TraceFileEvent put;
      put.phase = event.kind == Kind::pushed ? "i" : "X";
      put.rank = rank;
      put.row = lines.of(event);
      put.begin = microseconds(event.from);
      put.takes = static_cast<double>(event.to - event.from) * 1e-3;
      put.name = name_of(event);
      put.category = category_of(event);
      put.details = details_of(rank, event);
      if (event.kind == Kind::pushed) put.scope = "t";
      file_.put(std::move(put));
      put_arrow(rank, event, lines.of(event));
    }
  }

  /// Puts an arrow from the sent end of a frame to the received one.
  void put_arrow(int rank, const TraceEvent& event, int line) {
    const bool leaves = event.kind == Kind::sent;
    if (!leaves && event.kind != Kind::received) return;
    const int from = leaves ? rank : event.peer, to = leaves ? event.peer : rank;
    const auto key =
        std::make_tuple(from, to, event.frame, event.parameter, event.chunk, event.step);
    TraceFileEvent put;
    put.phase = leaves ? "s" : "f";
    put.rank = rank;
    put.row = line;
    put.begin = microseconds(event.from);
    put.arrow = arrows_.emplace(key, arrows_.size()).first->second;
    put.category = "wire";
    put.name = "frame";
    if (!leaves) put.binds = "e";
    file_.put(std::move(put));
  }

  std::string parameter(std::uint32_t number) const {
    return number < names_.parameters.size() ? names_.parameters[number]
                                             : "parameter " + std::to_string(number);
  }
  std::string map(const TraceEvent& event) const {
    return net::name_of(event.frame) + " " +
           (event.parameter < names_.maps.size() ? names_.maps[event.parameter]
                                                 : std::to_string(event.parameter));
  }

  std::string name_of(const TraceEvent& event) const {
    if (is_map(event.frame))
      return event.kind == Kind::wait ? "waits for maps"
                                      : map(event) + " [" + std::to_string(event.chunk) + "]";
    const std::string chunk = parameter(event.parameter) +
                              (event.chunk > 0 ? " [" + std::to_string(event.chunk) + "]" : "");
    switch (event.kind) {
      case Kind::forward:
      case Kind::backward:
        return event.parameter < model_.nodes().size() ? model_.nodes()[event.parameter].name
                                                       : "layer";
      case Kind::wait:
        return "waits for " + parameter(event.parameter);
      case Kind::sent:
      case Kind::received:
        return net::name_of(event.frame) + " " + chunk;
      case Kind::pushed:
        return "own gradient " + chunk;
      case Kind::add:
        return "adds " + chunk;
      case Kind::update:
        break;
    }
    return "updates " + chunk;
  }

  static const char* category_of(const TraceEvent& event) {
    switch (event.kind) {
      case Kind::forward:
        return "forward";
      case Kind::backward:
        return "backward";
      case Kind::wait:
        return "wait";
      case Kind::sent:
      case Kind::received:
        return event.frame == FrameKind::weights        ? "weights"
               : event.frame == FrameKind::factors      ? "factors"
               : event.frame == FrameKind::map          ? "map"
               : event.frame == FrameKind::map_gradient ? "map gradient"
                                                        : "gradient";
      default:
        return "server";
    }
  }

  TraceFileDetails details_of(int rank, const TraceEvent& event) const {
    TraceFileDetails details;
    details.step = event.step;
    switch (event.kind) {
      case Kind::wait:
        details.waits_for = text_of(critical_path_.of(rank, event), 4);
        break;
      case Kind::sent:
        details.queued_us = static_cast<double>(event.from - event.queued) * 1e-3;
        details.bytes = event.bytes;
        break;
      case Kind::received:
        details.bytes = event.bytes;
        break;
      case Kind::add:
      case Kind::update:
        if (event.peer >= 0) details.gradient_of_rank = event.peer;
        break;
      default:
        break;
    }
    return details;
  }

  TraceFileWriter file_;
  const Model& model_;
  const TraceNames names_;
  const std::vector<RankTrace>& ranks_;
  const CriticalPath critical_path_;
  std::int64_t begin_ = 0;
  std::map<std::tuple<int, int, FrameKind, std::uint32_t, std::uint32_t, std::uint64_t>,
           std::size_t>
      arrows_;
};

/// Returns the last round in which a rank has computed; 0: it computes nothing.
std::uint64_t last_round(const RankTrace& rank) {
  std::uint64_t last = 0;
  for (const TraceEvent& event : rank.events)
    if (event.kind == Kind::forward || event.kind == Kind::backward)
      last = std::max(last, event.round());
  return last;
}

}  // namespace

void keep_last_steps(std::vector<RankTrace>& ranks, std::uint64_t steps) {
  std::uint64_t furthest = 0;
  for (const RankTrace& rank : ranks) furthest = std::max(furthest, last_round(rank));
  for (RankTrace& rank : ranks) {
    const std::uint64_t own = last_round(rank), last = own > 0 ? own : furthest;
    std::vector<TraceEvent>& events = rank.events;
    events.erase(std::remove_if(events.begin(), events.end(),
                                [&](const TraceEvent& e) { return e.round() + steps <= last; }),
                 events.end());
  }
}

std::string encode(const RankTrace& trace) {
  const Json head{{"name", trace.name}, {"clock_error_ns", trace.clock_error_ns}};
  return head.dump() + "\n" + net::encode(trace.events);
}

RankTrace decode_rank_trace(const std::string& bytes) {
  const auto end = bytes.find('\n');
  if (end == std::string::npos) throw net::ProtocolError("a trace without its first line");
  RankTrace trace;
  try {
    const Json head = Json::parse(bytes.substr(0, end));
    trace.name = head.at("name").get<std::string>();
    trace.clock_error_ns = head.at("clock_error_ns").get<std::int64_t>();
  } catch (const nlohmann::json::exception&) {
    throw net::ProtocolError("a trace whose first line is damaged");
  }
  trace.events = net::decode_trace(bytes.substr(end + 1));
  return trace;
}

TraceNames TraceNames::of(const Model& model) {
  TraceNames names;
  for (const ParameterSpec& spec : model.trained()) names.parameters.push_back(spec.name);
  return names;
}

void write_trace(const std::string& path, const Model& model, TraceNames names,
                 const std::vector<RankTrace>& ranks) {
  Writer(path, model, std::move(names), ranks).write();
}

std::string waiting_report(const std::vector<RankTrace>& ranks, bool averages) {
  const CriticalPath critical_path = critical_path_of(ranks);
  std::string text;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    std::set<std::uint64_t> steps;
    std::int64_t end = 0;  // Nothing is computed with what is awaited later.
    for (const TraceEvent& event : ranks[rank].events) {
      if (event.kind != Kind::backward) continue;
      steps.insert(event.step);
      end = std::max(end, event.to);
    }
    WaitCauses sum;
    std::int64_t waited = 0;
    for (const TraceEvent& event : ranks[rank].events) {
      if (event.kind != Kind::wait || event.from >= end) continue;
      waited += event.to - event.from;
      for (const auto& [cause, time] : critical_path.of(static_cast<int>(rank), event))
        sum[cause] += time;
    }
    if (waited == 0 || steps.empty()) continue;
    const auto count = static_cast<double>(steps.size());
    text += (text.empty() ? "waiting  " : "         ") + ("rank " + std::to_string(rank)) + " " +
            duration_text(static_cast<double>(waited) * 1e-9 / count) +
            (averages ? " an averaging: " : " a step: ") + text_of(sum, 3, count) + "\n";
  }
  return text;
}

}  // namespace duplex::tools
