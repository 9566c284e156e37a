// ld, st, atom, red: values, widths, masks, and what is refused.
#include "tests/sim/insn/kernel_run.h"

#include <numeric>

namespace tilewright::sim {
namespace {

TEST(LoadStore, VectorsMoveBetweenLanesAndMemory) {
  KernelRun kernel(R"(
    mul.wide.u32 %rd3, %r0, 16; add.s64 %rd4, %rd0, %rd3; add.s64 %rd5, %rd1, %rd3;
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd4];
    add.u32 %r1, %r1, 1;
    st.global.v2.u32 [%rd5], {%r4, %r3};
    st.global.v2.u32 [%rd5+8], {%r2, %r1};)");
  auto* in = kernel.allocate<std::uint32_t>(128);
  auto* out = kernel.allocate<std::uint32_t>(128);
  std::iota(in, in + 128, 100);
  kernel.run_well(in, out);
  for (int lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[4 * lane], in[4 * lane + 3]);
    EXPECT_EQ(out[4 * lane + 3], in[4 * lane] + 1);
  }
}

TEST(LoadStore, NarrowValuesAreExtendedAndTruncated) {
  KernelRun kernel(R"(
    cvt.u64.u32 %rd3, %r0; add.s64 %rd4, %rd0, %rd3;
    ld.global.s8 %r1, [%rd4]; ld.global.u8 %r2, [%rd4];
    shl.b64 %rd3, %rd3, 3; add.s64 %rd5, %rd1, %rd3;
    st.global.u32 [%rd5], %r1; st.global.u16 [%rd5+4], %r2; st.global.b8 [%rd5+6], %r1;)");
  auto* in = kernel.allocate<std::int8_t>(32);
  auto* out = kernel.allocate<std::uint8_t>(256);
  for (int i = 0; i < 32; ++i) in[i] = static_cast<std::int8_t>(i * 9 - 128);
  kernel.run_well(in, out);
  for (int i = 0; i < 32; ++i) {
    std::int32_t wide;
    std::uint16_t half;
    std::memcpy(&wide, out + 8 * i, 4);
    std::memcpy(&half, out + 8 * i + 4, 2);
    EXPECT_EQ(wide, in[i]);
    EXPECT_EQ(half, static_cast<std::uint8_t>(in[i]));
    EXPECT_EQ(out[8 * i + 6], static_cast<std::uint8_t>(in[i]));
    EXPECT_EQ(out[8 * i + 7], 0);
  }
}

TEST(LoadStore, LanesThatAreOffKeepRegistersAndMemory) {
  KernelRun kernel(R"(
    mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd0, %rd3; add.s64 %rd5, %rd1, %rd3;
    and.b32 %r1, %r0, 3; setp.eq.u32 %p0, %r1, 1;
    mov.u32 %r2, 7;
    @%p0 ld.global.u32 %r2, [%rd4];
    @!%p0 add.s64 %rd5, %rd5, 4096;
    @!%p0 bra SKIP;
    st.global.u32 [%rd5], %r2;
    SKIP: st.global.u32 [%rd4+128], %r2;)");
  auto* in = kernel.allocate<std::uint32_t>(64);
  auto* out = kernel.allocate<std::uint32_t>(32);
  std::iota(in, in + 32, 1000);
  kernel.run_well(in, out);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[lane], lane % 4 == 1 ? 1000 + lane : 0u);
    EXPECT_EQ(in[32 + lane], lane % 4 == 1 ? 1000 + lane : 7u);
  }
}

TEST(LoadStore, GenericAddressesReachSharedLocalAndGlobal) {
  KernelRun kernel(R"(
    .shared .align 16 .b8 buffer[256]; .local .align 8 .b8 stack[16];
    mov.u32 %r1, buffer; mul.lo.u32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;
    cvt.u64.u32 %rd3, %r1; cvta.shared.u64 %rd3, %rd3;
    mov.u64 %rd4, stack; cvta.local.u64 %rd4, %rd4;
    and.b32 %r3, %r0, 1; setp.eq.u32 %p0, %r3, 0; selp.b64 %rd5, %rd3, %rd4, %p0;
    st.u32 [%rd5], %r0;
    ld.shared.u32 %r4, [%r1]; ld.local.u32 %r5, [stack];
    selp.b32 %r6, %r4, %r5, %p0;
    mul.wide.u32 %rd6, %r0, 4; add.s64 %rd6, %rd0, %rd6; st.u32 [%rd6], %r6;)");
  auto* out = kernel.allocate<std::uint32_t>(32);
  kernel.run_well(out);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane);
}

std::string message_of(KernelRun& kernel, const void* p0, const void* p1 = nullptr) {
  const auto fault = kernel.run(p0, p1);
  return fault ? fault->message : "no fault";
}

constexpr const char* kStoreEach =
    "mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd0, %rd3; st.global.u32 [%rd4], %r0;";

TEST(Faults, OutOfBoundsNamesLanesAndAllocation) {
  KernelRun kernel(kStoreEach);
  auto* out = kernel.allocate<std::uint32_t>(30);
  const std::string message = message_of(kernel, out);
  EXPECT_NE(message.find("lanes 30-31"), std::string::npos) << message;
  EXPECT_NE(message.find("120-byte allocation"), std::string::npos) << message;
  EXPECT_NE(message.find("0 bytes past the end"), std::string::npos) << message;
}

