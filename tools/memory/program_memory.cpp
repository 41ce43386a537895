#include "tools/memory/program_memory.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "layers/exchange/local_exchange.h"
#include "net/exchange/exchange.h"
#include "tools/memory/network_memory.h"
#include "tools/memory/resident.h"

namespace duplex::tools {
namespace {

/// A network with one layer of each usual kind, on which a library shows what it takes in any case.
Model smallest() {
  Model net("smallest", {1, 3, 8, 8});
  Model::Node x = net.conv("conv", net.input(), 8, same(3));
  x = net.batch_norm("norm", x, true);
  x = net.max_pool("pool", x, valid(2, 2));
  x = net.linear("linear", x, 4, false);
  net.softmax("loss", x);
  return net;
}

void train_a_step(const DeviceSpec& computing) {
  const auto device = computing.make();
  constexpr std::int64_t batch = 2;
  Network network(smallest(), *device, batch);
  network.initialise(1);
  LocalExchange exchange(network, {}, {});
  const std::vector<float> images(
      static_cast<std::size_t>(network.model().entry(0).shape.elements() * batch));
  const std::vector<std::int32_t> labels(batch);
  ForwardContext context;
  context.labels = labels.data();
  exchange.begin(0);
  network.forward(images.data(), context);
  network.backward();
  for (std::size_t p = 0; p < network.parameters().size(); ++p) exchange.push(p);
  exchange.end();
}

void exchange_steps(net::MeshSpec spec, net::Listener listener) {
  constexpr std::uint64_t steps = 2;
  std::vector<float> weights(4096), gradient(weights.size());
  net::ExchangeSpec exchange;
  exchange.sync = net::Sync::none;
  exchange.steps = steps;
  exchange.optimiser.momentum = 0.9F;
  exchange.timeout = spec.timeout;
  exchange.ledger = {"/dev/null", "/dev/null"};
  const bool trains = spec.topology.is_worker(spec.rank);
  net::ParameterExchange wire(
      exchange, {{"weight", weights.size(), weights.data(), trains ? gradient.data() : nullptr}},
      net::Mesh::join(std::move(spec), std::move(listener)));
  for (std::uint64_t step = 0; trains && step < steps; ++step) {
    wire.begin(step);
    wire.await(0);
    wire.push(0);
    wire.end();
  }
  while (trains && wire.next_lease(steps)) {
  }
  wire.finish();
}

/// A central server and two workers, in a thread each.
void exchange_over_loopback() {
  constexpr int ranks = 3;
  std::vector<net::Listener> listeners;
  net::MeshSpec spec;
  spec.topology = {net::ServerMode::central, ranks, 0};
  spec.identity.job = "memory";
  spec.timeout = std::chrono::seconds(10);
  for (int rank = 0; rank < ranks; ++rank) {
    listeners.push_back(net::Listener::open({"127.0.0.1", 0}));
    spec.addresses.push_back({"127.0.0.1", listeners.back().port()});
  }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    spec.rank = rank;
    spec.takes_back = rank == 0;
    threads.emplace_back([spec, &listener = listeners[static_cast<std::size_t>(rank)]] {
      try {
        exchange_steps(spec, std::move(listener));
      } catch (const Error&) {  // What has been used so far counts.
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

ProgramMemory program_memory(const DeviceSpec& computing) {
  ProgramMemory memory;
  const std::size_t begun = resident_now();
  if (!is_gpu(computing)) train_a_step(computing);  // What CUDA takes is not known here.
  memory.alone = std::max(begun, resident_now());
  try {
    exchange_over_loopback();
  } catch (const Error&) {  // There is no loopback.
  }
  memory.works = std::max(memory.alone, resident_now());
  memory.serves = begun + (memory.works - memory.alone);
  return memory;
}

}  // namespace duplex::tools
