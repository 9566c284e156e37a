// CTAs that can talk to each other, on one host thread and on several: the same in every bit.
#include "sim/event/observer.h"
#include "tests/sim/exec/run_ptx.h"

#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t kThreadCounts[] = {2, 5};

RunSetup setup_of(std::uint32_t num_ctas, std::uint64_t seed = 0) {
  RunSetup setup;
  setup.grid = {num_ctas, 1, 1};
  setup.block = {64, 1, 1};
  setup.options.seed = seed;
  setup.options.num_threads = 1;
  return setup;
}

/// A run on one thread, with which those on several were compared.
RunResult run_everywhere(const std::string& text, RunSetup setup) {
  setup.options.num_threads = 1;
  const RunResult alone = run_ptx(text, setup);
  for (const std::uint32_t threads : kThreadCounts) {
    setup.options.num_threads = threads;
    const RunResult together = run_ptx(text, setup);
    EXPECT_EQ(together.out, alone.out) << threads << " threads, seed " << setup.options.seed;
    EXPECT_EQ(together.fault, alone.fault) << threads << " threads";
    EXPECT_EQ(together.printed, alone.printed) << threads << " threads";
  }
  return alone;
}

/// Work of different length in each CTA, so that threads overtake each other.
const char* const kUnequalWork = R"(
    mul.lo.u32 %x, %block, 2654435761;
    shr.u32 %x, %x, 20;
  WORK:
    sub.u32 %x, %x, 1;
    setp.gt.s32 %p, %x, 0;
    @%p bra WORK;
)";

// The sum depends on the order: each result has the rounding of all before it.
TEST(TurnOrder, FloatSumsAndTickets) {
  const std::string text = kernel_with(std::string(kUnequalWork) + R"(
    .reg .f32 %f, %g;
    cvt.rn.f32.u32 %f, %i;
    mul.f32 %f, %f, 0f3DCCCCCD;
    atom.global.add.f32 %g, [%in], %f;
    atom.global.add.u32 %y, [%in + 4], 1;
    mov.b32 %z, %g;
    mad.lo.u32 %z, %y, 40503, %z;
    st.global.u32 [%mine], %z;
    ret;)");
  for (const std::uint64_t seed : {0, 1, 2}) run_everywhere(text, setup_of(150, seed));
}

TEST(TurnOrder, TheLastCtaSumsUp) {
  const std::string text = kernel_with(std::string(kUnequalWork) + R"(
    .reg .b64 %a;
    .shared .align 4 .u32 last;
    st.global.u32 [%mine], %i;
    membar.gl;
    bar.sync 0;
    setp.ne.u32 %p, %t, 0;
    @%p bra MET;
    atom.global.add.u32 %x, [%in], 1;
    st.shared.u32 [last], %x;
  MET:
    bar.sync 0;
    ld.shared.u32 %x, [last];
    mov.u32 %y, %nctaid.x;
    sub.u32 %y, %y, 1;
    setp.ne.u32 %q, %x, %y;
    @%q exit;
    @%p exit;
    membar.gl;
    mov.u32 %z, 0;
    mov.u32 %x, 0;
    mov.u64 %a, %out;
  SUM:
    ld.global.u32 %t, [%a];
    add.u32 %z, %z, %t;
    add.u64 %a, %a, 256;
    add.u32 %x, %x, 1;
    setp.le.u32 %q, %x, %y;
    @%q bra SUM;
    st.global.u32 [%out], %z;
    ret;)");
  const RunResult run = run_everywhere(text, setup_of(100));
  EXPECT_EQ(run.fault, "");
  EXPECT_EQ(run.out[0], 64u * 99 * 100 / 2);
}

