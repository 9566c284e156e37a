// ldmatrix, stmatrix, mma.sync, wgmma against plain sums.
#include "tests/sim/insn/kernel_run.h"

#include <string>

namespace tilewright::sim {
namespace {

/// The fp32 value of a bf16 of a small integer, and back.
std::uint16_t to_bf16(int value) {
  const float wide = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &wide, 4);
  return static_cast<std::uint16_t>(bits >> 16);
}

int small_value(int row, int column, int seed) {
  return (row * 7 + column * 3 + seed) % 9 - 4;
}

TEST(MatrixCopy, TransposesInSharedMemory) {
  KernelRun kernel(R"(.shared .align 16 .b8 tile[128]; .shared .align 16 .b8 result[128];
    mul.wide.u32 %rd3, %r0, 4; add.s64 %rd4, %rd0, %rd3; add.s64 %rd5, %rd1, %rd3;
    ld.global.u32 %r1, [%rd4];
    mov.u32 %r2, tile; mul.lo.u32 %r3, %r0, 4; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r1;
    and.b32 %r5, %r0, 7; mul.lo.u32 %r5, %r5, 16; add.u32 %r6, %r2, %r5;
    ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r7}, [%r6];
    mov.u32 %r8, result; add.u32 %r9, %r8, %r5;
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r9], {%r7};
    movmatrix.sync.aligned.m8n8.trans.b16 %r12, %r7;
    add.u32 %r10, %r8, %r3; ld.shared.u32 %r11, [%r10];
    st.global.u32 [%rd5], %r11; st.global.u32 [%rd5+128], %r12;)");
  auto* in = kernel.allocate<std::uint16_t>(64);
  auto* out = kernel.allocate<std::uint16_t>(128);
  for (int i = 0; i < 64; ++i) in[i] = static_cast<std::uint16_t>(i * 257);
  kernel.run_well(in, out);
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      EXPECT_EQ(out[8 * i + j], in[8 * j + i]);
      EXPECT_EQ(out[64 + 8 * i + j], in[8 * i + j]);
    }
  }
}

TEST(MmaSync, Bf16TileEqualsTheSum) {
  KernelRun kernel(R"(
    shr.u32 %r1, %r0, 2; and.b32 %r2, %r0, 3; mul.lo.u32 %r3, %r1, 32; mul.lo.u32 %r4, %r2, 4;
    add.u32 %r3, %r3, %r4; cvt.u64.u32 %rd3, %r3; add.s64 %rd4, %rd0, %rd3;
    add.s64 %rd5, %rd1, %rd3;
    ld.global.u32 %r10, [%rd4]; ld.global.u32 %r11, [%rd4+256];
    ld.global.u32 %r12, [%rd4+16]; ld.global.u32 %r13, [%rd4+272];
    ld.global.u32 %r14, [%rd5]; ld.global.u32 %r15, [%rd5+16];
    mov.f32 %f0, 0f3f800000; mov.f32 %f1, 0f40000000;
    mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f4,%f5,%f6,%f7}, {%r10,%r11,%r12,%r13},
      {%r14,%r15}, {%f0,%f1,%f0,%f1};
    mul.lo.u32 %r5, %r1, 32; mul.lo.u32 %r6, %r2, 8; add.u32 %r5, %r5, %r6; cvt.u64.u32 %rd6, %r5;
    add.s64 %rd6, %rd2, %rd6;
    st.global.v2.f32 [%rd6], {%f4,%f5}; st.global.v2.f32 [%rd6+256], {%f6,%f7};)");
  auto* a = kernel.allocate<std::uint16_t>(256);
  auto* b = kernel.allocate<std::uint16_t>(128);
  auto* d = kernel.allocate<float>(128);
  for (int i = 0; i < 256; ++i) a[i] = to_bf16(small_value(i / 16, i % 16, 1));
  for (int i = 0; i < 128; ++i) b[i] = to_bf16(small_value(i / 16, i % 16, 5));
  kernel.run_well(a, b, d);
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < 8; ++n) {
      double sum = n % 2 == 0 ? 1 : 2;
      for (int k = 0; k < 16; ++k) sum += small_value(m, k, 1) * small_value(n, k, 5);
      EXPECT_EQ(d[8 * m + n], sum) << m << " " << n;
    }
  }
}

