// The cases of `bench sim` that need a B200: tcgen05.mma, 128 x 256, operands in shared memory.
#include "bench/sim_kernels.h"

#include <string_view>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

constexpr int kMmaM = 128, kMmaN = 256, kMmaSteps = 4;
constexpr int kMmaTileBytes = (kMmaM + kMmaN) * 128;  // rows of 128 swizzled bytes: 4 steps of 32

/// What to multiply: numbers near one, whose low bits vary, by word.
struct Case {
  std::string_view name, kind, scales;
  int k;
  std::uint32_t ones, mask;
  std::uint32_t idesc;  ///< without the shape
  std::uint32_t scale;  ///< four of them
};

constexpr Case kCases[] = {
    {"tcgen05 bf16", "f16", "", 16, 0x3f803f80, 0x807f807f, 1 << 4 | 1 << 7 | 1 << 10, 0},
    {"tcgen05 e4m3", "f8f6f4", "", 32, 0x38383838, 0x87878787, 1 << 4, 0},
    {"tcgen05 mxf8", "mxf8f6f4", ".block_scale", 32, 0x38383838, 0x87878787, 1 << 23, 0x7f7f7f7f},
    {"tcgen05 nvfp4", "mxf4nvf4", ".block_scale.block16", 64, 0, 0xffffffff, 1 << 7 | 1 << 10,
     0x38383838}};

std::string multiplications(const Case& c) {
  std::string body;
  for (int step = 0; step < kMmaSteps; ++step) {
    body += fmt::format("tcgen05.mma.cta_group::1.kind::{}{} [%r9], %rd{}, %rd{}, %r10{}, %p2;\n  ",
                        c.kind, c.scales, 4 + 2 * step, 5 + 2 * step,
                        c.scales.empty() ? "" : ", [%r11], [%r11]");
  }
  return body;
}

std::string descriptors() {
  std::string text;
  for (int step = 0; step < kMmaSteps; ++step) {
    text += fmt::format("add.s64 %rd{}, %rd2, {};\n  add.s64 %rd{}, %rd3, {};\n  ", 4 + 2 * step,
                        2 * step, 5 + 2 * step, 2 * step);
  }
  return text;
}

constexpr const char* kKernel =
    R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry bench(.param .u64 data, .param .u32 iterations)
.maxntid 128
{{
  .reg .pred %p<8>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<16>;
  .shared .align 1024 .b8 tile[{tile}];
  .shared .align 8 .b64 done;
  .shared .b32 columns;
  ld.param.u32 %r2, [iterations];
  mov.u32 %r1, %tid.x;
  shr.u32 %r3, %r1, 5;
  setp.eq.u32 %p0, %r1, 0;
  setp.eq.u32 %p1, %r3, 0;
  mov.u32 %r4, tile;
  mov.u32 %r5, columns;
  mov.u32 %r6, done;
  @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r5], 512;
  @%p0 mbarrier.init.shared::cta.b64 [%r6], 1;
  mad.lo.u32 %r7, %r1, 4, %r4;
  mov.u32 %r8, %r1;
FILL:
  mul.lo.u32 %r0, %r8, 0x9E3779B1;
  and.b32 %r0, %r0, {mask:#x};
  xor.b32 %r0, %r0, {ones:#x};
  st.shared.u32 [%r7], %r0;
  add.s32 %r7, %r7, 512;
  add.s32 %r8, %r8, 128;
  setp.lt.u32 %p2, %r8, {words};
  @%p2 bra FILL;
  fence.proxy.async.shared::cta;
  fence.mbarrier_init.release.cluster;
  bar.sync 0;
  ld.shared.u32 %r9, [%r5];
  shl.b32 %r12, %r3, 21;
  add.u32 %r12, %r12, %r9;
  mov.u32 %r0, {scale:#x};
  tcgen05.st.sync.aligned.32x32b.x4.b32 [%r12+256], {{%r0, %r0, %r0, %r0}};
  tcgen05.st.sync.aligned.32x32b.x4.b32 [%r12+260], {{%r0, %r0, %r0, %r0}};
  tcgen05.wait::st.sync.aligned;
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  tcgen05.fence::after_thread_sync;
  @!%p0 bra END;
  add.u32 %r11, %r9, 256;
  mov.u32 %r10, {idesc:#x};
  shr.u32 %r4, %r4, 4;
  cvt.u64.u32 %rd2, %r4;
  or.b64 %rd2, %rd2, 0x4000404000010000;
  add.s64 %rd3, %rd2, {a_step};
  {descriptors}
  mov.u32 %r0, 0;
LOOP:
  setp.ne.u32 %p2, %r0, 0;
  {mmas}
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r6];
  and.b32 %r13, %r0, 1;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r6], %r13;
  @!%p3 bra WAIT;
  add.s32 %r0, %r0, 1;
  setp.lt.u32 %p4, %r0, %r2;
  @%p4 bra LOOP;
END:
  bar.sync 0;
  @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 512;
  @%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  ret;
}}
)";

BenchKernel kernel_of(const Case& c) {
  const std::uint32_t idesc = c.idesc | (kMmaN / 8) << 17 | (kMmaM / 16) << 24;
  std::string text = fmt::format(
      kKernel, fmt::arg("tile", kMmaTileBytes), fmt::arg("mask", c.mask), fmt::arg("ones", c.ones),
      fmt::arg("words", kMmaTileBytes / 4), fmt::arg("idesc", idesc), fmt::arg("scale", c.scale),
      fmt::arg("a_step", kMmaM * 128 / 16), fmt::arg("descriptors", descriptors()),
      fmt::arg("mmas", multiplications(c)));
  return {std::string(c.name), std::move(text), kMmaSteps + 8,
          2.0 * kMmaM * kMmaN * c.k * kMmaSteps, "b200"};
}

}  // namespace

std::vector<BenchKernel> blackwell_bench_kernels() {
  std::vector<BenchKernel> kernels;
  for (const Case& c : kCases) kernels.push_back(kernel_of(c));
  return kernels;
}

}  // namespace tilewright::cli
