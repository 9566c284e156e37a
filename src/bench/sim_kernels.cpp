#include "bench/sim_kernels.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

constexpr std::uint32_t kLoopInstructions = 3;  // add, setp, bra

/// The entry around a loop. %rd1 is the CTA's part of the data, %r1 the thread.
std::string entry(std::string_view declarations, std::string_view before, std::string_view body,
                  std::string_view after) {
  return fmt::format(R"(.version 8.7
.target sm_90a
.address_size 64
.visible .entry bench(.param .u64 data, .param .u32 iterations)
.maxntid 128
{{
  .reg .pred %p<4>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  {}
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r2, [iterations];
  mov.u32 %r1, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mul.wide.u32 %rd2, %r3, {};
  add.s64 %rd1, %rd1, %rd2;
  mul.wide.u32 %rd2, %r1, 16;
  add.s64 %rd2, %rd1, %rd2;
  mov.u32 %r0, 0;
  {}
LOOP:
  {}
  add.s32 %r0, %r0, 1;
  setp.lt.u32 %p0, %r0, %r2;
  @%p0 bra LOOP;
  {}
  ret;
}}
)",
                     declarations, kBenchBytesPerCta, before, body, after);
}

constexpr int kChains = 8;  // independent chains of a loop

/// Sums the chains' results into one and stores it.
std::string store_floats() {
  std::string out;
  for (int i = 1; i < kChains; ++i) out += fmt::format("add.f32 %f0, %f0, %f{};\n  ", i);
  return out + "st.global.f32 [%rd2], %f0;";
}

std::string start_floats() {
  std::string out = "cvt.rn.f32.u32 %f0, %r1;\n  ";
  for (int i = 1; i < kChains; ++i)
    out += fmt::format("add.f32 %f{}, %f{}, 0f3F800000;\n  ", i, i - 1);
  return out + "mov.f32 %f20, 0f3F7FFFF0;\n  mov.f32 %f21, 0f3DCCCCCD;";
}

BenchKernel float_kernel() {
  constexpr int kRounds = 8;
  std::string body;
  for (int i = 0; i < kRounds * kChains; ++i) {
    body += fmt::format("fma.rn.f32 %f{0}, %f{0}, %f20, %f21;\n  ", i % kChains);
  }
  return {"float",
          entry(".reg .f32 %f<24>;", start_floats(), body, store_floats()),
          kRounds * kChains + kLoopInstructions,
          0,
          {}};
}

BenchKernel integer_kernel() {
  constexpr int kRounds = 4;
  std::string before, body, after;
  for (int i = 0; i < kChains; ++i) before += fmt::format("add.s32 %s{}, %r1, {};\n  ", i, i);
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kChains; ++i) {
      body += fmt::format(
          "mad.lo.s32 %s{0}, %s{0}, 5, %r1;\n  shr.u32 %s{1}, %s{0}, 3;\n  "
          "xor.b32 %s{0}, %s{0}, %s{1};\n  add.s32 %s{0}, %s{0}, %r0;\n  ",
          i, kChains + i);
    }
  }
  for (int i = 1; i < kChains; ++i) after += fmt::format("xor.b32 %s0, %s0, %s{};\n  ", i);
  return {"integer",
          entry(".reg .b32 %s<16>;", before, body, after + "st.global.u32 [%rd2], %s0;"),
          4 * kRounds * kChains + kLoopInstructions,
          0,
          {}};
}

BenchKernel softmax_kernel() {
  constexpr int kRounds = 4;
  std::string body;
  for (int i = 0; i < kRounds * kChains; ++i) {
    body += fmt::format(
        "sub.f32 %f{1}, %f{0}, %f20;\n  mul.f32 %f{1}, %f{1}, %f21;\n  "
        "ex2.approx.ftz.f32 %f{1}, %f{1};\n  fma.rn.f32 %f{0}, %f{1}, %f21, %f21;\n  ",
        i % kChains, kChains + i % kChains);
  }
  return {"softmax",
          entry(".reg .f32 %f<24>;", start_floats(), body, store_floats()),
          4 * kRounds * kChains + kLoopInstructions,
          0,
          {}};
}

/// Loads and stores of `space`, 16 bytes a lane, from one half of the memory to the other.
BenchKernel copy_kernel(std::string_view space, std::string_view address) {
  constexpr int kCopies = 8;
  constexpr std::uint32_t kStride = kBenchThreads * 16;
  std::string body, before;
  for (int i = 0; i < kCopies; ++i) {
    const std::uint32_t from = static_cast<std::uint32_t>(i) * kStride;
    const std::uint32_t to = from + kCopies * kStride;
    body += fmt::format(
        "ld.{0}.v4.f32 {{%f0, %f1, %f2, %f3}}, [{1}+{2}];\n  "
        "st.{0}.v4.f32 [{1}+{3}], {{%f0, %f1, %f2, %f3}};\n  ",
        space, address, from, to);
  }
  std::string declarations = ".reg .f32 %f<4>;";
  if (space == "shared") {
    declarations += fmt::format("\n  .shared .align 16 .b8 tile[{}];", 2 * kCopies * kStride);
    before =
        "mov.u32 %r4, tile;\n  shl.b32 %r5, %r1, 4;\n  add.s32 %r4, %r4, %r5;\n  "
        "mov.f32 %f0, 0f3F800000;\n  ";
    for (int i = 0; i < kCopies; ++i) {
      before += fmt::format("st.shared.v4.f32 [%r4+{}], {{%f0, %f0, %f0, %f0}};\n  ",
                            static_cast<std::uint32_t>(i) * kStride);
    }
  }
  return {fmt::format("{} copy", space),
          entry(declarations, before, body, "st.global.f32 [%rd2], %f0;"),
          2 * kCopies + kLoopInstructions,
          0,
          {}};
}

