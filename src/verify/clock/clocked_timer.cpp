#include "verify/clock/clocked_timer.h"

#include "base/error.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tilewright::cli {

namespace {

constexpr const char* kPtx =
#include "verify/clock/sm_clocks.ptx.inc"
    ;
constexpr std::uint32_t kSlots = 1024;  ///< more than any device has SMs
constexpr std::size_t kWords = std::size_t{kSlots} * 2;
constexpr unsigned kCtasPerSm = 4;  ///< so that every SM gets one

// Of the driver, by the names that it exports; all return 0 or an error.
using PushContext = int (*)(void* context);
using PopContext = int (*)(void** context);
using LoadModule = int (*)(void** module, const void* text);
using UnloadModule = int (*)(void* module);
using GetFunction = int (*)(void** function, void* module, const char* name);
using LaunchKernel = int (*)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                             unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                             void* stream, void** params, void** extra);

template <class Function>
Function find(const Device& device, const char* name) {
  void* const address = device.driver_function(name);
  require(address != nullptr, ErrorKind::kUnsupported, "the driver has no {}", name);
  return reinterpret_cast<Function>(address);
}

void succeed(int result, const char* name) {
  require(result == 0, ErrorKind::kDeviceError, "{} for the clocks of SMs: CUDA error {}", name,
          result);
}

}  // namespace

void ClockedTimes::write(nlohmann::json& log) const {
  log["samples_us"] = us;
  if (!us.empty() && sm_mhz.size() == us.size()) log["samples_mhz"] = sm_mhz;
}

double median_sm_mhz(const std::vector<std::uint64_t>& before,
                     const std::vector<std::uint64_t>& after) {
  std::vector<double> mhz;
  for (std::size_t i = 0; i + 1 < std::min(before.size(), after.size()); i += 2) {
    if (before[i + 1] == 0 || after[i + 1] <= before[i + 1]) continue;
    mhz.push_back(1e3 * static_cast<double>(after[i] - before[i]) /
                  static_cast<double>(after[i + 1] - before[i + 1]));
  }
  if (mhz.empty()) return 0;
  const auto middle = mhz.begin() + static_cast<std::ptrdiff_t>(mhz.size() / 2);
  std::ranges::nth_element(mhz, middle);
  return *middle;
}

struct ClockedTimer::Probe {
  explicit Probe(const Device& on) : device(on), before(on, kWords * 8), after(on, kWords * 8) {
    const Current current(device);
    succeed(find<LoadModule>(device, "cuModuleLoadData")(&module, kPtx), "cuModuleLoadData");
    succeed(find<GetFunction>(device, "cuModuleGetFunction")(&function, module, "sm_clocks"),
            "cuModuleGetFunction");
    launch_kernel = find<LaunchKernel>(device, "cuLaunchKernel");
  }
  ~Probe() {
    const Current current(device);
    find<UnloadModule>(device, "cuModuleUnload")(module);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void launch(const Stream& stream, const Buffer& to) const {
    const Current current(device);
    void* out = to.data();
    std::uint32_t slots = kSlots;
    void* params[] = {&out, &slots};
    const auto grid = static_cast<unsigned>(device.num_sms()) * kCtasPerSm;
    succeed(launch_kernel(function, grid, 1, 1, 1, 1, 1, 0, stream.handle(), params, nullptr),
            "cuLaunchKernel");
  }

  /// The device's context is the thread's.
  struct Current {
    explicit Current(const Device& on) : device(on) {
      succeed(find<PushContext>(device, "cuCtxPushCurrent_v2")(device.context()),
              "cuCtxPushCurrent");
    }
    ~Current() {
      void* popped = nullptr;
      find<PopContext>(device, "cuCtxPopCurrent_v2")(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    const Device& device;
  };

  Device device;
  Buffer before, after;
  void *module = nullptr, *function = nullptr;
  LaunchKernel launch_kernel = nullptr;
};

ClockedTimer::ClockedTimer(const Device& device)
    : begin_(device),
      end_(device),
      probe_(device.is_simulated() ? nullptr : std::make_unique<Probe>(device)) {}
ClockedTimer::~ClockedTimer() = default;

ClockedTime ClockedTimer::time(const Stream& stream, const std::function<void()>& enqueue) const {
  if (probe_ != nullptr) {
    probe_->before.fill(std::byte{0}, stream);
    probe_->after.fill(std::byte{0}, stream);
    probe_->launch(stream, probe_->before);
  }
  begin_.record(stream);
  enqueue();
  end_.record(stream);
  if (probe_ != nullptr) probe_->launch(stream, probe_->after);
  stream.synchronize();
  ClockedTime time{.us = elapsed_us(begin_, end_)};
  if (probe_ != nullptr) {
    time.sm_mhz = median_sm_mhz(probe_->before.to_vector<std::uint64_t>(),
                                probe_->after.to_vector<std::uint64_t>());
  }
  return time;
}

}  // namespace tilewright::cli
