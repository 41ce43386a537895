// config.json: what a run of local, dist or simulate was asked to do.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/coding/coding.h"
#include "net/store/store.h"
#include "net/topology/shard_map.h"

namespace duplex::tools {

/// The images that a run trains and tests with.
struct DataConfig {
  std::string path, description;
  std::uint64_t train = 0, test = 0;  ///< Images.
};

/// Says how workers train together: written by dist and simulate.
struct ParallelConfig {
  int ranks = 1, workers = 1;
  net::ServerMode server = net::ServerMode::distributed;
  net::Sync sync = net::Sync::join;
  net::Shards shards = net::Shards::even;
  bool overlap = true, semaphore = false;
  std::uint64_t average = 0;  ///< Batches between averagings; 0: gradients are sent.
  net::WireFormat wire;
  std::optional<std::string> factors;  ///< "on" or "auto"; none: off.
  /// Samples of each step, by worker; none: all have the same, or as nearly as a batch that is
  /// split allows. Where the network is cut: the work of each rank beside that of the others.
  std::optional<std::vector<std::int64_t>> samples;
  std::optional<std::vector<int>> slots;   ///< By worker; none: each has one.
  std::optional<std::string> strategy;     ///< By which the network is cut; none: it is not.
  std::optional<std::uint64_t> in_flight;  ///< For each stage from a rank's on.
  std::optional<std::string> stages;       ///< As --stages has them.
  std::optional<std::uint64_t> micro_batches;
};

/// What a plan was predicted to come to.
struct PlanConfig {
  std::string way;                         ///< "join-distributed@4".
  double speedup = 0.0;                    ///< Over the fastest machine alone.
  double image = 0.0;                      ///< Seconds an image, of all workers together.
  double step = 0.0;                       ///< Seconds a step of the first worker, on the average.
  double computing = 0.0, awaiting = 0.0;  ///< Of them, computing and waiting for weights.
  double alone = 0.0;                      ///< Seconds an image of the fastest machine alone.
};

/// The scenario that a simulation was given.
struct SimulationConfig {
  std::uint64_t batches = 0;
  double grad = 0.0, comm = 0.0;        ///< Seconds: t_grad and t_comm.
  double rate = 0.0, owner_rate = 0.0;  ///< Bytes a second: of a link, of an owner (0: no limit).
  double seal_rate = 0.0;               ///< Bytes a second; 0: frames are plain.
  /// Processor seconds a gigabyte, to send and to receive, and a frame.
  double send_processor = 0.0, receive_processor = 0.0, frame_processor = 0.0;
  int cores = 0, threads = 0;           ///< Of a machine; that compute on a rank. 0: not known.
  int together = 0;                     ///< Ranks on each machine.
  double latency = 0.0;                 ///< Seconds.
  std::optional<std::string> measured;  ///< As the flag was given.
  std::vector<std::string> slow, links, lose;  ///< As the flags were given.
};

struct RunConfig {
  std::string command;         ///< "local", "dist", "simulate".
  std::string network, title;  ///< "resnet34", "Resnet34".
  std::string input;           ///< "1x3x224x224": of one sample.
  std::int64_t classes = 0, parameters = 0;
  bool auxiliary = false, pad_shortcuts = false;
  std::optional<std::string> network_file;  ///< Its text, where `network` is the path of a file.
  std::optional<std::string> host;
  std::optional<DataConfig> data;
  std::string settings;
  std::int64_t batch = 0;
  std::optional<std::uint64_t> epochs;
  std::optional<std::string> until;  ///< "top1:0.88": the accuracy at which it ends.
  std::uint64_t seed = 0;
  std::string device;
  std::optional<int> threads;  ///< That compute; none: nothing is computed here, or by a GPU.
  std::optional<int> cores;    ///< Of this machine, that may be used.
  bool replayed = false, simulated = false;
  std::optional<std::uint64_t> accumulate;
  std::optional<ParallelConfig> parallel;
  std::optional<std::vector<std::string>> addresses;  ///< By rank.
  std::optional<double> link_rate;  ///< Bytes a second of --link-rate; none: no limit.
  std::optional<SimulationConfig> simulation;
  std::optional<PlanConfig> plan;
};

}  // namespace duplex::tools
