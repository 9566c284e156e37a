// tcgen05.mma as a whole: results against sums in float64, what is refused, what is counted.
#include "formats/minifloat.h"
#include "sim/event/finding.h"
#include "sim/machine.h"
#include "sim/parse/parser.h"
#include "sim/trace/trace_filter.h"
#include "sim/trace/trace_observer.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t kColumns = 64;
constexpr std::uint32_t kThreads = 128;
constexpr std::uint32_t kImageBytes = 32 << 10;

/// What the kernel is given besides the image of shared memory.
struct Words {
  std::uint64_t a = 0, b = 0;  ///< descriptors, to which the image's address is added
  std::uint64_t idesc = 0;
  std::uint64_t d = 0;      ///< of the address in Tensor Memory
  std::uint64_t count = 1;  ///< instructions; all but the first add
};

/// Thread 0 multiplies what is in shared memory; the first 64 columns of D are stored, [lane][64].
std::string kernel_text(const std::string& instruction) {
  std::string registers, stores;
  for (std::uint32_t i = 0; i < kColumns; ++i) {
    registers += (i == 0 ? "%r" : ", %r") + std::to_string(100 + i);
    stores +=
        "st.global.b32 [%rd8+" + std::to_string(4 * i) + "], %r" + std::to_string(100 + i) + ";\n";
  }
  return R"(.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 image, .param .u64 words, .param .u64 out) {
  .shared .align 1024 .b8 tile[32768];
  .shared .align 8 .b64 done;
  .shared .b32 columns;
  .reg .pred %p<8>; .reg .b32 %r<200>; .reg .b64 %rd<16>;
  ld.param.u64 %rd1, [image]; ld.param.u64 %rd2, [words]; ld.param.u64 %rd3, [out];
  mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; setp.eq.u32 %p0, %r1, 0; setp.eq.u32 %p1, %r0, 0;
  mov.u32 %r2, columns; mov.u32 %r3, done; mov.u32 %r4, tile;
  @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], 512;
  @%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
  mul.wide.u32 %rd4, %r0, 8; add.s64 %rd4, %rd1, %rd4; mad.lo.u32 %r5, %r0, 8, %r4; mov.u32 %r6, 0;
FILL:
  ld.global.b64 %rd5, [%rd4]; st.shared.b64 [%r5], %rd5;
  add.s64 %rd4, %rd4, 1024; add.u32 %r5, %r5, 1024; add.u32 %r6, %r6, 1;
  setp.lt.u32 %p2, %r6, 32;
  @%p2 bra FILL;
  fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;
  bar.sync 0;
  ld.shared.u32 %r7, [%r2];
  @!%p1 bra WAIT;
  ld.global.b64 %rd6, [%rd2]; ld.global.b64 %rd7, [%rd2+8]; ld.global.b32 %r8, [%rd2+16];
  ld.global.b32 %r9, [%rd2+24]; ld.global.b32 %r10, [%rd2+32];
  add.u32 %r9, %r9, %r7; shr.u32 %r11, %r4, 4; cvt.u64.u32 %rd9, %r11;
  add.s64 %rd6, %rd6, %rd9; add.s64 %rd7, %rd7, %rd9; setp.ne.u32 %p3, %r0, %r0;
AGAIN:
  )" + instruction +
         R"(
  setp.eq.u32 %p3, %r0, %r0; sub.u32 %r10, %r10, 1; setp.ne.u32 %p4, %r10, 0;
  @%p4 bra AGAIN;
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3], 0;
  @!%p5 bra WAIT;
  tcgen05.fence::after_thread_sync;
  shl.b32 %r12, %r1, 21; add.u32 %r12, %r12, %r7;
  tcgen05.ld.sync.aligned.32x32b.x64.b32 {)" +
         registers + R"(}, [%r12];
  tcgen05.wait::ld.sync.aligned;
  mul.wide.u32 %rd8, %r0, 256; add.s64 %rd8, %rd8, %rd3;
)" + stores +
         R"(
  tcgen05.fence::before_thread_sync;
  bar.sync 0;
  @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r7, 512;
  @%p0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
  ret;
})";
}

constexpr const char* kPlain = "tcgen05.mma.cta_group::1.kind::{} [%r9], %rd6, %rd7, %r8, %p3;";

std::string plain(const std::string& kind) {
  std::string text = kPlain;
  return text.replace(text.find("{}"), 2, kind);
}

