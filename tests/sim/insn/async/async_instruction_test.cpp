// mbarrier, cp.async, bulk and tensor copies, in every timing of asynchronous work.
#include "sim/async/tensor_map.h"
#include "tests/sim/insn/kernel_run.h"

#include <numeric>

namespace tilewright::sim {
namespace {

class Async : public testing::TestWithParam<AsyncTiming> {
 protected:
  Options options() const {
    Options options;
    options.async_timing = GetParam();
    return options;
  }
};

TEST_P(Async, CpAsyncGroupsFillSharedMemory) {
  KernelRun kernel(R"(.shared .align 16 .b8 buffer[1024];
    mul.wide.u32 %rd3, %r0, 16; add.s64 %rd4, %rd0, %rd3; add.s64 %rd5, %rd1, %rd3;
    mov.u32 %r1, buffer; mad.lo.u32 %r1, %r0, 16, %r1; and.b32 %r2, %r0, 15;
    cp.async.cg.shared.global [%r1], [%rd4], 16; cp.async.commit_group;
    cp.async.ca.shared.global [%r1+512], [%rd4], 16, %r2; cp.async.commit_group;
    cp.async.wait_group 1; ld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%r1];
    cp.async.wait_all; ld.shared.v4.u32 {%r7,%r8,%r9,%r10}, [%r1+512];
    st.global.v4.u32 [%rd5], {%r3,%r4,%r5,%r6}; st.global.v4.u32 [%rd5+512], {%r7,%r8,%r9,%r10};)",
                   options());
  auto* in = kernel.allocate<std::uint8_t>(512);
  auto* out = kernel.allocate<std::uint8_t>(1024);
  for (int i = 0; i < 512; ++i) in[i] = static_cast<std::uint8_t>(i % 251 + 1);
  kernel.run_well(in, out);
  for (int i = 0; i < 512; ++i) {
    EXPECT_EQ(out[i], in[i]);
    EXPECT_EQ(out[512 + i], i % 16 < i / 16 % 16 ? in[i] : 0) << i;
  }
}

TEST_P(Async, CpAsyncArrivesOnItsMbarrier) {
  KernelRun kernel(R"(.shared .align 16 .b8 buffer[512]; .shared .align 8 .b64 bar;
    mul.wide.u32 %rd3, %r0, 16; add.s64 %rd4, %rd0, %rd3; add.s64 %rd5, %rd1, %rd3;
    setp.eq.u32 %p0, %r0, 0; mov.u32 %r1, buffer; mad.lo.u32 %r1, %r0, 16, %r1;
    @%p0 mbarrier.init.shared.b64 [bar], 32;
    bar.warp.sync -1;
    cp.async.cg.shared.global [%r1], [%rd4], 16;
    cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra WAIT;
    ld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%r1]; st.global.v4.u32 [%rd5], {%r3,%r4,%r5,%r6};)",
                   options());
  auto* in = kernel.allocate<std::uint32_t>(128);
  auto* out = kernel.allocate<std::uint32_t>(128);
  std::iota(in, in + 128, 5);
  kernel.run_well(in, out);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(out[i], in[i]);
}

TEST_P(Async, BulkCopyThroughSharedMemoryAndBack) {
  KernelRun kernel(R"(.shared .align 16 .b8 buffer[2048]; .shared .align 8 .b64 bar;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mov.u32 %r1, buffer; mov.u32 %r2, bar;
    mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 2048;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 2048, [%r2];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 1024;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1+1024], [%r1+1024], 1024;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ld.global.u32 %r3, [%rd1]; st.global.u32 [%rd2], %r3;
    DONE:)",
                   options());
  auto* in = kernel.allocate<std::uint32_t>(512);
  auto* out = kernel.allocate<std::uint32_t>(512);
  auto* seen = kernel.allocate<std::uint32_t>(1);
  std::iota(in, in + 512, 11);
  std::fill(out, out + 512, 1000);
  kernel.run_well(in, out, seen);
  for (std::uint32_t i = 0; i < 512; ++i) EXPECT_EQ(out[i], in[i] + (i < 256 ? 0 : 1000));
  EXPECT_EQ(seen[0], 11u);
}

constexpr const char* kTensorRoundTrip =
    R"(.shared .align 1024 .b8 tile[8192]; .shared .align 8 .b64 bar;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], BYTES;
    cp.async.bulk.tensor.RANKd.shared::cluster.global.mbarrier::complete_tx::bytes [%r1],
      [%rd3, COORDS], [%r2];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], BYTES;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    DONE:)";

std::string with(std::string text, const std::string& word, const std::string& value) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    text.replace(at, word.size(), value);
  }
  return text;
}

