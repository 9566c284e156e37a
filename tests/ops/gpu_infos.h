// GPUs as plans see them, for tests that open no device.
#pragma once

#include "device/device.h"

namespace tilewright::ops {

inline device::DeviceInfo h200() {
  device::DeviceInfo info;
  info.name = "NVIDIA H200";
  info.compute_capability = 90;
  info.num_sms = 132;
  info.registers_per_sm = 65536;
  info.l2_bytes = 60 << 20;
  info.shared_per_block_optin_bytes = 232448;
  info.shared_per_sm_bytes = 233472;
  info.shared_per_block_reserved_bytes = 1024;
  return info;
}

inline device::DeviceInfo b200() {
  device::DeviceInfo info;
  info.name = "NVIDIA B200";
  info.compute_capability = 100;
  info.num_sms = 148;
  info.registers_per_sm = 65536;
  info.shared_per_block_optin_bytes = 232448;
  info.shared_per_sm_bytes = 233472;
  info.shared_per_block_reserved_bytes = 1024;
  info.clock_khz = 1965000;
  info.memory_clock_khz = 3996000;
  info.memory_bus_bits = 8192;
  return info;
}

}  // namespace tilewright::ops
