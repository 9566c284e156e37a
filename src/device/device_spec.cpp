#include "device/device_spec.h"

#include "base/env.h"
#include "base/error.h"
#include "base/quote.h"

#include <charconv>

namespace tilewright::device {

namespace {

using Kind = DeviceSpec::Kind;

std::optional<int> parse_ordinal(std::string_view digits) {
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_all = error == std::errc() && end == digits.data() + digits.size();
  return is_all && value >= 0 && digits[0] != '-' ? std::optional(value) : std::nullopt;
}

}  // namespace

DeviceSpec parse_device_spec(std::string_view text, std::string_view source) {
  if (text == "auto") return {};
  if (text == "cuda") return {.kind = Kind::kCuda};
  if (text == "sim:h200") return {.kind = Kind::kSimH200};
  if (text == "sim:b200") return {.kind = Kind::kSimB200};
  if (text == "sim:b300") return {.kind = Kind::kSimB300};
  if (text == "plan:h200") return {.kind = Kind::kPlanH200};
  if (text == "plan:b200") return {.kind = Kind::kPlanB200};
  if (text == "plan:b300") return {.kind = Kind::kPlanB300};
  if (text.starts_with("cuda:")) {
    const std::optional<int> ordinal = parse_ordinal(text.substr(5));
    if (ordinal) return {.kind = Kind::kCuda, .ordinal = ordinal};
  }
  fail(ErrorKind::kInvalidArgument,
       "{}: {} is no device; expected auto, cuda, cuda:N (N = 0, 1, ...), sim:h200, sim:b200 or "
       "sim:b300; to plan alone plan:h200, plan:b200 or plan:b300",
       source, quote(text));
}

std::string to_string(const DeviceSpec& spec) {
  switch (spec.kind) {
    case Kind::kAuto:
      return "auto";
    case Kind::kCuda:
      return spec.ordinal ? fmt::format("cuda:{}", *spec.ordinal) : "cuda";
    case Kind::kSimH200:
      return "sim:h200";
    case Kind::kSimB200:
      return "sim:b200";
    case Kind::kSimB300:
      return "sim:b300";
    case Kind::kPlanH200:
      return "plan:h200";
    case Kind::kPlanB200:
      return "plan:b200";
    case Kind::kPlanB300:
      return "plan:b300";
  }
  return "auto";
}

DeviceSpec resolve_device_spec(std::optional<std::string_view> flag) {
  if (flag) return parse_device_spec(*flag, "--device");
  const std::string variable = env_text(kDeviceVariable);
  if (variable.empty()) return {};
  return parse_device_spec(variable, kDeviceVariable);
}

}  // namespace tilewright::device