struct MmaRun {
  explicit MmaRun(const std::string& instruction, Options options = {})
      : machine(*find_device_model("b200"), options) {
    launch.module = machine.load(parse_module(kernel_text(instruction), "k.ptx"));
    launch.kernel = "k";
    launch.block.x = kThreads;
    image = allocate<std::byte>(kImageBytes);
    words = allocate<Words>(1);
    out = allocate<std::uint32_t>(std::size_t{kThreads} * kColumns);
    launch.params.resize(24);
    const void* const pointers[] = {image, words, out};
    std::memcpy(launch.params.data(), pointers, sizeof pointers);
  }

  std::string problem() const { return launch.module->kernels().at(0).problem; }

  std::string fault() {
    const auto result = machine.launch(launch);
    return result ? result->message : "";
  }

  std::string findings() const {
    std::string text;
    for (const Finding& finding : machine.findings().take_all()) text += to_string(finding);
    return text;
  }

  template <class T>
  T* allocate(std::size_t count, bool is_defined = true) {
    const std::uint64_t address = machine.memory().allocate(count * sizeof(T), "test");
    std::memset(reinterpret_cast<void*>(address), 0, count * sizeof(T));
    if (is_defined) machine.mark_defined(address, count * sizeof(T));
    return reinterpret_cast<T*>(address);
  }

  Machine machine;
  Launch launch;
  std::byte* image = nullptr;
  Words* words = nullptr;
  std::uint32_t* out = nullptr;
};

// Rows of 32 bytes with the swizzle of 32 bytes: 8 rows are 256 bytes. B begins at 16 KiB.
constexpr std::uint64_t kRows = 16ULL << 32 | 1ULL << 46 | 6ULL << 61;
constexpr std::uint32_t kB = 16 << 10;

std::uint32_t place(std::uint32_t row, std::uint32_t byte) {
  const std::uint32_t linear = row * 32 + byte;
  return linear ^ (linear / 128 % 2 * 16);
}

struct Numbers {
  const FormatSpec* format;
  std::uint32_t idesc_type;
  const char* kind;
};

std::uint32_t shape(int m, int n) {
  return static_cast<std::uint32_t>(n / 8) << 17 | static_cast<std::uint32_t>(m / 16) << 24;
}

/// As the model has it: a number below the smallest normal one counts with that one's exponent.
double aligned_magnitude(const FormatSpec& format, double value) {
  return value == 0 ? 0 : std::max(std::abs(value), std::ldexp(1.0, format.min_exponent()));
}

// One instruction truncates each of its k products and the accumulator to a multiple of 2^-25 of
// the largest binade among them, and the sum to 24 bits. A product of significands is below 4: its
// binade is at most the one of its magnitude. So an instruction adds at most
// (k + 1) * 2^-25 * largest + 2^-23 * |sum| to the error.
TEST(Tcgen05Mma, IsCloseToSumsInFloat64) {
  const Numbers cases[] = {{&kFp16, 0, "f16"},
                           {&kBf16, 1, "f16"},
                           {&kE4m3, 0, "f8f6f4"},
                           {&kE5m2, 1, "f8f6f4"},
                           {&kTf32, 2, "tf32"}};
  std::mt19937 rng(9);
  std::normal_distribution<double> normal;
  for (const Numbers& c : cases) {
    MmaRun run(plain(c.kind));
    ASSERT_EQ(run.problem(), "");
    const int bytes = c.format->bits() > 16 ? 4 : c.format->bits() / 8;
    const int k = 32 / bytes;
    std::vector<std::vector<double>> a(128), b(kColumns);
    const auto fill = [&](std::vector<std::vector<double>>& rows, std::uint32_t first) {
      for (std::uint32_t row = 0; row < rows.size(); ++row) {
        for (int i = 0; i < k; ++i) {
          std::uint32_t code = encode(*c.format, normal(rng));
          rows[row].push_back(decode(*c.format, code));
          if (bytes == 4) code <<= 13;
          std::memcpy(run.image + first + place(row, static_cast<std::uint32_t>(i * bytes)), &code,
                      static_cast<std::size_t>(bytes));
        }
      }
    };
    fill(a, 0);
    fill(b, kB);
    constexpr int kCount = 3;
    *run.words = {kRows, kRows + kB / 16,
                  shape(128, 64) | 1 << 4 | c.idesc_type << 7 | c.idesc_type << 10, 0, kCount};
    ASSERT_EQ(run.fault(), "");
    for (std::size_t row = 0; row < 128; ++row) {
      for (std::size_t column = 0; column < kColumns; ++column) {
        double sum = 0, largest = 0;
        for (std::size_t i = 0; i < static_cast<std::size_t>(k); ++i) {
          const double x = a[row][i], y = b[column][i];
          sum += x * y;
          largest =
              std::max(largest, aligned_magnitude(*c.format, x) * aligned_magnitude(*c.format, y));
        }
        largest = std::max(largest, kCount * std::abs(sum));
        const double bound =
            kCount * ((k + 1) * std::ldexp(largest, -25) + std::ldexp(kCount * std::abs(sum), -23));
        const double d = decode(kFp32, run.out[row * kColumns + column]);
        ASSERT_NEAR(d, kCount * sum, bound) << c.format->name << " " << row << ", " << column;
      }
    }
  }
}

