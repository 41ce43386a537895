// Tests what store_memory() says against what the kernel counts when gradients come in the order
// that needs the most.
#include "net/store/store_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/net/store/store_data.h"

namespace duplex::net {
namespace {

constexpr std::size_t elements = std::size_t{4} << 20;  // 16 MiB.

double resident() {
  std::ifstream file("/proc/self/statm");
  double all = 0.0, now = 0.0;
  file >> all >> now;
  return now * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

class StoreMemoryOf : public ::testing::Test {
 protected:
  /// The store of an owner whose own worker is the first of three, or, with `own` -1, of a central
  /// server.
  void make(Sync sync, int own, bool keeps_before, bool packs = false) {
    spec_ = spec_of(3, momentum(), 0, 0);
    spec_.sync = sync;
    spec_.own = own;
    spec_.keeps_before = keeps_before;
    spec_.packs = packs;
    spec_.early_bytes =
        early_room_of(own >= 0, elements * sizeof(float), spec_.workers, usual_early_bytes);
    said_ = store_memory(map_, 0, spec_);
#ifdef __GLIBC__
    // Else the store may take what other tests have given back to the heap, which is resident.
    ::malloc_trim(0);
#endif
    before_ = resident();
    store_ = make_store(map_, 0, spec_, {weights_.data()}, [&](const Publication& publication) {
      if (publication.weights == nullptr)
        store_->read(publication.chunk, publication.worker,
                     weights_.data() + map_[publication.chunk].offset);
    });
    store_->publish_initial();
  }
  /// The gradients of a worker, chunk by chunk.
  void push(int worker) {
    for (std::size_t chunk = 0; chunk < map_.chunks(); ++chunk) {
      if (worker == spec_.own) {
        store_->submit(chunk, worker, 0, weights_.data() + map_[chunk].offset);
        continue;
      }
      float* to = store_->reserve(chunk, worker, 0, Clock::now() + std::chrono::seconds(5));
      ASSERT_NE(to, nullptr);
      std::fill_n(to, map_[chunk].count, 1.0F);
      store_->commit(chunk, worker);
    }
  }
  void expect_took(std::size_t bytes) const {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the store has run, but a sanitizer's own memory hides the " << bytes
                 << " bytes that it should take";
#endif
    const double took = resident() - before_;
    EXPECT_NEAR(took / static_cast<double>(bytes), 1.0, 0.05);
  }

  ShardMap map_ = ShardMap::central({elements}, 0);
  std::vector<float> weights_ = std::vector<float>(elements, 1.0F);
  StoreSpec spec_;
  StoreMemory said_;
  double before_ = 0.0;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreMemoryOf, ACentralServerWhoseFirstWorkerIsLast) {
  make(Sync::join, -1, false);
  for (const int worker : {2, 1}) push(worker);
  expect_took(said_.received);
  push(0);
  expect_took(said_.received + said_.state);
}

TEST_F(StoreMemoryOf, AnOwnerWhoseOwnWorkerIsLast) {
  make(Sync::join, 0, false);
  for (const int worker : {2, 1, 0}) push(worker);
  expect_took(said_.received + said_.state);
}

TEST_F(StoreMemoryOf, AnOwnerThatKeepsWhatWasBefore) {
  make(Sync::join, 0, true);
  for (const int worker : {2, 1, 0}) push(worker);
  expect_took(said_.received + said_.state + said_.before);
}

TEST_F(StoreMemoryOf, AnOwnerThatPacks) {
  make(Sync::join, 0, false, true);
  for (const int worker : {2, 1, 0}) push(worker);
  expect_took(said_.received + said_.state + said_.packed);
}

/// Where a network is cut, nobody else may have a part; nothing is received then, or packed.
TEST_F(StoreMemoryOf, AnOwnerOfWhatNobodyElseHas) {
  map_ = ShardMap::among({elements}, {{0}}, 3, ServerMode::distributed, std::size_t{1} << 20);
  make(Sync::join, 0, false, true);
  EXPECT_EQ(said_.received, 0U);
  EXPECT_EQ(said_.packed, 0U);
  push(0);
  expect_took(said_.state);
}

TEST_F(StoreMemoryOf, AnAsynchronousServer) {
  make(Sync::none, -1, false);
  for (const int worker : {0, 1, 2}) push(worker);
  expect_took(said_.received + said_.state);
}

}  // namespace
}  // namespace duplex::net