TEST(Faults, FreedNullMisalignedAndWrongSpaceAreRefused) {
  KernelRun kernel(kStoreEach);
  auto* out = kernel.allocate<std::uint32_t>(32);
  EXPECT_NE(message_of(kernel, reinterpret_cast<std::byte*>(out) + 2).find("multiple of 4"),
            std::string::npos);
  EXPECT_NE(message_of(kernel, nullptr).find("null pointer"), std::string::npos);
  EXPECT_NE(message_of(kernel, reinterpret_cast<void*>(0xfe00000000000400ull)).find("cvta"),
            std::string::npos);
  kernel.memory().free(reinterpret_cast<std::uint64_t>(out));
  EXPECT_NE(message_of(kernel, out).find("freed"), std::string::npos);
}

TEST(Faults, SharedBeyondTheLaunchIsRefused) {
  KernelRun kernel(R"(.shared .align 4 .b8 buffer[64];
    mov.u32 %r1, buffer; mul.lo.u32 %r2, %r0, 4; add.u32 %r1, %r1, %r2;
    st.shared.u32 [%r1], %r0;)");
  const std::string message = message_of(kernel, nullptr);
  EXPECT_NE(message.find("illegal shared write of 4 bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("lanes 16-31"), std::string::npos) << message;
}

TEST(Atomics, IntegersCountOverAllThreads) {
  KernelRun kernel(R"(
    red.global.add.u32 [%rd0], %r0;
    atom.global.inc.u32 %r1, [%rd0+4], 9;
    atom.global.max.s32 %r2, [%rd0+8], %r0;
    atom.global.cas.b32 %r3, [%rd0+12], %r0, 77;
    atom.global.exch.b32 %r4, [%rd0+16], %r0;
    red.global.or.b32 [%rd0+20], %r0;)");
  auto* out = kernel.allocate<std::uint32_t>(8);
  out[2] = static_cast<std::uint32_t>(-5);
  kernel.run_well(out, nullptr, nullptr, 128);
  EXPECT_EQ(out[0], 127u * 64);
  EXPECT_EQ(out[1], 128u % 10);
  EXPECT_EQ(out[2], 127u);
  EXPECT_EQ(out[3], 77u);
  EXPECT_EQ(out[4], 127u);
  EXPECT_EQ(out[5], 127u);
}

TEST(Atomics, GlobalAdditionFlushesSubnormalsAndSharedKeepsThem) {
  KernelRun kernel(R"(.shared .align 4 .b8 cell[4];
    mov.u32 %r1, 0; setp.eq.u32 %p0, %r0, 0; mov.b32 %f1, 0x00000003;
    st.shared.u32 [cell], %r1;
    @%p0 red.shared.add.f32 [cell], %f1;
    @%p0 red.global.add.f32 [%rd0], %f1;
    ld.shared.u32 %r2, [cell]; st.global.u32 [%rd0+4], %r2;)");
  auto* out = kernel.allocate<std::uint32_t>(2);
  kernel.run_well(out);
  EXPECT_EQ(out[0], 0u);
  EXPECT_EQ(out[1], 3u);
}

TEST(Atomics, PackedHalvesRoundEach) {
  KernelRun kernel(R"(mov.b32 %r1, 0x3c003c00;
    red.global.add.noftz.f16x2 [%rd0], %r1;
    mov.b32 %r2, 0x3f803f80; red.global.add.noftz.bf16x2 [%rd0+4], %r2;)");
  auto* out = kernel.allocate<std::uint32_t>(2);
  kernel.run_well(out);
  EXPECT_EQ(out[0], 0x50005000u);  // 32
  EXPECT_EQ(out[1], 0x42004200u);
}

TEST(Warp, ShufflesVotesAndMatches) {
  KernelRun kernel(R"(
    shfl.sync.bfly.b32 %r1|%p0, %r0, 5, 31, -1;
    shfl.sync.up.b32 %r2|%p1, %r0, 3, 0, -1;
    shfl.sync.idx.b32 %r3, %r0, 2, 0x181f, -1;
    shfl.sync.down.b32 %r4|%p2, %r0, 8, 31, -1;
    and.b32 %r5, %r0, 3; setp.eq.u32 %p3, %r5, 1;
    vote.sync.ballot.b32 %r6, %p3, -1;
    match.any.sync.b32 %r7, %r5, -1;
    redux.sync.add.u32 %r8, %r0, -1;
    selp.u32 %r9, 1, 0, %p1;
    mul.wide.u32 %rd3, %r0, 32; add.s64 %rd4, %rd0, %rd3;
    st.global.v4.u32 [%rd4], {%r1, %r2, %r3, %r4};
    st.global.v4.u32 [%rd4+16], {%r6, %r7, %r8, %r9};)");
  auto* out = kernel.allocate<std::uint32_t>(32 * 8);
  kernel.run_well(out);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t* row = out + 8 * lane;
    EXPECT_EQ(row[0], lane ^ 5);
    EXPECT_EQ(row[1], lane < 3 ? lane : lane - 3);
    EXPECT_EQ(row[2], (lane & 24) + 2);
    EXPECT_EQ(row[3], lane + 8 < 32 ? lane + 8 : lane);
    EXPECT_EQ(row[4], 0x22222222u);
    EXPECT_EQ(row[5], 0x11111111u << (lane % 4));
    EXPECT_EQ(row[6], 496u);
    EXPECT_EQ(row[7], lane < 3 ? 0u : 1u);
  }
}

}  // namespace
}  // namespace tilewright::sim