TEST(Tcgen05Mma, RefusesDescriptors) {
  MmaRun run(plain("f16"));
  ASSERT_EQ(run.problem(), "");
  const std::uint64_t idesc = shape(128, 64) | 1 << 4;
  const auto fault_of = [&run](const Words& words) {
    *run.words = words;
    return run.fault();
  };
  EXPECT_EQ(fault_of({kRows, kRows + kB / 16, idesc}), "");
  const std::string n = fault_of({kRows, kRows, shape(128, 0) | 1 << 4});
  EXPECT_THAT(n, HasSubstr("tcgen05.mma by lane 0: instruction descriptor 0x8000010: m128n0k16"));
  EXPECT_THAT(n, HasSubstr("N (bits 22..17, times 8) is 0; expected a multiple of 8 up to 256"));
  EXPECT_THAT(fault_of({kRows & ~(1ULL << 46), kRows, idesc}),
              HasSubstr("bits 48..46 are 0; they must be 1"));
  EXPECT_THAT(fault_of({kRows, kRows | 1ULL << 61, idesc}), HasSubstr("descriptor of B = "));
  EXPECT_THAT(fault_of({kRows, kRows + 0x3000, idesc}), HasSubstr("it reaches shared address"));
  EXPECT_THAT(fault_of({kRows, kRows, idesc, 480}), HasSubstr("Tensor Memory ends at 512"));
  EXPECT_THAT(fault_of({kRows, kRows, idesc, 16 << 16}), HasSubstr("D begins in lane 16"));
  EXPECT_THAT(fault_of({kRows, (kRows & ~(7ULL << 61)) | 1ULL << 61, idesc | 1 << 16}),
              HasSubstr("atoms of 32 bytes is for MN-major tf32 only"));
  MmaRun tf32(plain("tf32"));
  *tf32.words = {kRows, kRows, idesc | 2 << 7 | 2 << 10 | 1 << 15};
  EXPECT_THAT(tf32.fault(), HasSubstr("MN-major tf32 needs the swizzle of 128 bytes"));
}

TEST(Tcgen05Mma, BitsOfLaterDevicesAreStrict) {
  for (const char* const checks : {"all", "all,strict"}) {
    Options options;
    options.checks = parse_checks(checks);
    options.report_only = true;
    MmaRun run(plain("f16"), options);
    *run.words = {kRows | 1 << 14, kRows + kB / 16, shape(128, 64) | 1 << 4 | 1 << 6};
    EXPECT_EQ(run.fault(), "");
    const bool is_strict = options.checks.strict;
    EXPECT_EQ(run.findings().find("bit 6 = 1") != std::string::npos, is_strict) << run.findings();
    EXPECT_EQ(run.findings().find("bits 15..14 are 1") != std::string::npos, is_strict);
  }
}

TEST(Tcgen05Mma, IsCounted) {
  Options options;
  options.report_path = "memory";
  MmaRun run(plain("f16"), options);
  *run.words = {kRows, kRows + kB / 16, shape(128, 64) | 1 << 4, 0, 5};
  ASSERT_EQ(run.fault(), "");
  const auto report = nlohmann::json::parse(run.machine.take_report());
  const auto& kernel = report["kernels"].at(0);
  EXPECT_EQ(kernel["tensor_flop_by_type"]["f16"], 5 * 2.0 * 128 * 64 * 16);
}

