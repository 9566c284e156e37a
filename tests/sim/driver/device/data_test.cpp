// What the simulator sees as data, and settings from launch to launch.
#include "tests/sim/driver/driver_fixture.h"

#include <array>
#include <nlohmann/json.hpp>

namespace tilewright::sim::abi {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// 64 threads write a word each, and read one of the other warp without a barrier. And a copy.
constexpr const char* kPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.file 1 "racy.py"
.shared .align 4 .b8 tile[256];
.visible .entry racy(.param .u64 from, .param .u64 to)
{
  .reg .b64 %from, %to, %at;
  .reg .b32 %index, %own, %other, %value;
  ld.param.u64 %from, [from];
  ld.param.u64 %to, [to];
  mov.u32 %index, %tid.x;
  mov.u32 %own, tile;
  mad.lo.u32 %own, %index, 4, %own;
  xor.b32 %other, %own, 128;
  .loc 1 7 0
  st.shared.u32 [%own], %index;
  .loc 1 8 0
  ld.shared.u32 %value, [%other];
  st.global.u32 [%to], %value;
  ret;
}
.visible .entry copy(.param .u64 from, .param .u64 to)
{
  .reg .b64 %from, %to;
  .reg .b32 %value;
  ld.param.u64 %from, [from];
  ld.param.u64 %to, [to];
  ld.global.u32 %value, [%from];
  st.global.u32 [%to], %value;
  ret;
}
)";

class DriverDataTest : public DriverTest {
 protected:
  void SetUp() override {
    DriverTest::SetUp();
    before_ = configure({{"quiet", true}, {"report_only", true}, {"check", "none"}});
    ASSERT_FALSE(before_.contains("error")) << before_;
    CUmodule module = load(kPtx);
    racy_ = function(module, "racy");
    copy_ = function(module, "copy");
    ASSERT_OK(cu.cuMemAlloc_v2(&from_, 256));
    ASSERT_OK(cu.cuMemAlloc_v2(&to_, 256));
    take_findings();
  }
  void TearDown() override {
    configure(before_);
    DriverTest::TearDown();
  }

  template <class Function>
  static Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(driver_library(), name));
  }
  static json configure(const json& settings) {
    return json::parse(find<const char*(int, const char*)>("tilewright_simulator_configure")(
        0, settings.dump().c_str()));
  }
  static json take_findings() {
    return json::parse(find<const char*(int)>("tilewright_simulator_take_findings")(0));
  }
  static std::string take_messages() {
    return find<const char*()>("tilewright_simulator_take_messages")();
  }
  static std::string take_report() {
    return find<const char*(int)>("tilewright_simulator_take_report")(0);
  }
  void launch(CUfunction kernel) {
    void* arguments[] = {&from_, &to_};
    EXPECT_OK(cu.cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  }

  json before_;
  CUfunction racy_ = nullptr, copy_ = nullptr;
  CUdeviceptr from_ = 0, to_ = 0;
};

TEST_F(DriverDataTest, FindingsHaveTheirPlacesAndThreads) {
  configure({{"check", "race"}});
  launch(racy_);
  const json findings = take_findings();
  ASSERT_EQ(findings.size(), 2U) << findings.dump(1);  // the stores of one place, too
  const json& race = findings[0];
  EXPECT_EQ(race["check"], "race");
  EXPECT_EQ(race["kernel"], "racy");
  ASSERT_EQ(race["places"].size(), 2U);
  const json& first = race["places"][0];
  EXPECT_EQ(first["source"], (json{{"file", "racy.py"}, {"line", 8}})) << race.dump(1);
  EXPECT_EQ(first["ptx"]["line"], 20);
  EXPECT_THAT(first["instruction"], HasSubstr("ld.shared.u32"));
  EXPECT_EQ(first["threads"]["cta"], (json{0, 0, 0}));
  const json& then = race["places"][1];
  EXPECT_EQ(then["source"]["line"], 7);
  EXPECT_EQ(then["threads"]["thread"], then["threads"]["warps"][0].get<int>() * 32);
  EXPECT_EQ(then["threads"]["lanes"].size(), 32U);
  EXPECT_THAT(race["text"], HasSubstr(race["what"].get<std::string>()));
  EXPECT_TRUE(take_findings().empty());
}

