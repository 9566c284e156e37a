#include "device/device_spec.h"

#include "tests/base/expect_error.h"
#include "tests/base/scoped_env.h"

namespace tilewright::device {
namespace {

using Kind = DeviceSpec::Kind;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(DeviceSpecTest, AcceptedTexts) {
  EXPECT_EQ(parse_device_spec("auto"), (DeviceSpec{Kind::kAuto, std::nullopt}));
  EXPECT_EQ(parse_device_spec("cuda"), (DeviceSpec{Kind::kCuda, std::nullopt}));
  EXPECT_EQ(parse_device_spec("cuda:0"), (DeviceSpec{Kind::kCuda, 0}));
  EXPECT_EQ(parse_device_spec("cuda:17"), (DeviceSpec{Kind::kCuda, 17}));
  EXPECT_EQ(parse_device_spec("sim:h200"), (DeviceSpec{Kind::kSimH200, std::nullopt}));
  EXPECT_EQ(parse_device_spec("sim:b200"), (DeviceSpec{Kind::kSimB200, std::nullopt}));
  EXPECT_EQ(parse_device_spec("sim:b300"), (DeviceSpec{Kind::kSimB300, std::nullopt}));
  EXPECT_EQ(parse_device_spec("plan:h200"), (DeviceSpec{Kind::kPlanH200, std::nullopt}));
  EXPECT_EQ(parse_device_spec("plan:b200"), (DeviceSpec{Kind::kPlanB200, std::nullopt}));
  EXPECT_EQ(parse_device_spec("plan:b300"), (DeviceSpec{Kind::kPlanB300, std::nullopt}));
}

TEST(DeviceSpecTest, TextAndBack) {
  for (const char* text : {"auto", "cuda", "cuda:0", "cuda:7", "sim:h200", "sim:b200", "sim:b300",
                           "plan:h200", "plan:b200", "plan:b300"}) {
    EXPECT_EQ(to_string(parse_device_spec(text)), text);
  }
}

TEST(DeviceSpecTest, EverythingElseIsAnErrorThatListsWhatIsAccepted) {
  for (const char* text : {"",        "gpu",      "cuda:",   "cuda:-1",  "cuda:-0",
                           "cuda:1x", "cuda:0x1", "cuda: 1", "cuda:+1",  "cuda:99999999999",
                           "Cuda",    "sim",      "sim:",    "sim:h100", "sim:h200 ",
                           "auto:0",  "cuda:0\n", "plan",    "plan:",    "plan:h100"}) {
    const std::string message =
        error_of(ErrorKind::kInvalidArgument, [&] { parse_device_spec(text, "--device"); });
    EXPECT_THAT(message, AllOf(StartsWith("--device: \""), HasSubstr("auto, cuda, cuda:N"),
                               HasSubstr("sim:h200, sim:b200 or sim:b300")))
        << text;
  }
}

TEST(DeviceSpecTest, FlagBeatsVariableBeatsAuto) {
  const ScopedEnv unset(kDeviceVariable, nullptr);
  EXPECT_EQ(resolve_device_spec(), DeviceSpec{});
  EXPECT_EQ(resolve_device_spec("sim:b200").kind, Kind::kSimB200);
  const ScopedEnv set(kDeviceVariable, "cuda:3");
  EXPECT_EQ(resolve_device_spec(), (DeviceSpec{Kind::kCuda, 3}));
  EXPECT_EQ(resolve_device_spec("auto"), DeviceSpec{});
  const ScopedEnv empty(kDeviceVariable, "");
  EXPECT_EQ(resolve_device_spec(), DeviceSpec{});
}

TEST(DeviceSpecTest, ErrorSaysWhereTheTextCameFrom) {
  const ScopedEnv set("TILEWRIGHT_DEVICE", "h200");
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { resolve_device_spec(); }),
              StartsWith("TILEWRIGHT_DEVICE: \"h200\" is no device; expected"));
  EXPECT_THAT(error_of(ErrorKind::kInvalidArgument, [] { resolve_device_spec("b200"); }),
              StartsWith("--device: \"b200\" is no device; expected"));
}

}  // namespace
}  // namespace tilewright::device
