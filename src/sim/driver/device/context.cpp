#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/state.h"
#include "sim/driver/objects/stream.h"

#include <algorithm>

namespace tilewright::sim::abi {

namespace {

constexpr unsigned kContextFlags = 0xff;
constexpr unsigned kMapHost = static_cast<unsigned>(CUctx_flags::kMapHost);
constexpr unsigned kApiVersion = 3020;  // of a context; drivers have said so for ages

std::shared_ptr<Context> find_context(CUcontext handle) {
  return Driver::get().contexts.find(handle, CUresult::kInvalidContext);
}

CUcontext handle_of(const std::shared_ptr<Context>& context) {
  return Registry<CUcontext, Context>::handle_of(context.get());
}

/// What cuCtxGetFlags and its kin say: contexts of this age can always map host memory.
unsigned visible(unsigned flags) {
  return flags | kMapHost;
}

void check_flags(unsigned flags) {
  expect((flags & ~kContextFlags) == 0);
  const unsigned schedule = flags & static_cast<unsigned>(CUctx_flags::kSchedMask);
  expect((schedule & (schedule - 1)) == 0);
}

/// As a device does it: everything in the context is gone, and so is the fault.
void reset_primary(Device& device) {
  if (!device.primary->is_active) return;
  device.primary->is_active = false;
  tear_down(*device.primary);
  device.primary->clear();
}

void retain_primary(Device& device) {
  if (device.num_retains++ == 0) device.primary->flags = device.primary_flags;
  device.primary->is_active = true;
}

void create(CUcontext* out, unsigned flags, CUdevice ordinal) {
  expect(out != nullptr);
  Device& device = Driver::get().device(ordinal);
  check_flags(flags);
  const auto context = std::make_shared<Context>(device);
  context->flags = flags;
  context->is_active = true;
  *out = Driver::get().contexts.add(context);
  context_stack().push_back(context);
}

Context& given_or_current(CUcontext handle) {
  return handle == nullptr ? current_context() : *find_context(handle);
}

}  // namespace

CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    Device& device = Driver::get().device(ordinal);
    const std::lock_guard lock(device.mutex);
    retain_primary(device);
    *out = handle_of(device.primary);
  });
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice ordinal) {
  return call([&] {
    Device& device = Driver::get().device(ordinal);
    const std::lock_guard lock(device.mutex);
    expect(device.num_retains > 0, CUresult::kInvalidContext);
    if (--device.num_retains == 0) reset_primary(device);
  });
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice ordinal) {
  return call([&] {
    Device& device = Driver::get().device(ordinal);
    const std::lock_guard lock(device.mutex);
    reset_primary(device);
    device.primary->is_active = device.num_retains > 0;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice ordinal, unsigned flags) {
  return call([&] {
    Device& device = Driver::get().device(ordinal);
    check_flags(flags);
    const std::lock_guard lock(device.mutex);
    device.primary_flags = flags;
    device.primary->flags = flags;
  });
}

CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* is_active) {
  return call([&] {
    Device& device = Driver::get().device(ordinal);
    expect(flags != nullptr && is_active != nullptr);
    const std::lock_guard lock(device.mutex);
    *flags = device.primary_flags;
    *is_active = device.primary->is_active ? 1 : 0;
  });
}

CUresult cuCtxCreate_v2(CUcontext* out, unsigned flags, CUdevice ordinal) {
  return call([&] { create(out, flags, ordinal); });
}

CUresult cuCtxCreate_v4(CUcontext* out, CUctxCreateParams* params, unsigned flags,
                        CUdevice ordinal) {
  return call([&] {
    const bool is_plain = params == nullptr ||
                          (params->num_exec_affinity_params == 0 && params->cig_params == nullptr);
    expect(is_plain, CUresult::kNotSupported);
    create(out, flags, ordinal);
  });
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  return call([&] {
    const std::shared_ptr<Context> context = find_context(handle);
    expect(!context->is_primary, CUresult::kInvalidContext);
    // Never freed: streams, graphs and other threads' stacks may still point at it.
    static auto& destroyed = *new Registry<CUcontext, Context>;
    destroyed.add(Driver::get().contexts.take(handle));
    auto& stack = context_stack();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    context->is_active = false;
    tear_down(*context);
  });
}

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  return call([&] {
    if (handle == nullptr) {
      refuse(CUresult::kInvalidContext);
    }
    context_stack().push_back(find_context(handle));
  });
}

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  return call([&] {
    auto& stack = context_stack();
    expect(!stack.empty(), CUresult::kInvalidContext);
    if (out != nullptr) *out = handle_of(stack.back());
    stack.pop_back();
  });
}