std::string list(const char* prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + (prefix + std::to_string(i));
  return text + "}";
}

/// 128-byte swizzle on tiles of 64 bf16 columns, written by the threads themselves.
class Wgmma : public testing::TestWithParam<AsyncTiming> {};

std::string wgmma_kernel(bool is_a_in_registers) {
  // a [64][64] and b [64][64] in global memory; smem = a swizzled, then b swizzled; k = 64.
  std::string text = R"(.shared .align 1024 .b8 smem[16384];
    mov.u32 %r200, smem; mov.u32 %r201, 0;
    COPY: mad.lo.u32 %r202, %r201, 2048, 0; mad.lo.u32 %r203, %r0, 16, %r202;
    cvt.u64.u32 %rd3, %r203; and.b64 %rd5, %rd3, 8191; setp.lt.u32 %p0, %r203, 8192;
    selp.b64 %rd4, %rd0, %rd1, %p0; add.s64 %rd4, %rd4, %rd5;
    ld.global.v4.u32 {%r210,%r211,%r212,%r213}, [%rd4];
    shr.u32 %r204, %r203, 3; and.b32 %r204, %r204, 112; xor.b32 %r204, %r203, %r204;
    add.u32 %r204, %r204, %r200; st.shared.v4.u32 [%r204], {%r210,%r211,%r212,%r213};
    add.u32 %r201, %r201, 1; setp.lt.u32 %p1, %r201, 8; @%p1 bra COPY;
    fence.proxy.async.shared::cta; bar.sync 0;
    shr.u32 %r205, %r200, 4; cvt.u64.u32 %rd6, %r205; and.b64 %rd6, %rd6, 16383;
    or.b64 %rd6, %rd6, 0x4000004000010000; add.s64 %rd7, %rd6, 512;
  )";
  if (is_a_in_registers) {
    text += R"(
    shr.u32 %r220, %r0, 5; mul.lo.u32 %r220, %r220, 16; shr.u32 %r221, %r0, 2;
    and.b32 %r221, %r221, 7;
    add.u32 %r220, %r220, %r221; and.b32 %r222, %r0, 3; mul.lo.u32 %r223, %r220, 128;
    mad.lo.u32 %r223, %r222, 4, %r223; cvt.u64.u32 %rd8, %r223; add.s64 %rd8, %rd0, %rd8;)";
  }
  text += "wgmma.fence.sync.aligned;\n";
  for (int k = 0; k < 4; ++k) {
    std::string a = "%rd6";
    if (is_a_in_registers) {
      const std::string at = std::to_string(32 * k);
      for (int r = 0; r < 4; ++r) {
        text += "ld.global.u32 %r" + std::to_string(230 + 4 * k + r) + ", [%rd8+" +
                std::to_string(32 * k + 16 * (r / 2) + 1024 * (r % 2)) + "];\n";
      }
      a = "{";
      for (int r = 0; r < 4; ++r) a += (r ? ", %r" : "%r") + std::to_string(230 + 4 * k + r);
      a += "}";
    }
    text += "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " + list("%f", 32) + ", " + a +
            ", %rd7, " + (k == 0 ? "0" : "1") + ", 1, 1, " +
            (is_a_in_registers ? "0;\n" : "0, 0;\n") +
            "add.s64 %rd6, %rd6, 2; add.s64 %rd7, %rd7, 2;\n";
  }
  text += R"(wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %rd9, %r0, 128; add.s64 %rd9, %rd2, %rd9;)";
  for (int v = 0; v < 32; ++v) {
    text += "st.global.f32 [%rd9+" + std::to_string(4 * v) + "], %f" + std::to_string(v) + ";\n";
  }
  return text;
}

