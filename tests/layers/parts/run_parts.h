// Runs the parts of a cut network, each in a thread of its own, as ranks would.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "core/map_exchange.h"
#include "layers/network.h"
#include "layers/parts/cut_network.h"
#include "tests/layers/devices.h"
#include "tests/layers/small_networks.h"

namespace duplex::test {

/// Carries maps between threads, and counts them. One that waits longer than a minute fails.
class MapExchangeHere final : public MapExchange {
 public:
  explicit MapExchangeHere(const CutNetwork& cut) : cut_(cut) {}

  float* room(const MapMessage& message) override {
    const std::lock_guard lock(mutex_);
    std::vector<float>& values = values_[message];
    values.resize(cut_.transfers()[message.transfer].elements);
    return values.data();
  }
  void send(const MapMessage& message) override {
    const std::lock_guard lock(mutex_);
    if (!sent_.insert(message).second) throw Error("sent twice");
    bytes_ += values_[message].size() * sizeof(float);
    changed_.notify_all();
  }
  bool arrived(const MapMessage& message) const override {
    const std::lock_guard lock(mutex_);
    return sent_.count(message) != 0;
  }
  std::uint64_t arrivals() const override {
    const std::lock_guard lock(mutex_);
    return sent_.size();
  }
  void wait_for_more(std::uint64_t known) override {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1),
                           [&] { return failed_ || sent_.size() > known; }) ||
        failed_)
      throw Error("no map comes");
  }
  const float* take(const MapMessage& message) override {
    const std::lock_guard lock(mutex_);
    return values_.at(message).data();
  }
  void release(const MapMessage& message) override {
    const std::lock_guard lock(mutex_);
    values_.erase(message);
  }
  /// Nobody waits any longer.
  void fail() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

  std::size_t bytes() const { return bytes_; }
  /// Messages that nobody has taken.
  std::size_t left() const { return values_.size(); }

 private:
  const CutNetwork& cut_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<MapMessage, std::vector<float>> values_;
  std::set<MapMessage> sent_;
  std::size_t bytes_ = 0;
  bool failed_ = false;
};

/// Calls work(rank) in a thread for each rank, and throws what the first of them threw.
template <class Work>
void in_threads(std::size_t ranks, MapExchangeHere& maps, const Work& work) {
  std::vector<std::thread> threads;
  std::vector<std::exception_ptr> errors(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (...) {
        errors[rank] = std::current_exception();
        maps.fail();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

class CutRun {
 public:
  /// Parameters begin as initialise_off_kinks() draws them for the whole network.
  CutRun(const std::string& backend_name, CutNetwork& cut, Network& whole)
      : cut_(cut), maps_(cut), whole_(whole) {
    for (int rank = 0; rank < cut.placement().ranks; ++rank) {
      devices_.push_back(backend(backend_name));
      parts_.push_back(cut.part(rank));
      networks_.push_back(
          std::make_unique<Network>(parts_.back().model, *devices_.back(), parts_.back().images));
      for (Parameter& parameter : networks_.back()->parameters()) copy_rows(parameter);
      for (Parameter& parameter : networks_.back()->statistics()) copy_rows(parameter);
    }
  }

  /// Forward and backward of all ranks. Returns the sum of their losses.
  double run(const Batch& batch, std::uint64_t micro_batch = 0) {
    std::vector<double> losses(networks_.size());
    in_threads(networks_.size(), maps_,
               [&](std::size_t rank) { losses[rank] = run_rank(rank, batch, micro_batch); });
    double loss = 0;
    for (const double each : losses) loss += each;
    return loss;
  }

  /// The sum of all ranks' gradients of a parameter of the whole network.
  std::vector<float> gradient(const Parameter& of) {
    std::vector<float> sum(static_cast<std::size_t>(of.spec.shape.elements()), 0.0F);
    for (const auto& network : networks_) {
      for (const Parameter& part : network->parameters()) {
        if (whole_name(part) != of.name) continue;
        const std::vector<float> values = values_of(network->device(), part.gradient);
        for (std::size_t i = 0; i < values.size(); ++i)
          sum[static_cast<std::size_t>(part.spec.rows.first) + i] += values[i];
      }
    }
    return sum;
  }

  Network& network(std::size_t rank) { return *networks_[rank]; }
  const MapExchangeHere& maps() const { return maps_; }

 private:
  static std::string whole_name(const Parameter& part) {
    return part.spec.rows.parameter.empty() ? part.name : part.spec.rows.parameter;
  }

  void copy_rows(Parameter& part) {
    for (Parameter* const own : whole_.state()) {
      if (own->name != whole_name(part)) continue;
      const std::vector<float> values = values_of(whole_.device(), own->weights);
      networks_.back()->device().upload(part.weights, values.data() + part.spec.rows.first);
      return;
    }
    throw Error(part.name + " belongs to no parameter");
  }

  double run_rank(std::size_t rank, const Batch& batch, std::uint64_t micro_batch) {
    ForwardContext context = batch.training();
    context.maps = &maps_;
    context.micro_batch = micro_batch;
    const std::int64_t sample = cut_.whole().shape(cut_.whole().input()).elements();
    networks_[rank]->forward(
        parts_[rank].reads ? batch.images.data() + parts_[rank].first_image * sample : nullptr,
        context);
    networks_[rank]->backward();
    return networks_[rank]->loss();
  }

  CutNetwork& cut_;
  MapExchangeHere maps_;
  Network& whole_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::vector<NetworkPart> parts_;
  std::vector<std::unique_ptr<Network>> networks_;
};

}  // namespace duplex::test