TEST(Tcgen05Mma, BreakpointsShowDescriptors) {
  MmaRun run(plain("f16"));
  *run.words = {kRows, kRows + kB / 16, shape(128, 64) | 1 << 4};
  std::string text;
  TraceObserver observer({{}, {parse_breakpoint("29:0")}},
                         [&text](std::string_view part) { text += part; });
  run.machine.set_observer(&observer);
  ASSERT_EQ(run.fault(), "");
  EXPECT_THAT(text, HasSubstr("descriptors of lane 0\n      instruction 0x8100010: m128n64k16"));
  EXPECT_THAT(text, HasSubstr("B 0xc000401000000480: start address 0x4800, leading offset 0x0"));
}

// Row 5 of A was never written: row 5 of D is undefined, and no other.
TEST(Tcgen05Mma, UndefinedOperandsMakeUndefinedRows) {
  Options options;
  options.report_only = true;
  MmaRun run(plain("f16"), options);
  std::byte* const image = run.allocate<std::byte>(kImageBytes, false);
  run.machine.mark_defined(reinterpret_cast<std::uint64_t>(image), 5 * 32);
  run.machine.mark_defined(reinterpret_cast<std::uint64_t>(image) + 6 * 32, kImageBytes - 6 * 32);
  std::memcpy(run.launch.params.data(), &image, sizeof image);
  *run.words = {kRows, kRows + kB / 16, shape(128, 64) | 1 << 4};
  EXPECT_EQ(run.fault(), "");
  const std::string findings = run.findings();
  EXPECT_THAT(findings, HasSubstr("an undefined value is stored to global memory [init]"));
  EXPECT_THAT(findings, HasSubstr("CTA (0,0,0) warp 0 lane 5\n"));
  EXPECT_EQ(findings.find("warp 1"), std::string::npos) << findings;
}

struct Refused {
  const char *instruction, *reason;
};

TEST(Tcgen05Mma, RefusesTexts) {
  const Refused cases[] = {
      {"tcgen05.mma.sp.cta_group::1.kind::f16 [%r9], %rd6, %rd7, [%r1], %r8, %p3;", "sparse"},
      {"tcgen05.mma.cta_group::1.kind::f17 [%r9], %rd6, %rd7, %r8, %p3;", "expected .kind::f16"},
      {"tcgen05.mma.cta_group::1.kind::i8 [%r9], %rd6, %rd7, %r8, %p3, 1;", "scale-input-d is for"},
      {"tcgen05.mma.cta_group::1.kind::f16 [%r9], %rd6, %rd7, %r8, %p3, 16;", "expected 0 to 15"},
      {"tcgen05.mma.cta_group::1.kind::mxf4 [%r9], %rd6, %rd7, %r8, %p3;",
       ".block_scale is missing"},
      {"tcgen05.mma.cta_group::1.kind::f16.block_scale [%r9], %rd6, %rd7, %r8, [%r1], [%r1], %p3;",
       ".block_scale cannot stand"},
      {"tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale [%r9], %rd6, %rd7, %r8, [%r1], [%r1], "
       "%p3;",
       ".kind::mxf4nvf4 has .scale_vec::2X"},
      {"tcgen05.mma.cta_group::1.kind::mxf4.block_scale.block16 [%r9], %rd6, %rd7, %r8, [%r1], "
       "[%r1], %p3;",
       ".kind::mxf4 has .scale_vec::2X or .block32"},
      {"tcgen05.mma.ws.cta_group::2.kind::f16 [%r9], %rd6, %rd7, %r8, %p3;", ".ws has"},
      {"tcgen05.mma.ws.cta_group::1.kind::mxf4.block_scale [%r9], %rd6, %rd7, %r8, [%r1], [%r1], "
       "%p3;",
       "block scales are not for .ws"},
      {"tcgen05.mma.cta_group::1.kind::f16.ashift [%r9], %rd6, %rd7, %r8, %p3;",
       ".ashift needs A in Tensor Memory"},
      {"tcgen05.mma.cta_group::1.kind::f16.ashift.collector::a::use [%r9], [%r1], %rd7, %r8, %p3;",
       ".ashift cannot stand with .collector::a::use"},
      {"tcgen05.mma.cta_group::1.kind::f16.collector::b0::use [%r9], %rd6, %rd7, %r8, %p3;",
       "unknown modifier .collector::b0::use"},
      {"tcgen05.mma.cta_group::1.kind::f16 [%r9], %rd6, %rd7, %r8, {%r1, %r1}, %p3;",
       "expected 4 words of lanes, found 2"},
  };
  for (const Refused& c : cases) {
    EXPECT_THAT(MmaRun(c.instruction).problem(), HasSubstr(c.reason)) << c.instruction;
  }
}

}  // namespace
}  // namespace tilewright::sim