TEST_P(Async, TensorLoadsOfEveryRankPutTheBoxInOrder) {
  for (std::uint32_t rank = 1; rank <= 5; ++rank) {
    std::string coordinates = "{8";
    for (std::uint32_t i = 1; i < rank; ++i) coordinates += ", 1";
    std::uint32_t elems = 16;
    for (std::uint32_t i = 1; i < rank; ++i) elems *= 2;
    const std::string body = with(with(with(kTensorRoundTrip, "BYTES", std::to_string(2 * elems)),
                                       "RANK", std::to_string(rank)),
                                  "COORDS", coordinates + "}");
    KernelRun kernel(body, options());
    auto* in = kernel.allocate<std::uint16_t>(32 * 81);
    auto* out = kernel.allocate<std::uint16_t>(4096);
    for (int i = 0; i < 32 * 81; ++i) in[i] = static_cast<std::uint16_t>(i);
    TensorMapFields fields;
    fields.element = TensorElement::kU16;
    fields.rank = rank;
    fields.address = reinterpret_cast<std::uint64_t>(in);
    std::uint64_t stride = 64;
    for (std::uint32_t i = 0; i < rank; ++i) {
      fields.dims[i] = i == 0 ? 32 : 3;
      fields.box[i] = i == 0 ? 16 : 2;
      fields.element_strides[i] = 1;
      if (i > 0) fields.strides_bytes[i - 1] = stride, stride *= 3;
    }
    ASSERT_EQ(validate(fields), "");
    encode(fields, std::span<std::byte, kTensorMapBytes>(kernel.map(), kTensorMapBytes));
    kernel.run_well(out);
    for (std::uint32_t i = 0; i < elems; ++i) {
      std::uint32_t at = 8 + i % 16, rest = i / 16, pitch = 32;
      for (std::uint32_t dim = 1; dim < rank; ++dim, rest /= 2, pitch *= 3) {
        at += (1 + rest % 2) * pitch;
      }
      ASSERT_EQ(out[i], in[at]) << rank << " " << i;
    }
  }
}

TEST_P(Async, TensorLoadSwizzlesAndFillsOutside) {
  const std::string body =
      with(with(with(kTensorRoundTrip, "BYTES", "1024"), "RANK", "2"), "COORDS", "{0, 4}");
  KernelRun kernel(body, options());
  auto* in = kernel.allocate<std::uint16_t>(64 * 8);
  auto* out = kernel.allocate<std::uint16_t>(512);
  for (int i = 0; i < 512; ++i) in[i] = static_cast<std::uint16_t>(i + 1);
  TensorMapFields fields;
  fields.element = TensorElement::kBf16;
  fields.swizzle = TensorSwizzle::k128B;
  fields.rank = 2;
  fields.address = reinterpret_cast<std::uint64_t>(in);
  fields.dims = {64, 8};
  fields.strides_bytes = {128};
  fields.box = {64, 8};
  fields.element_strides = {1, 1};
  encode(fields, std::span<std::byte, kTensorMapBytes>(kernel.map(), kTensorMapBytes));
  kernel.run_well(out);
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 64; ++column) {
      const int chunk = (column / 8) ^ row;
      ASSERT_EQ(out[64 * row + 8 * chunk + column % 8], row < 4 ? in[64 * (row + 4) + column] : 0);
    }
  }
}

TEST_P(Async, MulticastReachesEveryCtaOfTheCluster) {
  KernelRun kernel(R"(.shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
    mov.u32 %r1, tile; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; mov.u16 %h0, 3;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra SYNC;
    mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
    SYNC: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    setp.ne.u32 %p2, %r3, 0; or.pred %p2, %p2, %p0;

        @!%p2 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
      [%r1], [%rd0], 128, [%r2], %h0;
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    mul.lo.u32 %r4, %r0, 4; add.u32 %r5, %r1, %r4; ld.shared.u32 %r6, [%r5];
    mad.lo.u32 %r7, %r3, 128, %r4; cvt.u64.u32 %rd3, %r7; add.s64 %rd3, %rd1, %rd3;
    st.global.u32 [%rd3], %r6;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)",
                   options());
  auto* in = kernel.allocate<std::uint32_t>(32);
  auto* out = kernel.allocate<std::uint32_t>(64);
  std::iota(in, in + 32, 3);
  kernel.run_well(in, out, nullptr, 32, 2);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], in[i % 32]);
}

TEST_P(Async, RemoteStoreSignalsThePeer) {
  KernelRun kernel(R"(.shared .align 8 .b64 value; .shared .align 8 .b64 bar;
    mov.u32 %r1, value; mov.u32 %r2, bar; mov.u32 %r3, %cluster_ctarank; xor.b32 %r4, %r3, 1;
    setp.ne.u32 %p0, %r0, 0; @%p0 bra SYNC;
    mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 4;
    SYNC: barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mapa.shared::cluster.u32 %r5, %r1, %r4; mapa.shared::cluster.u32 %r6, %r2, %r4;
    add.u32 %r7, %r3, 40;
    @!%p0 st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r5], %r7, [%r6];
    WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra WAIT;
    ld.shared.u32 %r8, [%r1]; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd3, %rd0, %rd3;
    @!%p0 st.global.u32 [%rd3], %r8;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;)",
                   options());
  auto* out = kernel.allocate<std::uint32_t>(2);
  kernel.run_well(out, nullptr, nullptr, 32, 2);
  EXPECT_EQ(out[0], 41u);
  EXPECT_EQ(out[1], 40u);
}

