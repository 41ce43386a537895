// Defines the facts that a machine tells of itself, as `duplex check` asks for them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace duplex::tools {

struct DiskFacts {
  std::string path;     ///< A folder that ranks write into.
  std::string trouble;  ///< Why they cannot; empty: they can.
  std::uint64_t free_bytes = 0;
};

struct InterfaceFacts {
  std::string name;       ///< "eth0".
  std::string kind;       ///< "wired", "wireless", "virtual" or "loopback".
  std::int64_t mbit = 0;  ///< Megabits a second of the link; 0: the kernel does not know.
  std::string duplex;     ///< "full", "half", or "" where the kernel does not know.
  std::int64_t mtu = 0;
  std::string queue;          ///< Queue discipline, such as "fq_codel" or "mq of pfifo_fast".
  std::uint64_t packets = 0;  ///< Both ways, since the machine started.
  std::uint64_t errors = 0;   ///< Those among them that were damaged.
};

/// A machine's view of another one of the nodefile, or of itself.
struct RouteFacts {
  std::string address;    ///< Which its name stands for here; empty: for none.
  std::string trouble;    ///< Why the name stands for none; empty: it does.
  std::string interface;  ///< Over which packets leave; empty: there is no route.
};

struct MachineFacts {
  std::string name;  ///< The machine calls itself so.

  std::string version, commit;  ///< They are this program's.
  std::string backend;          ///< It computes: "oneDNN 2.6.3, avx2, 4 threads".
  std::int64_t protocol = 0;
  std::string kernel, system, architecture;

  std::int64_t clock_ahead_ns = 0;  ///< The time of day less the monotonic clock.
  bool synchronised = false;        ///< The time of day follows other clocks, by NTP or the like.

  std::string processor;
  std::int64_t cores = 0;       ///< The machine's, as far as they are switched on.
  std::int64_t usable = 0;      ///< Cores that a process started in this way may use.
  std::optional<double> quota;  ///< Cores' worth of time that its control group may have.
  double busy = 0.0;            ///< Cores that others keep busy.
  double stolen = 0.0;          ///< Cores that the host of a virtual machine gave to others.
  std::string busiest;          ///< The program that took most of it.
  double busiest_cores = 0.0;

  std::uint64_t memory = 0;     ///< Bytes.
  std::uint64_t available = 0;  ///< Bytes that programs may still have, by all limits.
  std::uint64_t swapped = 0;    ///< Bytes of programs that lie on disk.

  std::vector<DiskFacts> disks;

  std::vector<std::string> gpus;  ///< Names of NVIDIA's.
  std::string driver;             ///< Version of their kernel module.
  std::int64_t usable_gpus = 0;   ///< Which this program computes on.
  std::string gpu_trouble;        ///< Why it does not compute on any; empty: it does.

  std::string congestion;     ///< TCP's congestion control that ranks would have.
  bool forgets_pace = false;  ///< tcp_slow_start_after_idle.
  std::vector<InterfaceFacts> interfaces;
  std::vector<RouteFacts> routes;   ///< By machine, in the order of the nodefile.
  std::vector<std::string> closed;  ///< Why it does not listen where its ranks would.
};

template <class Fields>
void describe(Fields& f, DiskFacts& d) {
  f.field("path", d.path);
  f.field("trouble", d.trouble);
  f.field("free_bytes", d.free_bytes);
}

template <class Fields>
void describe(Fields& f, InterfaceFacts& i) {
  f.field("name", i.name);
  f.field("kind", i.kind);
  f.field("mbit", i.mbit);
  f.field("duplex", i.duplex);
  f.field("mtu", i.mtu);
  f.field("queue", i.queue);
  f.field("packets", i.packets);
  f.field("errors", i.errors);
}

template <class Fields>
void describe(Fields& f, RouteFacts& r) {
  f.field("address", r.address);
  f.field("trouble", r.trouble);
  f.field("interface", r.interface);
}

template <class Fields>
void describe(Fields& f, MachineFacts& m) {
  f.field("name", m.name);
  f.field("version", m.version);
  f.field("commit", m.commit);
  f.field("backend", m.backend);
  f.field("protocol", m.protocol);
  f.field("kernel", m.kernel);
  f.field("system", m.system);
  f.field("architecture", m.architecture);
  f.field("clock_ahead_ns", m.clock_ahead_ns);
  f.field("synchronised", m.synchronised);
  f.field("processor", m.processor);
  f.field("cores", m.cores);
  f.field("usable_cores", m.usable);
  f.optional("quota_cores", m.quota);
  f.field("busy_cores", m.busy);
  f.field("stolen_cores", m.stolen);
  f.field("busiest", m.busiest);
  f.field("busiest_cores", m.busiest_cores);
  f.field("memory_bytes", m.memory);
  f.field("available_bytes", m.available);
  f.field("swapped_bytes", m.swapped);
  f.field("disks", m.disks);
  f.field("gpus", m.gpus);
  f.field("driver", m.driver);
  f.field("usable_gpus", m.usable_gpus);
  f.field("gpu_trouble", m.gpu_trouble);
  f.field("congestion", m.congestion);
  f.field("forgets_pace", m.forgets_pace);
  f.field("interfaces", m.interfaces);
  f.field("routes", m.routes);
  f.field("closed", m.closed);
}

}  // namespace duplex::tools
