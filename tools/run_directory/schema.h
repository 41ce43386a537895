// The keys of the JSON files of a run directory, each once. docs/run-directory.md has the tables;
// those of the CSV files stand beside their rows (tools/run_directory/rows.h,
// net/ledger/ledger_row.h).
#pragma once
#include "tools/run_directory/json_fields.h"
#include "tools/run_directory/part_profile.h"
#include "tools/run_directory/profile_file.h"
#include "tools/run_directory/run_config.h"
#include "tools/run_directory/run_summary.h"
#include "tools/run_directory/trace_file.h"
#include "tools/run_directory/transport_summary.h"

namespace duplex::tools {

// config.json.

template <class Fields>
void describe(Fields& f, DataConfig& c) {
  f.later("path", c.path);
  f.later("description", c.description);
  f.later("train", c.train);
  f.later("test", c.test);
}

template <class Fields>
void describe(Fields& f, ParallelConfig& c) {
  f.field("ranks", c.ranks);
  f.field("workers", c.workers);
  f.named("server", c.server, net::parse_server_mode);
  f.named("sync", c.sync, net::parse_sync);
  f.named("shards", c.shards, net::parse_shards);
  f.on_off("overlap", c.overlap);
  f.on_off("semaphore", c.semaphore);
  f.field("average", c.average);
  f.unless_usual("wire", c.wire, net::parse_wire_format);
  f.optional("factors", c.factors);
  f.optional("samples", c.samples);
  f.optional("slots", c.slots);
  f.optional("strategy", c.strategy);
  f.optional("stages", c.stages);
  f.optional("in_flight", c.in_flight);
  f.optional("micro_batches", c.micro_batches);
}

template <class Fields>
void describe(Fields& f, PlanConfig& c) {
  f.field("way", c.way);
  f.field("speedup", c.speedup, Range::not_negative);
  f.field("image_s", c.image, Range::not_negative);
  f.field("step_s", c.step, Range::not_negative);
  f.field("computing_s", c.computing, Range::not_negative);
  f.field("awaiting_s", c.awaiting, Range::not_negative);
  f.field("image_s_alone", c.alone, Range::not_negative);
}

template <class Fields>
void describe(Fields& f, SimulationConfig& c) {
  f.later("batches", c.batches);
  f.field("t_grad_s", c.grad, Range::not_negative);
  f.later("t_comm_s", c.comm);
  f.later("rate_bytes_per_s", c.rate);
  f.later("owner_bytes_per_s", c.owner_rate);
  f.unless_zero("seal_bytes_per_s", c.seal_rate);
  f.unless_zero("send_processor_s_per_gb", c.send_processor);
  f.unless_zero("receive_processor_s_per_gb", c.receive_processor);
  f.unless_zero("frame_processor_s", c.frame_processor);
  f.unless_zero("cores_a_machine", c.cores);
  f.unless_zero("threads_a_rank", c.threads);
  f.unless_zero("ranks_a_machine", c.together);
  f.later("latency_s", c.latency);
  f.optional("measured", c.measured);
  f.later("slow", c.slow);
  f.later("links", c.links);
  f.later("lose", c.lose);
}

template <class Fields>
void describe(Fields& f, RunConfig& c) {
  f.version();
  f.field("network", c.network);
  f.field("title", c.title);
  f.field("input", c.input);
  f.field("classes", c.classes);
  f.later("parameters", c.parameters);
  f.later("auxiliary", c.auxiliary);
  f.later("pad_shortcuts", c.pad_shortcuts);
  f.optional("network_file", c.network_file);
  f.optional("host", c.host);
  f.optional("data", c.data);
  f.later("settings", c.settings);
  f.field("batch", c.batch);
  if (!c.simulated) f.nullable("epochs", c.epochs);
  f.later("seed", c.seed);
  f.field("device", c.device);
  f.optional("threads", c.threads);
  f.optional("cores", c.cores);
  f.later("replayed", c.replayed);
  f.unless_zero("simulated", c.simulated);
  f.field("command", c.command);
  f.optional("accumulate", c.accumulate);
  f.optional("until", c.until);
  f.group("workers", c.parallel);
  f.optional("addresses", c.addresses);
  f.optional("link_bytes_per_s", c.link_rate, Range::not_negative);
  f.group("t_grad_s", c.simulation);
  f.optional("plan", c.plan);
}

// summary.json and rank-RANK.json.

template <class Fields>
void describe(Fields& f, Quartiles& q) {
  f.field("median", q.median, Range::not_negative);
  f.later("low", q.low);
  f.later("high", q.high);
  f.later("count", q.count);
}

template <class Fields>
void describe(Fields& f, TrainingResult& r) {
  f.later("steps", r.steps);
  f.later("seconds", r.seconds);
  f.optional("timed_steps", r.timed_steps);
  f.nullable("loss", r.loss);
  f.field("t_grad_s", r.gradient);
  f.later("step_s", r.total);
  f.later("await_s", r.await);
  f.later("push_s", r.push);
  f.later("data_s", r.data);
  f.later("data_share", r.data_share);
  f.later("data_steps", r.data_steps);
}

template <class Fields>
void describe(Fields& f, RankMode& m) {
  f.later("ranks", m.ranks);
  f.named("server", m.server, net::parse_server_mode);
  f.named("sync", m.sync, net::parse_sync);
  f.later("replayed", m.replayed);
}

template <class Fields>
void describe(Fields& f, net::TrafficSummary& t) {
  f.field("bytes_sent", t.bytes_sent);
  f.field("bytes_received", t.bytes_received);
  f.unless_zero("saved_sent", t.saved_sent);
  f.unless_zero("saved_received", t.saved_received);
  f.later("steps", t.steps);
  f.field("step_sent", t.step_sent, Range::not_negative);
  f.field("step_received", t.step_received, Range::not_negative);
  f.field("t_comm_s", t.t_comm, Range::not_negative);
  f.field("wire_s", t.wire_seconds, Range::not_negative);
  f.field("exposed_s", t.exposed_seconds, Range::not_negative);
}

template <class Fields>
void describe(Fields& f, net::SampledStretch& s) {
  f.field("from", s.from);
  f.field("every", s.every);
}

template <class Fields>
void describe(Fields& f, net::FramesKept& k) {
  f.field("frames", k.text);
  f.field("steps", k.stretches);
}

template <class Fields>
void describe(Fields& f, net::ConnectionBytes& c) {
  f.field("peer", c.peer);
  f.unless_zero("protection", c.protection);
  f.field("sent", c.sent);
  f.field("received", c.received);
  f.unless_zero("window", c.window);
  f.unless_zero("pace", c.pace);
  f.group("kernel_sent", c.counted, [&] {
    f.field("kernel_sent", c.kernel_sent);
    f.field("kernel_received", c.kernel_received);
    f.later("kernel_sent_again", c.kernel_sent_again);
  });
}

template <class Fields>
void describe(Fields& f, AccuracySummary& a) {
  f.later("samples", a.samples);
  f.later("not_finite", a.not_finite);
  f.later("unreadable", a.unreadable);
  f.field("top1", a.top1, Range::not_negative);
  f.field("top5", a.top5, Range::not_negative);
  f.later("loss", a.loss);
}

template <class Fields>
void describe(Fields& f, TimeToAccuracy& t) {
  f.field("steps", t.steps);
  f.nullable("seconds", t.seconds, Range::not_negative);
  f.optional("bytes", t.bytes);
}

template <class Fields>
void describe(Fields& f, StragglerSummary& s) {
  f.field("rank", s.rank);
  f.field("steps", s.steps);
  f.field("late_s", s.late, Range::not_negative);
  f.field("receiving_s", s.receiving, Range::not_negative);
}

template <class Fields>
void describe(Fields& f, LeaseSummary& s) {
  f.field("rank", s.rank);
  f.field("by", s.by);
  f.field("batches", s.batches);
}

template <class Fields>
void describe(Fields& f, RunSummary& s) {
  f.group("t_grad_s", s.training);
  f.version();
  f.field("command", s.command);
  f.optional("rank", s.rank);
  f.optional("workers", s.workers);
  f.optional("slots", s.slots);
  f.group("server", s.mode);
  if (s.rank) {  // Every rank of several has traffic.
    if (!s.traffic) s.traffic.emplace();
    f.field("traffic", *s.traffic);
    f.optional("ledger", s.ledger);
    f.unless_zero("sent_before", s.bytes_before.sent);
    f.unless_zero("received_before", s.bytes_before.received);
  }
  f.optional("connections", s.connections);
  f.optional("stragglers", s.stragglers);
  f.optional("peak_memory_bytes", s.peak_memory_bytes);
  f.optional("gradients_down_s", s.gradients_down);
  f.optional("weights_up_s", s.weights_up);
  f.optional("sample_processor_s", s.sample_processor);
  f.optional("trained_s", s.trained);
  f.optional("speedup", s.speedup);
  f.optional("lost", s.lost);
  f.optional("returned", s.returned);
  f.optional("leases", s.leases);
  f.optional("ended_by", s.ended_by);
  f.optional("accuracy", s.accuracy);
  f.optional("reached", s.reached);
}

// transport-ROLE.json.

template <class Fields>
void describe(Fields& f, DirectionTimes& t) {
  f.later("down", t.down);
  f.later("up", t.up);
  f.later("down_both", t.down_both);
  f.later("up_both", t.up_both);
}

template <class Fields>
void describe(Fields& f, TransportSummary& t) {
  f.version();
  f.field("command", t.command);
  f.later("network", t.network);
  f.field("title", t.title);
  f.later("bytes", t.bytes);
  f.later("role", t.role);
  f.later("peer", t.peer);
  f.later("congestion", t.congestion);
  f.later("round_trip_s", t.round_trip);
  f.later("t_comm_s", t.times);
  f.later("link_s", t.link);
  f.field("t_comm", t.comm, Range::not_negative);
  f.optional("send_processor_s_per_gb", t.send_processor);
  f.optional("receive_processor_s_per_gb", t.receive_processor);
  f.optional("frame_processor_s", t.frame_processor);
  f.optional("owner_bytes_per_s", t.owner_rate);
  f.unless_zero("protection", t.protection);
  f.optional("seal_bytes_per_s", t.seal_rate);
  f.optional("link_bytes_per_s", t.link_rate, Range::not_negative);
}

// profile.json.

template <class Fields>
void describe(Fields& f, ProfileLayer& l) {
  f.field("name", l.name);
  f.later("type", l.type);
  f.later("macs", l.macs);
  f.field("forward_s", l.forward, Range::not_negative);
  f.field("backward_s", l.backward, Range::not_negative);
  f.later("steps", l.steps);
}

template <class Fields>
void describe(Fields& f, ProfileFile& p) {
  f.version();
  f.field("network", p.network);
  f.later("batch", p.batch);
  f.later("device", p.device);
  f.field("layers", p.layers);
}

template <class Fields>
void describe(Fields& f, PartProfileLayer& l) {
  f.field("name", l.name);
  f.field("channels", l.channels, Range::not_negative);
  f.field("forward_s", l.forward, Range::not_negative);
  f.field("backward_s", l.backward, Range::not_negative);
}

template <class Fields>
void describe(Fields& f, PartProfileEdges& e) {
  f.field("type", e.type);
  f.field("layers", e.layers, Range::not_negative);
  f.field("bytes", e.bytes, Range::not_negative);
  f.field("forward_s", e.forward, Range::not_negative);
  f.field("backward_s", e.backward, Range::not_negative);
}

template <class Fields>
void describe(Fields& f, PartProfile& p) {
  f.field("ranks", p.ranks, Range::not_negative);
  f.field("samples", p.samples, Range::not_negative);
  f.field("layers", p.layers);
  f.field("edges", p.edges);
  f.field("adding_s_per_byte", p.adding, Range::not_negative);
}

// trace.json. The names are those of Chrome's trace format, but for what is within "args".

template <class Fields>
void describe(Fields& f, TraceFileDetails& d) {
  f.optional("name", d.name);
  f.optional("sort_index", d.sort_index);
  f.optional("step", d.step);
  f.optional("for", d.waits_for);
  f.optional("queued_us", d.queued_us);
  f.optional("bytes", d.bytes);
  f.optional("gradient_of_rank", d.gradient_of_rank);
}

template <class Fields>
void describe(Fields& f, TraceFileEvent& e) {
  f.field("ph", e.phase);
  f.field("pid", e.rank);
  f.optional("tid", e.row);
  f.optional("ts", e.begin);
  f.optional("dur", e.takes);
  f.optional("id", e.arrow);
  f.field("name", e.name);
  f.optional("cat", e.category);
  f.optional("args", e.details);
  f.optional("s", e.scope);
  f.optional("bp", e.binds);
}

template <class Fields>
void describe(Fields& f, TraceFileHead& h) {
  f.version();
  f.later("model", h.model);
}

template <class Fields>
void describe(Fields& f, TraceFile& t) {
  f.later("displayTimeUnit", t.unit);
  f.field("traceEvents", t.events);
  f.field("otherData", t.head);
}

}  // namespace duplex::tools