CUresult cuCtxSetCurrent(CUcontext handle) {
  return call([&] {
    auto& stack = context_stack();
    if (handle == nullptr) {
      if (!stack.empty()) stack.pop_back();
      return;
    }
    std::shared_ptr<Context> context = find_context(handle);
    if (stack.empty()) {
      stack.push_back(std::move(context));
    } else {
      stack.back() = std::move(context);
    }
  });
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  return call([&] {
    expect(out != nullptr);
    const auto& stack = context_stack();
    *out = stack.empty() ? nullptr : handle_of(stack.back());
  });
}

CUresult cuCtxGetDevice(CUdevice* out) {
  return call_in_context([&](Context& context) {
    expect(out != nullptr);
    *out = context.device.ordinal;
  });
}

CUresult cuCtxGetDevice_v2(CUdevice* out, CUcontext handle) {
  return call([&] {
    expect(out != nullptr);
    *out = given_or_current(handle).device.ordinal;
  });
}

CUresult cuCtxGetId(CUcontext handle, unsigned long long* out) {
  return call([&] {
    expect(out != nullptr);
    *out = given_or_current(handle).id;
  });
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* out) {
  return call([&] {
    expect(out != nullptr);
    given_or_current(handle);
    *out = kApiVersion;
  });
}

CUresult cuCtxGetFlags(unsigned* out) {
  return call_in_context([&](Context& context) {
    expect(out != nullptr);
    *out = visible(context.flags);
  });
}

CUresult cuCtxSetFlags(unsigned flags) {
  return call_in_context([&](Context& context) {
    check_flags(flags);
    context.flags = flags;
  });
}

CUresult cuCtxSynchronize() {
  return call_in_usable_context([](Context& context) { context.synchronize(); });
}

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  return call([&] { given_or_current(handle).synchronize(); });
}

CUresult cuCtxGetLimit(size_t* out, CUlimit limit) {
  return call_in_context([&](Context& context) {
    expect(out != nullptr);
    const auto index = static_cast<std::size_t>(limit);
    expect(limit >= CUlimit::kStackSize && index < context.limits.size());
    const bool is_known =
        limit != CUlimit::kDevRuntimeSyncDepth && limit != CUlimit::kCigShmemFallbackEnabled;
    expect(is_known, CUresult::kUnsupportedLimit);
    *out = context.limits[index];
  });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return call_in_context([&](Context& context) {
    const auto index = static_cast<std::size_t>(limit);
    expect(limit >= CUlimit::kStackSize && index < context.limits.size());
    expect(limit < CUlimit::kShmemSize && limit != CUlimit::kDevRuntimeSyncDepth,
           CUresult::kUnsupportedLimit);
    context.limits[index] = value;
  });
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* out) {
  return call_in_context([&](Context& context) {
    expect(out != nullptr);
    *out = context.cache_config;
  });
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  return call_in_context([&](Context& context) {
    expect(config >= CUfunc_cache::kNone && config <= CUfunc_cache::kEqual);
    context.cache_config = config;
  });
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* out) {
  return call_in_context([&](Context& context) {
    expect(out != nullptr);
    *out = context.shared_config == CUsharedconfig::kDefaultBankSize
               ? CUsharedconfig::kFourByteBankSize
               : context.shared_config;
  });
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  return call_in_context([&](Context& context) { context.shared_config = config; });
}

CUresult cuCtxResetPersistingL2Cache() {
  return call_in_context([](Context&) {});
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return call_in_context([&](Context&) {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
  });
}

CUresult cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return call_in_context([&](Context& context) {
    expect(flags == kPeerAccessFlags);
    const std::shared_ptr<Context> peer = find_context(handle);
    expect(&peer->device != &context.device, CUresult::kInvalidContext);
    refuse(CUresult::kPeerAccessUnsupported);
  });
}

CUresult cuCtxDisablePeerAccess(CUcontext handle) {
  return call_in_context([&](Context&) {
    find_context(handle);
    refuse(CUresult::kPeerAccessNotEnabled);
  });
}

}  // namespace tilewright::sim::abi