void expect_product(bool is_a_in_registers, AsyncTiming timing) {
  Options options;
  options.async_timing = timing;
  KernelRun kernel(wgmma_kernel(is_a_in_registers), options);
  auto* a = kernel.allocate<std::uint16_t>(4096);
  auto* b = kernel.allocate<std::uint16_t>(4096);
  auto* d = kernel.allocate<float>(4096);
  for (int i = 0; i < 4096; ++i) {
    a[i] = to_bf16(small_value(i / 64, i % 64, 2));
    b[i] = to_bf16(small_value(i / 64, i % 64, 8));
  }
  kernel.run_well(a, b, d, 128);
  for (int thread = 0; thread < 128; ++thread) {
    for (int v = 0; v < 32; ++v) {
      const int m = 16 * (thread / 32) + thread % 32 / 4 + 8 * (v / 2 % 2);
      const int n = 8 * (v / 4) + 2 * (thread % 4) + v % 2;
      double sum = 0;
      for (int k = 0; k < 64; ++k) sum += small_value(m, k, 2) * small_value(n, k, 8);
      ASSERT_EQ(d[32 * thread + v], sum) << m << " " << n;
    }
  }
}

TEST_P(Wgmma, SharedOperandsWithSwizzle) {
  expect_product(false, GetParam());
}
TEST_P(Wgmma, AInRegisters) {
  expect_product(true, GetParam());
}
INSTANTIATE_TEST_SUITE_P(Timing, Wgmma,
                         testing::Values(AsyncTiming::kEager, AsyncTiming::kLate,
                                         AsyncTiming::kRandom));

/// The program reads an accumulator before it waits: what it sees depends on the moment.
TEST(RandomTiming, WgmmaTakesEffectAnywhereBetweenIssueAndWait) {
  std::string text = wgmma_kernel(false);
  const std::string wait = "wgmma.wait_group.sync.aligned 0;";
  std::string early = "mov.f32 %f100, %f0; mov.u32 %r300, 0;\n";
  early += "SPIN: add.u32 %r300, %r300, 1; setp.lt.u32 %p3, %r300, 10; @%p3 bra SPIN;\n";
  early += "mov.f32 %f101, %f0;\n" + wait + " mov.f32 %f1, %f100; mov.f32 %f2, %f101;";
  text.replace(text.find(wait), wait.size(), early);
  text.insert(0, "mov.f32 %f0, 0fC0000000;\n");
  int num_early = 0, num_between = 0, num_late = 0;
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    Options options;
    options.checks = parse_checks("none");
    options.async_timing = AsyncTiming::kRandom;
    options.seed = seed;
    KernelRun kernel(text, options);
    auto* a = kernel.allocate<std::uint16_t>(4096);
    auto* b = kernel.allocate<std::uint16_t>(4096);
    auto* d = kernel.allocate<float>(4096);
    std::fill(a, a + 4096, to_bf16(1));
    std::fill(b, b + 4096, to_bf16(1));
    kernel.run_well(a, b, d, 128);
    for (int thread = 0; thread < 128; thread += 32) {
      EXPECT_EQ(d[32 * thread], 64);
      EXPECT_LE(d[32 * thread + 1], d[32 * thread + 2]);  // one wgmma after the other
      num_early += d[32 * thread + 1] == 64;
      num_late += d[32 * thread + 2] == -2;
      num_between += d[32 * thread + 2] > 0 && d[32 * thread + 2] < 64;
    }
  }
  EXPECT_GT(num_early, 0);
  EXPECT_GT(num_late, 0);
  EXPECT_GT(num_between, 0);
}

TEST(WgmmaDescriptor, OutOfBoundsIsNamedWithItsFields) {
  KernelRun kernel(R"(mov.u64 %rd6, 0x4000004000013fff;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3},
      %rd6, %rd6, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;)");
  const auto fault = kernel.run(nullptr, nullptr, nullptr, 128);
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->kind, FaultKind::kIllegalAddress);
  EXPECT_NE(fault->message.find("start address 0x3fff0"), std::string::npos) << fault->message;
  EXPECT_NE(fault->message.find("stride offset 1024 bytes"), std::string::npos) << fault->message;
}

}  // namespace
}  // namespace tilewright::sim
