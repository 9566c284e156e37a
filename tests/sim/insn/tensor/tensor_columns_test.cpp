// CTAs that are resident on one SM share the columns of its Tensor Memory: which CTA waits for
// which, and the message of a deadlock.
#include "sim/machine.h"
#include "sim/parse/parser.h"

#include <cstring>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::sim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kRelinquish = "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n";

std::string alloc(int columns) {
  return fmt::format(
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r2], {};\n"
      "bar.warp.sync -1; ld.shared.b32 %r3, [%r2]; bar.warp.sync -1;\n",
      columns);
}

std::string dealloc(int columns) {
  return fmt::format("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, {};\n", columns);
}

/// Two CTAs of a warp on a B200 that has so many SMs. That they look at global memory
/// together makes the simulator take them for CTAs that talk to each other, which run in turns.
struct TwoCtas {
  std::optional<Fault> run(const std::string& first, const std::string& second,
                           std::uint32_t num_sms, std::uint32_t cluster,
                           const char* checks = "default") {
    DeviceModel model = *find_device_model("b200");
    model.num_sms = num_sms;
    Options options;
    options.checks = parse_checks(checks);
    Machine machine(model, options);
    machine.set_output([](std::string_view) {}, [](std::string_view) {});
    Launch launch;
    launch.module = machine.load(parse_module(
        ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n"
        ".reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<4>; .shared .align 8 .b8 base[8];\n"
        "ld.param.u64 %d1, [out]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, base;\n"
        "ld.relaxed.gpu.global.u32 %r7, [%d1+12];\n"
        "setp.ne.u32 %p1, %r1, 0;\n@%p1 bra SECOND;\n" +
            first + "ret;\nSECOND:\n" + second + "ret;\n}\n",
        "k.ptx"));
    EXPECT_EQ(launch.module->kernels().at(0).problem, "");
    launch.kernel = "k";
    launch.grid.x = 2;
    launch.cluster.x = cluster;
    launch.block.x = 32;
    const std::uint64_t address = machine.memory().allocate(16, "out");
    std::memset(reinterpret_cast<void*>(address), 0, 16);
    machine.mark_defined(address, 16);
    launch.params.resize(8);
    std::memcpy(launch.params.data(), &address, 8);
    auto fault = machine.launch(launch);
    std::memcpy(out, reinterpret_cast<const void*>(address), 16);
    return fault;
  }
  std::string deadlock(const std::string& first, const std::string& second,
                       std::uint32_t num_sms = 1, const char* checks = "default") {
    const auto fault = run(first, second, num_sms, 2, checks);
    return fault ? fault->message : "";
  }

  std::uint32_t out[4] = {};
};

constexpr const char* kMeet = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

// The first CTA says that it has all columns, works on, and gives them back; the second, which asks
// then, goes on only after that.
TEST(TensorColumns, AllocWaitsForTheOtherCtasDealloc) {
  const std::string first = alloc(512) + kRelinquish +
                            "mov.u32 %r4, 1; st.release.gpu.global.u32 [%d1], %r4;\n"
                            "mov.u32 %r5, 0;\nWORK: add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, "
                            "5000;\n@%p2 bra WORK;\n"
                            "st.relaxed.gpu.global.u32 [%d1+4], %r5;\n" +
                            dealloc(512);
  const std::string second =
      "POLL: ld.acquire.gpu.global.u32 %r4, [%d1]; setp.eq.u32 %p2, %r4, 0;\n@%p2 bra POLL;\n" +
      alloc(512) + kRelinquish +
      "ld.relaxed.gpu.global.u32 %r5, [%d1+4]; st.relaxed.gpu.global.u32 [%d1+8], %r5;\n" +
      dealloc(512);
  TwoCtas ctas;
  const auto fault = ctas.run(first, second, 1, 1);
  ASSERT_FALSE(fault.has_value()) << fault->message;
  EXPECT_EQ(ctas.out[2], 5000u);
}

TEST(TensorColumns, ColumnsThatAnotherCtaKeepsAreADeadlock) {
  const std::string each = alloc(512) + kRelinquish + kMeet + dealloc(512);
  EXPECT_THAT(TwoCtas().deadlock(each, each),
              AllOf(HasSubstr("deadlock"), HasSubstr("waits for free columns of Tensor Memory"),
                    HasSubstr("CTA (1,0,0) asks for 512 columns of the 512 of its SM: CTA "
                              "(0,0,0) has columns 0 to 511"),
                    HasSubstr("let fewer CTAs be resident"), Not(HasSubstr("has the permit"))));
  EXPECT_EQ(TwoCtas().deadlock(each, each, 2), "");
  const std::string half = alloc(256) + kRelinquish + kMeet + dealloc(256);
  EXPECT_EQ(TwoCtas().deadlock(half, half), "");
}

TEST(TensorColumns, ThePermitIsOneCtasUntilItRelinquishes) {
  const std::string keeps = alloc(32) + kMeet + dealloc(32);
  EXPECT_EQ(TwoCtas().deadlock(keeps, keeps), "");
  EXPECT_THAT(TwoCtas().deadlock(keeps, keeps, 1, "default,strict"),
              HasSubstr("CTA (0,0,0) has the permit to allocate: it has neither ended nor executed "
                        "tcgen05.relinquish_alloc_permit"));
  // One that ends gives it back.
  const std::string ends = alloc(32) + dealloc(32);
  EXPECT_EQ(TwoCtas().deadlock(ends, ends), "");
}

TEST(TensorColumns, MoreThanThereAreCanNeverBeHad) {
  EXPECT_THAT(TwoCtas().deadlock(alloc(256) + alloc(512), kMeet),
              AllOf(HasSubstr("CTA (0,0,0) asks for 512 columns of the 512 of its SM: CTA "
                              "(0,0,0) has columns 0 to 255"),
                    HasSubstr("it waits for columns that it has itself: it can never have so "
                              "many")));
}

}  // namespace
}  // namespace tilewright::sim