/// Numbers near one: the low bits of each element vary, by word.
struct Operand {
  std::string_view type;
  std::uint32_t ones, mask;
  int k;
};

constexpr Operand kBf16Operand = {"bf16", 0x3f803f80, 0x807f807f, 16};
constexpr Operand kF16Operand = {"f16", 0x3c003c00, 0x83ff83ff, 16};
constexpr Operand kE4m3Operand = {"e4m3", 0x38383838, 0x87878787, 32};

/// %r{to} = numbers that depend on %r{from}.
std::string vary(const Operand& operand, int to, int from) {
  return fmt::format(
      "mul.lo.u32 %r{0}, %r{1}, 0x9E3779B1;\n  and.b32 %r{0}, %r{0}, {2:#x};\n  "
      "xor.b32 %r{0}, %r{0}, {3:#x};\n  ",
      to, from, operand.mask, operand.ones);
}

BenchKernel mma_kernel(const Operand& operand) {
  constexpr int kTiles = 8;
  std::string before = vary(operand, 4, 1), body;
  for (int i = 5; i < 10; ++i) {
    before += fmt::format("add.s32 %r3, %r1, {};\n  ", 32 * i) + vary(operand, i, 3);
  }
  std::string after;
  for (int i = 0; i < 4 * kTiles; ++i) {
    before += fmt::format("mov.f32 %f{}, 0f00000000;\n  ", i);
    if (i != 0) after += fmt::format("add.f32 %f0, %f0, %f{};\n  ", i);
  }
  for (int i = 0; i < kTiles; ++i) {
    const std::string d =
        fmt::format("{{%f{}, %f{}, %f{}, %f{}}}", 4 * i, 4 * i + 1, 4 * i + 2, 4 * i + 3);
    body += fmt::format(
        "mma.sync.aligned.m16n8k{0}.row.col.f32.{1}.{1}.f32 {2}, "
        "{{%r4, %r5, %r6, %r7}}, {{%r8, %r9}}, {2};\n  ",
        operand.k, operand.type, d);
  }
  const double flop_per_tile = 2.0 * 16 * 8 * operand.k;
  return {fmt::format("mma.sync {}", operand.type),
          entry(fmt::format(".reg .f32 %f<{}>;", 4 * kTiles), before, body,
                after + "st.global.f32 [%rd2], %f0;"),
          kTiles + kLoopInstructions,
          kTiles * flop_per_tile * (kBenchThreads / 32),
          {}};
}

/// K-major tiles with rows of 128 swizzled bytes: A 64 rows, B 256.
BenchKernel wgmma_kernel(const Operand& operand) {
  constexpr int kN = 256, kSteps = 4, kRegisters = kN / 2;
  constexpr int kTileBytes = (64 + kN) * 128;
  std::string registers, body, before, after;
  for (int i = 0; i < kRegisters; ++i) {
    registers += fmt::format("{}%f{}", i == 0 ? "" : ", ", i);
    before += fmt::format("mov.f32 %f{}, 0f00000000;\n  ", i);
    if (i % 16 == 8) after += fmt::format("add.f32 %f0, %f0, %f{};\n  ", i);
  }
  before += fmt::format(R"(mov.u32 %r4, tile;
  shl.b32 %r5, %r1, 2;
  add.s32 %r6, %r4, %r5;
  mov.u32 %r7, %r1;
FILL:
  {}st.shared.u32 [%r6], %r8;
  add.s32 %r6, %r6, 512;
  add.s32 %r7, %r7, 128;
  setp.lt.u32 %p1, %r7, {};
  @%p1 bra FILL;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %r5, %r4, 4;
  cvt.u64.u32 %rd3, %r5;
  or.b64 %rd3, %rd3, 0x4000004000010000;
  add.s64 %rd4, %rd3, 512;
  setp.eq.u32 %p2, %r0, 0;)",
                        vary(operand, 8, 7), kTileBytes / 4);
  body = "wgmma.fence.sync.aligned;\n  ";
  for (int step = 0; step < kSteps; ++step) {
    body += fmt::format(
        "wgmma.mma_async.sync.aligned.m64n{}k{}.f32.{}.{} {{{}}}, %rd3, %rd4, %p2, "
        "1, 1{};\n  ",
        kN, operand.k, operand.type, operand.type, registers, operand.k == 16 ? ", 0, 0" : "");
  }
  body += "wgmma.commit_group.sync.aligned;\n  wgmma.wait_group.sync.aligned 0;";
  const std::string declarations =
      fmt::format(".reg .f32 %f<{}>;\n  .shared .align 1024 .b8 tile[{}];", kRegisters, kTileBytes);
  return {fmt::format("wgmma {}", operand.type),
          entry(declarations, before, body, after + "st.global.f32 [%rd2], %f0;"),
          kSteps + 3 + kLoopInstructions,
          2.0 * 64 * kN * operand.k * kSteps,
          {}};
}

}  // namespace

std::vector<BenchKernel> bench_kernels() {
  std::vector<BenchKernel> kernels = {float_kernel(), integer_kernel(), softmax_kernel(),
                                      copy_kernel("shared", "%r4"), copy_kernel("global", "%rd2")};
  for (const Operand& operand : {kBf16Operand, kF16Operand, kE4m3Operand}) {
    kernels.push_back(mma_kernel(operand));
  }
  for (const Operand& operand : {kBf16Operand, kF16Operand, kE4m3Operand}) {
    kernels.push_back(wgmma_kernel(operand));
  }
  for (BenchKernel& kernel : blackwell_bench_kernels()) kernels.push_back(std::move(kernel));
  return kernels;
}

}  // namespace tilewright::cli