INSTANTIATE_TEST_SUITE_P(Timing, Async,
                         testing::Values(AsyncTiming::kEager, AsyncTiming::kLate,
                                         AsyncTiming::kRandom));

/// Two copies on two mbarriers; out[0]: whether the second was done when the first was found done,
/// out[1]: the other way round; then the second's data.
constexpr const char* kTwoCopies = R"(.shared .align 16 .b8 buffer[1024];
    .shared .align 8 .b64 bars[2];
    setp.ne.u32 %p0, %r0, 0; @%p0 bra DONE;
    mov.u32 %r1, buffer; mov.u32 %r2, bars;
    mbarrier.init.shared::cta.b64 [%r2], 1; mbarrier.init.shared::cta.b64 [%r2+8], 1;
    fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2+8], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0], 512, [%r2];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1+512], [%rd0+512], 512,
      [%r2+8];
    LOOK: mbarrier.test_wait.parity.shared::cta.b64 %p1, [%r2], 0;
    mbarrier.test_wait.parity.shared::cta.b64 %p2, [%r2+8], 0;
    or.pred %p3, %p1, %p2; @!%p3 mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r2], 0;
    @!%p3 bra LOOK;
    selp.u32 %r3, 1, 0, %p2; selp.u32 %r4, 1, 0, %p1;
    FIRST: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0; @!%p1 bra FIRST;
    SECOND: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2+8], 0; @!%p1 bra SECOND;
    ld.shared.u32 %r5, [%r1+508]; ld.shared.u32 %r6, [%r1+1020];
    st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
    DONE:)";

std::vector<std::uint32_t> outcome(std::uint64_t seed) {
  Options options;
  options.async_timing = AsyncTiming::kRandom;
  options.seed = seed;
  KernelRun kernel(kTwoCopies, options);
  auto* in = kernel.allocate<std::uint32_t>(256);
  auto* out = kernel.allocate<std::uint32_t>(4);
  std::iota(in, in + 256, 0);
  kernel.run_well(in, out);
  return {out, out + 4};
}

/// A store takes effect in the turn of a warp that comes after the one that waits for it, and
/// nobody else can go on; then that warp runs for many short turns without any wait.
TEST(RandomTiming, WorkDoneLateInARoundIsNoDeadlock) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Options options;
    options.async_timing = AsyncTiming::kRandom;
    options.seed = seed;
    KernelRun kernel(R"(.shared .align 16 .b8 buffer[128];
      mov.u32 %r1, buffer; mov.u32 %r2, 0; setp.ge.u32 %p1, %r0, 32; @%p1 bra MEET;
      shl.b32 %r3, %r0, 2; add.u32 %r3, %r3, %r1; st.shared.u32 [%r3], %r0;
      fence.proxy.async.shared::cta; bar.warp.sync -1;
      setp.ne.u32 %p0, %r0, 0; @%p0 bra MEET;
      cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r1], 128;
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
      LOOP: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 200; @%p2 bra LOOP;
      MEET: bar.warp.sync -1; bar.sync 0;)",
                     options);
    auto* out = kernel.allocate<std::uint32_t>(32);
    kernel.run_well(out, nullptr, nullptr, 256);
    EXPECT_EQ(out[31], 31u) << "seed " << seed;
  }
}

TEST(RandomTiming, CopiesCompleteInAnyOrderAndEachWithItsMbarrier) {
  bool is_only_first = false, is_only_second = false, are_both = false;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<std::uint32_t> out = outcome(seed);
    EXPECT_EQ(out[2],
              127u);  // whatever the order, a wait that is over means that the data is there
    EXPECT_EQ(out[3], 255u);
    is_only_first |= out[0] == 0 && out[1] == 1;
    is_only_second |= out[0] == 1 && out[1] == 0;
    are_both |= out[0] == 1 && out[1] == 1;
    EXPECT_EQ(out, outcome(seed));
  }
  EXPECT_TRUE(is_only_first && is_only_second && are_both);
}

TEST(Mbarrier, OverArrivalIsAFinding) {
  KernelRun kernel(R"(.shared .align 8 .b64 bar; setp.eq.u32 %p0, %r0, 0;
    @%p0 mbarrier.init.shared.b64 [bar], 2; bar.warp.sync -1;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
    mbarrier.arrive.shared::cta.b64 _, [bar];)");
  const auto fault = kernel.run(nullptr);
  ASSERT_TRUE(fault.has_value());
  EXPECT_NE(fault->message.find("mbarrier.arrive by lane 2"), std::string::npos) << fault->message;
}

}  // namespace
}  // namespace tilewright::sim
