// Memory of other ranks: what threads of one process reach, and what says why not.
#include "comm/peer_memory.h"

#include "comm/thread_group.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::comm {
namespace {

TEST(PeerMemory, ThreadsOfOneDeviceReachEachOther) {
  const Device device = Device::open("sim:h200");
  ThreadGroup group(3);
  std::vector<std::vector<void*>> seen(3);
  group.run([&](int rank) {
    const auto comm = group.join(rank, device);
    const PeerMemory memory(device, *comm, Buffer(device, 64));
    EXPECT_TRUE(memory.is_mapped()) << memory.obstacle();
    for (int r = 0; r < 3; ++r) seen[rank_idx(rank)].push_back(memory.of(r));
    comm->barrier();  // until then all buffers are there
  });
  EXPECT_THAT(seen[0], ::testing::Each(::testing::NotNull()));
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_NE(seen[0][0], seen[0][1]);
}

// What is enqueued and waits for others by itself is told of a failure once, before anything else:
// each that asked for it and still does.
TEST(PeerMemory, TheEndIsToldOnce) {
  const Device device = Device::open("sim:h200");
  ThreadGroup group(1);
  int calls = 0, others = 0, gone = 0;
  const auto comm = group.join(0, device);
  comm->when_failed(&calls, [&] { ++calls; });
  comm->when_failed(&others, [&] { ++others; });
  comm->when_failed(&gone, [&] { ++gone; });
  comm->when_failed(&gone, {});
  comm->tell_failure("planted");
  comm->tell_failure("again");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(others, 1);
  EXPECT_EQ(gone, 0);
}

}  // namespace
}  // namespace tilewright::comm
