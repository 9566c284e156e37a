#include "device/plan_device.h"

namespace tilewright::device {

namespace {

// What the three have in common.
DeviceInfo info_of(const char* name, int compute_capability, int num_sms,
                   std::size_t memory_bytes) {
  return {.name = name,
          .uuid = {},
          .compute_capability = compute_capability,
          .num_sms = num_sms,
          .memory_bytes = memory_bytes,
          .shared_per_sm_bytes = 233472,
          .shared_per_block_bytes = 48 << 10,
          .shared_per_block_optin_bytes = 232448,
          .shared_per_block_reserved_bytes = 1024,
          .registers_per_sm = 65536,
          .threads_per_sm = 2048,
          .has_clusters = true,
          .has_tensor_maps = true};
}

// As driver 580 reports an H200 SXM.
DeviceInfo h200() {
  DeviceInfo info = info_of("NVIDIA H200", 90, 132, 150109880320);
  info.l2_bytes = 62914560;
  info.clock_khz = 1980000;
  info.memory_clock_khz = 3201000;
  info.memory_bus_bits = 6016;
  return info;
}

// From NVIDIA's data sheet.
DeviceInfo b200() {
  DeviceInfo info = info_of("NVIDIA B200", 100, 148, std::size_t{180} << 30);
  info.l2_bytes = 126 << 20;
  info.clock_khz = 1965000;
  info.memory_clock_khz = 3996000;
  info.memory_bus_bits = 8192;
  return info;
}

// As public records of a B300 SXM6 have it.
DeviceInfo b300() {
  DeviceInfo info = info_of("NVIDIA B300", 103, 148, std::size_t{275040} << 20);
  info.l2_bytes = 132644864;
  info.clock_khz = 2032000;
  info.memory_clock_khz = 3996000;
  info.memory_bus_bits = 7680;
  return info;
}

}  // namespace

const DeviceInfo& planned_device_info(DeviceSpec::Kind kind) {
  static const DeviceInfo kH200 = h200(), kB200 = b200(), kB300 = b300();
  return kind == DeviceSpec::Kind::kPlanH200   ? kH200
         : kind == DeviceSpec::Kind::kPlanB200 ? kB200
                                               : kB300;
}

}  // namespace tilewright::device
