// Memory pools: a pool counts what was taken from it; what is freed goes back to the device.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/state.h"

namespace tilewright::sim::abi {

namespace {

using PoolAttribute = CUmemPool_attribute;

std::shared_ptr<MemoryPool> find_pool(CUmemoryPool handle) {
  return Driver::get().pools.find(handle, CUresult::kInvalidValue);
}

CUmemoryPool handle_of(const std::shared_ptr<MemoryPool>& pool) {
  return Registry<CUmemoryPool, MemoryPool>::handle_of(pool.get());
}

bool is_switch(PoolAttribute attribute) {
  return attribute == PoolAttribute::kReuseFollowEventDependencies ||
         attribute == PoolAttribute::kReuseAllowOpportunistic ||
         attribute == PoolAttribute::kReuseAllowInternalDependencies;
}

std::uint64_t read(MemoryPool& pool, PoolAttribute attribute) {
  switch (attribute) {
    case PoolAttribute::kReservedMemCurrent:
    case PoolAttribute::kUsedMemCurrent:
      return Driver::get().blocks.bytes_of(pool);
    case PoolAttribute::kReservedMemHigh:
    case PoolAttribute::kUsedMemHigh:
      return pool.max_used_bytes;
    default:
      return pool.attributes[attribute];
  }
}

Device& device_at(const CUmemLocation& location) {
  expect(location.type == CUmemLocationType::kDevice, CUresult::kNotSupported);
  return Driver::get().device(location.id);
}

void require_pinned(CUmemAllocationType type) {
  expect(type == CUmemAllocationType::kPinned, CUresult::kNotSupported);
}

}  // namespace

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* out, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    *out = handle_of(Driver::get().device(ordinal).default_pool);
  });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* out, CUdevice ordinal) {
  return call([&] {
    expect(out != nullptr);
    Device& device = Driver::get().device(ordinal);
    const std::lock_guard lock(device.mutex);
    *out = handle_of(device.current_pool);
  });
}

CUresult cuDeviceSetMemPool(CUdevice ordinal, CUmemoryPool handle) {
  return call([&] {
    Device& device = Driver::get().device(ordinal);
    const std::shared_ptr<MemoryPool> pool = find_pool(handle);
    expect(pool->device == &device);
    const std::lock_guard lock(device.mutex);
    device.current_pool = pool;
  });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* out, CUmemLocation* location,
                                CUmemAllocationType type) {
  return call([&] {
    expect(out != nullptr && location != nullptr);
    require_pinned(type);
    *out = handle_of(device_at(*location).default_pool);
  });
}

CUresult cuMemGetMemPool(CUmemoryPool* out, CUmemLocation* location, CUmemAllocationType type) {
  return call([&] {
    expect(out != nullptr && location != nullptr);
    require_pinned(type);
    Device& device = device_at(*location);
    const std::lock_guard lock(device.mutex);
    *out = handle_of(device.current_pool);
  });
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool) {
  return call([&] {
    expect(location != nullptr);
    require_pinned(type);
    const CUresult result = cuDeviceSetMemPool(device_at(*location).ordinal, pool);
    expect(result == CUresult::kSuccess, result);
  });
}

CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* props) {
  return call([&] {
    expect(out != nullptr && props != nullptr);
    require_pinned(props->alloc_type);
    expect(props->handle_types == CUmemAllocationHandleType::kNone, CUresult::kNotSupported);
    const auto pool = std::make_shared<MemoryPool>();
    pool->device = &device_at(props->location);
    *out = Driver::get().pools.add(pool);
  });
}

CUresult cuMemPoolDestroy(CUmemoryPool handle) {
  return call([&] {
    const std::shared_ptr<MemoryPool> pool = find_pool(handle);
    expect(!pool->is_default);
    Device& device = *pool->device;
    const std::lock_guard lock(device.mutex);
    if (device.current_pool == pool) device.current_pool = device.default_pool;
    Driver::get().pools.take(handle);
  });
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t) {
  return call([&] { find_pool(handle); });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* out) {
  return call([&] {
    const std::shared_ptr<MemoryPool> pool = find_pool(handle);
    expect(out != nullptr && attribute >= PoolAttribute::kReuseFollowEventDependencies &&
           attribute <= PoolAttribute::kUsedMemHigh);
    const std::lock_guard lock(pool->device->mutex);
    if (is_switch(attribute)) {
      const auto found = pool->attributes.find(attribute);
      *static_cast<int*>(out) =
          found == pool->attributes.end() ? 1 : static_cast<int>(found->second);
    } else {
      *static_cast<std::uint64_t*>(out) = read(*pool, attribute);
    }
  });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void* value) {
  return call([&] {
    const std::shared_ptr<MemoryPool> pool = find_pool(handle);
    expect(value != nullptr);
    const std::lock_guard lock(pool->device->mutex);
    if (is_switch(attribute)) {
      pool->attributes[attribute] = *static_cast<int*>(value) != 0 ? 1 : 0;
    } else if (attribute == PoolAttribute::kReleaseThreshold) {
      pool->attributes[attribute] = *static_cast<std::uint64_t*>(value);
    } else {
      expect(attribute == PoolAttribute::kReservedMemHigh ||
             attribute == PoolAttribute::kUsedMemHigh);
      expect(*static_cast<std::uint64_t*>(value) == 0);
      pool->max_used_bytes = Driver::get().blocks.bytes_of(*pool);
    }
  });
}

CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc* list, size_t count) {
  return call([&] {
    const std::shared_ptr<MemoryPool> pool = find_pool(handle);
    expect(list != nullptr || count == 0);
    for (size_t i = 0; i < count; ++i) {
      expect(&device_at(list[i].location) == pool->device, CUresult::kInvalidDevice);
    }
  });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* out, CUmemoryPool handle, CUmemLocation* location) {
  return call([&] {
    const std::shared_ptr<MemoryPool> pool = find_pool(handle);
    expect(out != nullptr && location != nullptr);
    *out = &device_at(*location) == pool->device ? CUmemAccess_flags::kProtReadwrite
                                                 : CUmemAccess_flags::kProtNone;
  });
}

// Memory of graphs: there are no nodes that allocate.

CUresult cuDeviceGraphMemTrim(CUdevice ordinal) {
  return call([&] { Driver::get().device(ordinal); });
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute, void* out) {
  return call([&] {
    Driver::get().device(ordinal);
    expect(out != nullptr);
    *static_cast<std::uint64_t*>(out) = 0;
  });
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice ordinal, CUgraphMem_attribute, void* value) {
  return call([&] {
    Driver::get().device(ordinal);
    expect(value != nullptr);
  });
}

}  // namespace tilewright::sim::abi