TEST(TurnOrder, CtasThatWaitForEachOther) {
  const std::string text = kernel_with(R"(
    setp.ne.u32 %p, %t, 0;
    @%p bra DONE;
    sub.u32 %y, 59, %block;  // the last CTA goes first
  SPIN:
    ld.acquire.gpu.global.u32 %x, [%in];
    setp.ne.u32 %q, %x, %y;
    @%q bra SPIN;
    ld.global.u32 %z, [%in + 4];  // plain: the flag orders it
    mad.lo.u32 %z, %z, 3, %block;
    st.global.u32 [%in + 4], %z;
    st.global.u32 [%mine], %z;
    add.u32 %x, %x, 1;
    st.release.gpu.global.u32 [%in], %x;
  DONE:
    ret;)");
  for (const std::uint64_t seed : {0, 3}) {
    const RunResult run = run_everywhere(text, setup_of(60, seed));
    EXPECT_EQ(run.fault, "");
    EXPECT_EQ(run.out[59 * 64], 59u);
    EXPECT_EQ(run.out[58 * 64], 3 * 59u + 58);
  }
}

// Nothing but counting: then no CTA waits for another.
TEST(TurnOrder, Histograms) {
  const std::string text = kernel_with(R"(
    mov.u32 %x, 0;
  NEXT:
    mad.lo.u32 %y, %i, 7, %x;
    and.b32 %y, %y, 31;
    mul.wide.u32 %address, %y, 4;
    add.u64 %address, %out, %address;
    red.global.add.u32 [%address], 1;
    add.u32 %x, %x, 1;
    setp.lt.u32 %p, %x, 50;
    @%p bra NEXT;
    ret;)");
  const RunResult run = run_everywhere(text, setup_of(40));
  std::uint32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += run.out[static_cast<std::size_t>(i)] - 0xdeadbeef;
  EXPECT_EQ(sum, 40u * 64 * 50);
}

// Maxima and sums at one place are no mere counting.
TEST(TurnOrder, MixedReductions) {
  const std::string text = kernel_with(std::string(kUnequalWork) + R"(
    red.global.max.u32 [%in], %i;
    red.global.add.u32 [%in], 3;
    bar.sync 0;
    ld.volatile.global.u32 %x, [%in];
    st.global.u32 [%mine], %x;
    ret;)");
  run_everywhere(text, setup_of(90));
}

/// On which host threads the first instructions of CTAs ran.
class WhoRan final : public Observer {
 public:
  bool is_thread_safe() const override { return true; }
  void executing(Warp&, const Insn&, std::uint32_t) override {
    {
      const std::lock_guard lock(mutex_);
      if (!threads.insert(std::this_thread::get_id()).second) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // for the others to come
  }
  std::set<std::thread::id> threads;

 private:
  std::mutex mutex_;
};

TEST(TurnOrder, SeveralThreadsRun) {
  Options options;
  options.num_threads = 3;
  Machine machine(device_models()[0], options);
  WhoRan who;
  machine.set_observer(&who);
  Launch launch;
  launch.module = machine.load(parse_module(
      kernel_with(std::string(kUnequalWork) + "atom.global.add.u32 %x, [%in], 1;\nret;"),
      "test.ptx"));
  launch.kernel = "test";
  launch.grid.x = 200;
  launch.block.x = 64;
  const std::uint64_t memory = machine.memory().allocate(4096, "data");
  launch.params.resize(24);
  std::memcpy(launch.params.data(), &memory, 8);
  std::memcpy(launch.params.data() + 8, &memory, 8);
  EXPECT_FALSE(machine.launch(launch).has_value());
  EXPECT_EQ(who.threads.size(), 3u);
}

TEST(TurnOrder, DeadlocksAreFound) {
  const RunResult run = run_everywhere(kernel_with(R"(
  SPIN:
    ld.acquire.gpu.global.u32 %x, [%in];
    setp.eq.u32 %p, %x, 0;
    @%p bra SPIN;
    ret;)"),
                                       setup_of(3));
  EXPECT_EQ(run.kind, FaultKind::kDeadlock);
}

TEST(TurnOrder, TheFirstFaultCounts) {
  const std::string text = kernel_with(std::string(kUnequalWork) + R"(
    atom.global.add.u32 %x, [%in], 1;
    setp.lt.u32 %p, %block, 20;
    @%p exit;
    trap;)");
  EXPECT_THAT(run_everywhere(text, setup_of(60)).fault, HasSubstr("CTA ("));
}

}  // namespace
}  // namespace tilewright::sim
