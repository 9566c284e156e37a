// What the manual has and the simulator does not is refused when a module is loaded, with a reason.
#include "tests/sim/insn/kernel_run.h"

#include <gmock/gmock.h>

namespace tilewright::sim {
namespace {

struct Refused {
  const char *instruction, *reason;
};

class Refusal : public testing::TestWithParam<Refused> {};

TEST_P(Refusal, SaysWhy) {
  const KernelRun run(GetParam().instruction);
  EXPECT_THAT(run.problem(), testing::HasSubstr(GetParam().reason));
  EXPECT_THAT(run.problem(), testing::HasSubstr("k.ptx:"));
}

TEST(RefusalOnBlackwell, HasNoWgmma) {
  Machine machine(*find_device_model("b200"), {});
  const auto module =
      machine.load(parse_module(".version 9.0 .target sm_100a .address_size 64\n"
                                ".visible .entry k() { wgmma.fence.sync.aligned; ret; }",
                                "k.ptx"));
  EXPECT_THAT(module->kernels().at(0).problem, testing::HasSubstr("tcgen05.mma"));
}

/// Of a kernel with this body in a module of PTX `version`.
std::string problem_in(const std::string& version, const std::string& body) {
  Machine machine(*find_device_model("h200"), {});
  return machine
      .load(parse_module(".version " + version +
                             "\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
                             ".reg .b32 %r<4>; .reg .b64 %rd<4>; .reg .f32 %f<4>;\n" +
                             body + "\nret;\n}",
                         "k.ptx"))
      ->kernels()
      .at(0)
      .problem;
}

TEST(NewerPtx, RunsAsFarAsItsInstructionsAreKnown) {
  EXPECT_EQ(problem_in("9.4", "add.u32 %r1, %r2, %r3;"), "");
  EXPECT_EQ(problem_in("12.0", "add.u32 %r1, %r2, %r3;"), "");
}

TEST(NewerPtx, IsNamedBesideAnInstructionThatIsUnknown) {
  for (const char* body :
       {"hop.u32 %r1, %r2;", "add.hop.u32 %r1, %r2, %r3;", "add.u33 %r1, %r2, %r3;",
        "mbarrier.init.hop.shared.b64 [%r1], 1;", "cvt.rn.f9.f32 %r1, %f1;"}) {
    EXPECT_THAT(problem_in("9.4", body),
                testing::HasSubstr("; the module is PTX 9.4, and 9.0 is the newest known here"))
        << body;
    EXPECT_THAT(problem_in("9.0", body),
                testing::AllOf(testing::Not(""), testing::Not(testing::HasSubstr("newest"))))
        << body;
  }
}

TEST(NewerPtx, IsNotNamedBesideWhatIsKnown) {
  for (const char* body :
       {"suld.b.1d.v2.b32.trap {%r1, %r2}, [%rd1, {%r3}];",
        "multimem.red.relaxed.sys.global.add.u32 [%rd1], %r2;", "add.u32 %r1, %rd2, %r3;"}) {
    EXPECT_THAT(problem_in("9.4", body),
                testing::AllOf(testing::Not(""), testing::Not(testing::HasSubstr("newest"))))
        << body;
  }
}

TEST(RefusalOnBlackwell, HasNoSparseProducts) {
  Machine machine(*find_device_model("b200"), {});
  const auto module = machine.load(parse_module(
      ".version 9.0 .target sm_100a .address_size 64\n.visible .entry k() { .reg .b32 %r<4>; .reg "
      ".b64 %rd<4>; .reg .pred %p; tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r2], "
      "%r3, %p; ret; }",
      "k.ptx"));
  EXPECT_THAT(module->kernels().at(0).problem,
              testing::HasSubstr("sparse tcgen05.mma is not simulated"));
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, Refusal,
    testing::Values(
        Refused{"suld.b.1d.v2.b32.trap {%r1, %r2}, [%rd1, {%r3}];", "textures and surfaces"},
        Refused{"multimem.red.relaxed.sys.global.add.u32 [%rd1], %r2;", "several devices"},
        Refused{"multimem.ld_reduce.relaxed.sys.global.add.u32 %r1, [%rd1];", "several devices"},
        Refused{"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];",
                "textures and surfaces are not simulated; read global memory"},
        Refused{"sust.b.2d.b32.trap [%rd1, {%r1, %r2}], %r3;", "textures and surfaces"},
        Refused{"multimem.st.relaxed.sys.global.u32 [%rd1], %r2;", "several devices"},
        Refused{"multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 16;",
                "several devices"},
        Refused{"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, "
                "%f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%f1, %f2, %f3, "
                "%f4}, %r5, 0;",
                "sparse mma"},
        Refused{"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%f1, %f2, %f3, %f4}, "
                "%rd1, %rd2, %r1, 0, 1, 1, 1, 0, 0;",
                "sparse wgmma is not simulated"},
        Refused{"wmma.store.d.sync.aligned.row.m16n16k16.shared.s32 [%rd1], {%r1, %r2};",
                "expected 8 registers, found 2"},
        Refused{"wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {%r1, %r2}, [%rd1];",
                "wmma has no such shape for this type"},
        Refused{"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, "
                "%r2}, {%r3, %r4}, {%f1, %f2, %f3, %f4}, %r5, 0;",
                "sparse mma"},
        Refused{"vadd4.u32.u32.u32 %r1, %r2, %r3, %r4;", "video instructions"},
        Refused{"tcgen05.wait::ld.sync.aligned;", "needs .target sm_100a"},
        Refused{"stacksave.u64 %rd3;", "dynamic local memory"},
        Refused{"cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w.mbarrier::complete_tx::"
                "bytes [%r1], [%rd1, {%r2, %r2, %r2, %r2}], [%r3], {%h1, %h2};",
                "im2col::w needs .target sm_100a"},
        Refused{"cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::"
                "bytes [%r1], [%rd1, {%r2, %r2, %r2, %r2, %r2}], [%r3];",
                "gather4 needs sm_100 or newer"}));

}  // namespace
}  // namespace tilewright::sim