TEST_F(DriverDataTest, WhatWasTakenIsFoundAnew) {
  configure({{"check", "race"}});
  launch(racy_);
  const json first = take_findings();
  launch(racy_);
  EXPECT_EQ(take_findings(), first);
}

TEST_F(DriverDataTest, ChecksDifferFromLaunchToLaunch) {
  launch(racy_);
  EXPECT_TRUE(take_findings().empty());
  EXPECT_EQ(configure({{"check", "race"}})["check"], "none");
  launch(racy_);
  EXPECT_FALSE(take_findings().empty());
  EXPECT_EQ(configure({{"check", "none"}})["check"], "race");
  launch(racy_);
  EXPECT_TRUE(take_findings().empty());
}

TEST_F(DriverDataTest, InitThatBeginsLaterJudgesWhatIsAllocatedLater) {
  configure({{"check", "init"}});
  launch(copy_);  // `from` was never written, and nothing followed it
  EXPECT_TRUE(take_findings().empty());
  CUdeviceptr fresh = 0;
  ASSERT_OK(cu.cuMemAlloc_v2(&fresh, 256));
  std::swap(from_, fresh);
  launch(copy_);
  const json findings = take_findings();
  ASSERT_EQ(findings.size(), 1U) << findings.dump(1);
  EXPECT_EQ(findings[0]["check"], "init");
}

TEST_F(DriverDataTest, AFailingFindingIsDataToo) {
  configure({{"check", "race"}, {"report_only", false}});
  testing::internal::CaptureStderr();
  launch(racy_);
  EXPECT_EQ(cu.cuCtxSynchronize(), CUresult::kLaunchFailed);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_FALSE(take_findings().empty());
  EXPECT_THAT(take_messages(), HasSubstr("the launch fails"));
  EXPECT_EQ(take_messages(), "");
  EXPECT_OK(cu.cuDevicePrimaryCtxReset_v2(0));  // a fresh context works again
  EXPECT_OK(cu.cuCtxSynchronize());
}

TEST_F(DriverDataTest, FaultsAreFindings) {
  to_ = 0x40;
  launch(copy_);
  EXPECT_EQ(cu.cuCtxSynchronize(), CUresult::kIllegalAddress);
  const json findings = take_findings();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0]["check"], "mem");
  EXPECT_THAT(findings[0]["places"][0]["instruction"], HasSubstr("st.global.u32"));
}

TEST_F(DriverDataTest, ReportsAreKeptWhenAskedFor) {
  launch(racy_);
  EXPECT_EQ(take_report(), "");
  configure({{"report", true}});
  launch(racy_);
  const json report = json::parse(take_report());
  ASSERT_EQ(report["kernels"].size(), 1U);
  EXPECT_EQ(report["kernels"][0]["launches"], 1);
  configure({{"report", false}});
  launch(racy_);
  EXPECT_EQ(take_report(), "");
}

TEST_F(DriverDataTest, WrongSettingsAreNamedAndChangeNothing) {
  const json now = configure(json::object());
  for (const auto& [settings, text] :
       {std::pair<json, const char*>{{{"check", "everything"}}, "everything"},
        {{{"async", "soon"}}, "soon"},
        {{{"seed", -1}}, "/seed"},
        {{{"speed", 1}}, "/speed"},
        {{{"time_sample", -1}}, "/time_sample"},
        {{{"check", "all"}, {"max_findings", 0}}, "/max_findings"},
        {json::array(), "array"}}) {
    EXPECT_THAT(configure(settings)["error"], HasSubstr(text));
    EXPECT_EQ(configure(json::object()), now);
  }
  EXPECT_THAT(find<const char*(int, const char*)>("tilewright_simulator_configure")(7, "{}"),
              HasSubstr("there is no device 7"));
}

}  // namespace
}  // namespace tilewright::sim::abi
