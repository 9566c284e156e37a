#include "device/device.h"

#include <array>
#include <utility>

namespace tilewright::device {

using abi::CUdevice;
using abi::CUdevice_attribute;
using abi::CUresult;

namespace {

CUdevice handle_of(const Driver& driver, int ordinal) {
  CUdevice handle = 0;
  driver.check(driver.cu.device_get(&handle, ordinal), "cuDeviceGet", "ordinal = {}", ordinal);
  return handle;
}

int read_attribute(const Driver& driver, CUdevice handle, CUdevice_attribute attribute) {
  int value = 0;
  driver.check(driver.cu.device_get_attribute(&value, attribute, handle), "cuDeviceGetAttribute",
               "attribute = {}, GPU = {}", static_cast<int>(attribute), handle);
  return value;
}

std::string read_name(const Driver& driver, CUdevice handle) {
  std::array<char, 256> name{};
  driver.check(driver.cu.device_get_name(name.data(), static_cast<int>(name.size()) - 1, handle),
               "cuDeviceGetName", "GPU = {}", handle);
  return name.data();
}

std::string read_uuid(const Driver& driver, CUdevice handle) {
  abi::CUuuid uuid{};
  driver.check(driver.cu.device_get_uuid(&uuid, handle), "cuDeviceGetUuid", "GPU = {}", handle);
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

std::size_t read_memory_bytes(const Driver& driver, CUdevice handle) {
  std::size_t bytes = 0;
  driver.check(driver.cu.device_total_mem(&bytes, handle), "cuDeviceTotalMem", "GPU = {}", handle);
  return bytes;
}

abi::CUcontext retain(const Driver& driver, CUdevice handle) {
  abi::CUcontext context = nullptr;
  driver.check(driver.cu.device_primary_ctx_retain(&context, handle), "cuDevicePrimaryCtxRetain",
               "GPU = {}", handle);
  return context;
}

double gib(std::size_t bytes) {
  return static_cast<double>(bytes) / (1u << 30);
}

}  // namespace

DeviceInfo query_device(const Driver& driver, int ordinal) {
  const CUdevice handle = handle_of(driver, ordinal);
  const auto read = [&](CUdevice_attribute attribute) {
    return read_attribute(driver, handle, attribute);
  };
  using Attribute = CUdevice_attribute;
  return {
      .name = read_name(driver, handle),
      .uuid = read_uuid(driver, handle),
      .ordinal = ordinal,
      .compute_capability = 10 * read(Attribute::kComputeMajor) + read(Attribute::kComputeMinor),
      .num_sms = read(Attribute::kNumSms),
      .memory_bytes = read_memory_bytes(driver, handle),
      .l2_bytes = read(Attribute::kL2Bytes),
      .shared_per_sm_bytes = read(Attribute::kSharedPerSm),
      .shared_per_block_bytes = read(Attribute::kMaxSharedPerBlock),
      .shared_per_block_optin_bytes = read(Attribute::kMaxSharedPerBlockOptin),
      .shared_per_block_reserved_bytes = read(Attribute::kReservedSharedPerBlock),
      .registers_per_sm = read(Attribute::kRegistersPerSm),
      .threads_per_sm = read(Attribute::kMaxThreadsPerSm),
      .clock_khz = read(Attribute::kClockRateKhz),
      .memory_clock_khz = read(Attribute::kMemoryClockRateKhz),
      .memory_bus_bits = read(Attribute::kMemoryBusWidthBits),
      .has_clusters = read(Attribute::kClusterLaunch) != 0,
      .has_tensor_maps = read(Attribute::kTensorMapAccess) != 0,
  };
}

struct Device::Retained {
  Retained(const Driver& driver_, int ordinal, std::string spec_, std::string why_)
      : driver(&driver_),
        info(query_device(driver_, ordinal)),
        handle(handle_of(driver_, ordinal)),
        spec(std::move(spec_)),
        why(std::move(why_)),
        context(retain(driver_, handle)) {}  // last: nothing after it may throw
  Retained(DeviceInfo info_, std::string spec_)
      : info(std::move(info_)), spec(std::move(spec_)), why("asked for, to plan alone") {}
  ~Retained() {
    if (driver == nullptr) return;
    driver->note_release(driver->cu.device_primary_ctx_release(handle),
                         "cuDevicePrimaryCtxRelease");
  }
  Retained(const Retained&) = delete;
  Retained& operator=(const Retained&) = delete;

  const Driver* driver = nullptr;  // null: plans alone
  DeviceInfo info;
  CUdevice handle = 0;
  std::string spec;
  std::string why;
  abi::CUcontext context = nullptr;
};

Device::Device(const Driver& driver, int ordinal, std::string spec, std::string why)
    : retained_(
          std::make_shared<const Retained>(driver, ordinal, std::move(spec), std::move(why))) {}

Device::Device(DeviceInfo info, std::string spec)
    : retained_(std::make_shared<const Retained>(std::move(info), std::move(spec))) {}

bool Device::has_driver() const noexcept {
  return retained_->driver != nullptr;
}
const Driver& Device::driver() const {
  require(has_driver(), ErrorKind::kUnsupported,
          "device {} plans and does nothing else: it has no memory and runs no kernels. Open auto, "
          "cuda, or sim:h200 to run.",
          spec());
  return *retained_->driver;
}
abi::CUcontext Device::context() const noexcept {
  return retained_->context;
}
const DeviceInfo& Device::info() const noexcept {
  return retained_->info;
}
const std::string& Device::spec() const noexcept {
  return retained_->spec;
}
const std::string& Device::why() const noexcept {
  return retained_->why;
}

std::string Device::label() const {
  return fmt::format("{} ({})", spec(), info().name);
}

std::string Device::describe() const {
  const DeviceInfo& i = info();
  const std::string facts = fmt::format(
      "{}{}: compute capability {}.{}, {} SMs, {:.1f} GiB, L2 {:.0f} MiB", label(),
      is_simulated() ? ", simulated" : "", i.compute_capability / 10, i.compute_capability % 10,
      i.num_sms, gib(i.memory_bytes), i.l2_bytes / 1048576.0);
  if (!has_driver()) return facts + ", plans alone";
  return fmt::format("{}, {} with CUDA {}.{} at {}", facts, is_simulated() ? "simulator" : "driver",
                     driver().version() / 1000, driver().version() % 1000 / 10, driver().path());
}

void Device::raise(CUresult result, const char* function, const std::string& details) const {
  driver().raise(result, function,
                 fmt::format("{}{}device = {}", details, details.empty() ? "" : ", ", label()));
}

MemoryInfo Device::memory() const {
  const auto current = make_current();
  MemoryInfo memory;
  check(cu().mem_get_info(&memory.free_bytes, &memory.total_bytes), "cuMemGetInfo");
  return memory;
}

int Device::attribute(CUdevice_attribute attribute) const {
  return read_attribute(driver(), retained_->handle, attribute);
}

void Device::synchronize() const {
  const auto current = make_current();
  check(cu().ctx_synchronize(), "cuCtxSynchronize");
}

}  // namespace tilewright::device
