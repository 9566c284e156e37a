#include "sim/driver/abi/functions.h"
#include "sim/driver/device/device_attributes.h"
#include "sim/driver/objects/state.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>

namespace tilewright::sim::abi {

namespace {

/// Copies text into a buffer of the caller, which may be too small for all of it.
void give_text(char* out, int size_bytes, std::string_view text) {
  expect(out != nullptr && size_bytes > 0);
  const std::size_t length = std::min(text.size(), static_cast<std::size_t>(size_bytes) - 1);
  std::memcpy(out, text.data(), length);
  out[length] = '\0';
}

int read(const Device& device, CUdevice_attribute attribute) {
  return attribute_of(device, attribute).value_or(0);
}

std::string pci_id(const Device& device) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", 0, 0, device.ordinal + kPciDeviceOfFirst);
}

}  // namespace

CUresult cuInit(unsigned flags) {
  return answer([&] {
    expect(flags == 0);
    Driver::get().initialize();
  });
}

CUresult cuDriverGetVersion(int* out) {
  if (out == nullptr) return CUresult::kInvalidValue;
  *out = 13000;
  return CUresult::kSuccess;
}

CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  return call([&] {
    expect(out != nullptr);
    *out = Driver::get().device(ordinal).ordinal;
  });
}

CUresult cuDeviceGetCount(int* out) {
  return call([&] {
    expect(out != nullptr);
    *out = static_cast<int>(Driver::get().devices().size());
  });
}

CUresult cuDeviceGetName(char* out, int size_bytes, CUdevice ordinal) {
  return call([&] { give_text(out, size_bytes, Driver::get().device(ordinal).model.name); });
}

CUresult cuDeviceGetUuid_v2(CUuuid* out, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    const Device& device = Driver::get().device(ordinal);
    char text[16] = "tilewright";  // readable in hex dumps, the same in every process
    std::memcpy(text + 11, device.model.key.data(),
                std::min<std::size_t>(5, device.model.key.size()));
    std::memcpy(out->bytes, text, sizeof text);
  });
}

CUresult cuDeviceGetLuid(char* luid, unsigned* node_mask, CUdevice ordinal) {
  return call([&] {
    Driver::get().device(ordinal);
    expect(luid != nullptr && node_mask != nullptr);
    refuse(CUresult::kNotSupported);  // there are such numbers on Windows only
  });
}

CUresult cuDeviceTotalMem_v2(size_t* out, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    *out = Driver::get().device(ordinal).model.global_bytes;
  });
}

CUresult cuDeviceGetAttribute(int* out, CUdevice_attribute attribute, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    const std::optional<int> value = attribute_of(Driver::get().device(ordinal), attribute);
    expect(value.has_value());
    *out = *value;
  });
}

CUresult cuDeviceGetProperties(CUdevprop* out, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    using Attribute = CUdevice_attribute;
    const Device& device = Driver::get().device(ordinal);
    *out = {
        .max_threads_per_block = read(device, Attribute::kMaxThreadsPerBlock),
        .max_threads_dim = {read(device, Attribute::kMaxBlockDimX),
                            read(device, Attribute::kMaxBlockDimY),
                            read(device, Attribute::kMaxBlockDimZ)},
        .max_grid_size = {read(device, Attribute::kMaxGridDimX),
                          read(device, Attribute::kMaxGridDimY),
                          read(device, Attribute::kMaxGridDimZ)},
        .shared_mem_per_block = read(device, Attribute::kMaxSharedMemoryPerBlock),
        .total_constant_memory = read(device, Attribute::kTotalConstantMemory),
        .simd_width = read(device, Attribute::kWarpSize),
        .mem_pitch = read(device, Attribute::kMaxPitch),
        .regs_per_block = read(device, Attribute::kMaxRegistersPerBlock),
        .clock_rate = read(device, Attribute::kClockRate),
        .texture_align = read(device, Attribute::kTextureAlignment),
    };
  });
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  return call([&] {
    expect(major != nullptr && minor != nullptr);
    const int capability = Driver::get().device(ordinal).model.compute_capability;
    *major = capability / 10;
    *minor = capability % 10;
  });
}

CUresult cuDeviceGetPCIBusId(char* out, int size_bytes, CUdevice ordinal) {
  return call([&] { give_text(out, size_bytes, pci_id(Driver::get().device(ordinal))); });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* out, const char* id) {
  return call([&] {
    expect(out != nullptr && id != nullptr);
    unsigned domain = 0, bus = 0, number = 0, function = 0;
    const bool has_domain = std::sscanf(id, "%x:%x:%x.%x", &domain, &bus, &number, &function) == 4;
    if (!has_domain) {
      domain = 0;
      expect(std::sscanf(id, "%x:%x.%x", &bus, &number, &function) == 3);
    }
    for (const auto& device : Driver::get().devices()) {
      const auto own = static_cast<unsigned>(device->ordinal + kPciDeviceOfFirst);
      if (domain == 0 && bus == 0 && function == 0 && number == own) {
        *out = device->ordinal;
        return;
      }
    }
    refuse(CUresult::kInvalidDevice);
  });
}

CUresult cuDeviceCanAccessPeer(int* out, CUdevice ordinal, CUdevice peer) {
  return call([&] {
    expect(out != nullptr);
    Driver::get().device(ordinal);
    Driver::get().device(peer);
    *out = 0;
  });
}

CUresult cuDeviceGetP2PAttribute(int* out, CUdevice_P2PAttribute attribute, CUdevice from,
                                 CUdevice to) {
  return call([&] {
    expect(out != nullptr);
    Driver::get().device(from);
    Driver::get().device(to);
    expect(from != to, CUresult::kInvalidDevice);
    expect(attribute >= CUdevice_P2PAttribute::kPerformanceRank);
    *out = 0;
  });
}

}  // namespace tilewright::sim::abi
