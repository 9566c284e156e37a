// Which device a user asks for: the text of --device and of TILEWRIGHT_DEVICE.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tilewright::device {

/// A parsed device specification.
///
///     auto       the first usable GPU; without one, the simulated H200
///     cuda       the first usable GPU, and an error without one
///     cuda:N     GPU number N of the CUDA driver, counted after CUDA_VISIBLE_DEVICES
///     sim:h200   the simulator as an H200 (compute capability 9.0)
///     sim:b200   the simulator as a B200 (compute capability 10.0)
///     sim:b300   the simulator as a B300 (compute capability 10.3)
///     plan:h200  no device: the facts of an H200, for plans alone; likewise plan:b200, plan:b300
struct DeviceSpec {
  enum class Kind {
    kAuto,
    kCuda,
    kSimH200,
    kSimB200,
    kSimB300,
    kPlanH200,
    kPlanB200,
    kPlanB300,
  };
  Kind kind = Kind::kAuto;
  std::optional<int> ordinal =
      std::nullopt;  ///< of a GPU; kCuda only, nothing means the first usable one

  friend bool operator==(const DeviceSpec&, const DeviceSpec&) = default;
};

/// Errors   InvalidArgument if it is none of the above; the message starts with `source` (where the
///          text came from, e.g. "--device") and lists what is accepted
DeviceSpec parse_device_spec(std::string_view text, std::string_view source = "device");

/// The text that parses to this specification.
std::string to_string(const DeviceSpec& spec);

/// The specification in force: the flag if it is given, else the environment variable
/// TILEWRIGHT_DEVICE if it is set and not empty, else auto. Errors as parse_device_spec.
DeviceSpec resolve_device_spec(std::optional<std::string_view> flag = std::nullopt);

inline constexpr const char* kDeviceVariable = "TILEWRIGHT_DEVICE";

}  // namespace tilewright::device
