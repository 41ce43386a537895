// A bounded link: bytes that cross it take their time, whichever connections they take, and arrive.
#include "net/wire/link_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "net/wire/socket.h"
#include "tests/net/wire/socket_pair.h"

namespace duplex::net {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double rate = 8e6;
constexpr std::size_t size = 1 << 20;

/// The least seconds that `bytes` over so many connections need, all tokens of a pause spent. Each
/// connection moves its last bytes, those of a millisecond at most, when the link is ready for
/// them.
double least(std::size_t bytes, int connections) {
  return (static_cast<double>(bytes) - TokenBucket::burst) / rate - connections * 1e-3;
}

/// Sends `size` bytes over each pair at the same time, and returns the seconds that this takes.
double send_over(std::vector<SocketPair>& pairs, bool borrowed) {
  const WithoutSigpipe quiet;
  std::vector<char> body(size);
  for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<char>(i * 2654435761U >> 24);
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  for (SocketPair& pair : pairs) {
    threads.emplace_back([&] {
      if (borrowed)
        pair.near.write_borrowed("head", 4, body.data(), size, SocketPair::in(20000), "testing");
      else
        pair.near.write_all("head", 4, body.data(), size, SocketPair::in(20000), "testing");
    });
    threads.emplace_back([&] {
      std::vector<char> got(4 + size);
      pair.far.read_exact(got.data(), got.size(), SocketPair::in(20000), "testing");
      EXPECT_TRUE(std::equal(body.begin(), body.end(), got.begin() + 4));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return Seconds(Clock::now() - begin).count();
}

TEST(LinkRate, BoundsWhatASocketSendsAndTakes) {
  for (const bool borrowed : {true, false})
    for (const bool sends : {true, false}) {
      std::vector<SocketPair> pairs(1);
      (sends ? pairs[0].near : pairs[0].far).keep_to(std::make_shared<LinkRate>(rate));
      const double took = send_over(pairs, borrowed);
      EXPECT_GE(took, least(size, 1)) << sends << borrowed;
      EXPECT_LT(took, 5.0) << "that is a tenth of the rate";
    }
}

TEST(LinkRate, IsSharedByAllConnections) {
  const auto link = std::make_shared<LinkRate>(rate);
  std::vector<SocketPair> pairs(3);
  for (SocketPair& pair : pairs) pair.far.keep_to(link);
  EXPECT_GE(send_over(pairs, true), least(3 * size, 3));
}

TEST(LinkRate, ItsDirectionsAreApart) {
  LinkRate link(rate);
  link.out.take(10 * size, false);
  EXPECT_GT(link.out.ready(), Clock::now());
  EXPECT_LE(link.in.ready(), Clock::now());
}

// The bytes of each wait are due when the link was ready, not when the thread woke up.
TEST(LinkRate, LosesNothingToAThreadThatWakesUpLate) {
  TokenBucket bucket(rate);
  bucket.take(size, false);
  const auto ready = bucket.ready();
  bucket.take(static_cast<std::size_t>(rate / 1000), true);
  EXPECT_NEAR(Seconds(bucket.ready() - ready).count(), 1e-3, 1e-6);
}

TEST(LinkRate, GivesAPauseNoMoreThanABurst) {
  TokenBucket bucket(rate);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  bucket.take(TokenBucket::burst + 8000, false);
  EXPECT_GT(Seconds(bucket.ready() - Clock::now()).count(), -0.01);
  EXPECT_LE(Seconds(bucket.ready() - Clock::now()).count(), 1e-3);
}

TEST(LinkRate, WaitingForTheLinkDoesNotPassTheDeadline) {
  SocketPair pair;
  pair.near.keep_to(std::make_shared<LinkRate>(rate));
  std::vector<char> body(size), got(size);
  std::thread reader(
      [&] { pair.far.read_exact(got.data(), size, SocketPair::in(20000), "testing"); });
  pair.near.write_all(body.data(), size, nullptr, 0, SocketPair::in(60), "testing");
  reader.join();
}

TEST(LinkRate, AnEndedConnectionIsNotWaitedFor) {
  SocketPair pair;
  pair.near.keep_to(std::make_shared<LinkRate>(1000.0));
  std::vector<char> body(size);
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    pair.near.shut_down();
  });
  const auto begin = Clock::now();
  EXPECT_THROW(pair.near.write_all(body.data(), size, nullptr, 0, SocketPair::in(20000), "testing"),
               NetworkError);
  EXPECT_LT(Seconds(Clock::now() - begin).count(), 10.0);
  ends.join();
}

}  // namespace
}  // namespace duplex::net
