// What the text tests of control flow (tests/ptx/branches.ptx) cannot hold.
#include "tests/sim/insn/kernel_run.h"

namespace tilewright::sim {
namespace {

TEST(Control, BreakpointsGoOn) {
  KernelRun run("brkpt; st.global.u32 [%rd0], 7;");
  auto* out = run.allocate<std::uint32_t>(1);
  run.run_well(out);
  EXPECT_EQ(*out, 7u);
}

}  // namespace
}  // namespace tilewright::sim
