#include "tools/check/machine/messages.h"

#include <array>
#include <utility>

#include "core/error.h"
#include "tools/run_directory/json_fields.h"

namespace duplex::tools {
namespace {

const std::string mark = "duplex-check ";

constexpr std::array<std::pair<Call, const char*>, 5> calls{{{Call::met, "met"},
                                                             {Call::refused, "refused"},
                                                             {Call::unreachable, "unreachable"},
                                                             {Call::unanswered, "unanswered"},
                                                             {Call::strange, "strange"}}};

template <class Message>
std::string text_of(Message& message) {
  JsonWriter writer;
  describe(writer, message);
  // A program's name may have bytes that are no UTF-8.
  return writer.take().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class Message>
Message parse(const std::string& text) {
  Message message;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    JsonReader reader(json);
    describe(reader, message);
  } catch (const nlohmann::json::exception&) {
    throw Error("the line is no JSON");
  }
  return message;
}

}  // namespace

std::string name_of(Call call) {
  for (const auto& [value, name] : calls)
    if (value == call) return name;
  return "strange";
}

Call parse_call(const std::string& name) {
  for (const auto& [value, known] : calls)
    if (name == known) return value;
  throw Error("a call does not end so");
}

template <class Fields>
void describe(Fields& f, CheckedMachine& m) {
  f.field("host", m.host);
  f.field("ports", m.ports);
}

template <class Fields>
void describe(Fields& f, CheckTask& t) {
  f.field("index", t.index);
  f.field("machines", t.machines);
  f.field("secret", t.secret);
  f.field("seconds", t.seconds, Range::not_negative);
}

template <class Fields>
void describe(Fields& f, CheckRequest& r) {
  f.field("what", r.what);
  f.field("peers", r.peers);
  f.field("called", r.called);
}

template <class Fields>
void describe(Fields& f, CallFacts& c) {
  f.field("peer", c.peer);
  f.field("port", c.port);
  f.named("call", c.call, parse_call);
  f.field("trouble", c.trouble);
  f.field("offset_ns", c.offset_ns);
  f.field("error_ns", c.error_ns);
}

template <class Fields>
void describe(Fields& f, RateFacts& r) {
  f.field("peer", r.peer);
  f.field("out", r.out, Range::not_negative);
  f.field("in", r.in, Range::not_negative);
  f.field("round_trip", r.round_trip, Range::not_negative);
  f.field("trouble", r.trouble);
}

template <class Fields>
void describe(Fields& f, CheckAnswer& a) {
  f.field("what", a.what);
  if (a.what == "facts") f.field("facts", a.facts);
  if (a.what == "met") f.field("calls", a.calls);
  if (a.what == "rate") f.field("rate", a.rate);
}

std::string line_of(CheckTask task) {
  return text_of(task);
}

std::string line_of(CheckRequest request) {
  return text_of(request);
}

std::string line_of(CheckAnswer answer) {
  return mark + text_of(answer);
}

CheckTask parse_task(const std::string& line) {
  CheckTask task = parse<CheckTask>(line);
  if (task.index < 0 || task.index >= static_cast<std::int64_t>(task.machines.size()))
    throw Error("the task is for none of its machines");
  for (const CheckedMachine& machine : task.machines) {
    if (machine.ports.empty()) throw Error("a machine has no port");
    for (const std::int64_t port : machine.ports)
      if (port < 1 || port > 65535) throw Error("a port is none");
  }
  return task;
}

CheckRequest parse_request(const std::string& line) {
  return parse<CheckRequest>(line);
}

bool is_answer(const std::string& line) {
  return line.rfind(mark, 0) == 0;
}

CheckAnswer parse_answer(const std::string& line) {
  if (!is_answer(line)) throw Error("the line is no answer");
  CheckAnswer answer = parse<CheckAnswer>(line.substr(mark.size()));
  if (answer.what != "facts" && answer.what != "met" && answer.what != "rate")
    throw Error("the answer is to nothing that was asked");
  return answer;
}

}  // namespace duplex::tools
