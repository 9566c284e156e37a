// Device memory.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/stream.h"

namespace tilewright::sim::abi {

namespace {

constexpr std::size_t kPitchBytes = 512;

CUdeviceptr allocate(Context& context, std::size_t bytes, const MemoryPool* pool,
                     const char* origin) {
  expect(bytes > 0);
  GlobalMemory& memory = context.device.machine().memory();
  const std::uint64_t address = memory.allocate(bytes, origin);
  Block block;
  block.address = address;
  block.size_bytes = bytes;
  block.device = &context.device;
  block.context = &context;
  block.pool = pool;
  Driver::get().blocks.add(block);
  return address;
}

void free_device(CUdeviceptr address) {
  if (address == 0) return;
  Driver& driver = Driver::get();
  const std::optional<Block> known = driver.blocks.find(address);
  expect(known && known->address == address);
  expect(known->kind == Block::Kind::kDevice || known->kind == Block::Kind::kManaged);
  const std::optional<Block> block = driver.blocks.take(address);
  expect(block.has_value());
  release_block(*block);
}

CUdeviceptr allocate_from(MemoryPool& pool, Stream& stream, std::size_t bytes) {
  require_not_captured(stream);
  const std::uint64_t limit = pool.attributes[CUmemPool_attribute::kReleaseThreshold];
  static_cast<void>(limit);  // freed memory goes back at once, whatever the threshold
  const CUdeviceptr address = allocate(stream.context, bytes, &pool, "cuMemAllocAsync");
  const std::uint64_t used = Driver::get().blocks.bytes_of(pool);
  pool.max_used_bytes = std::max(pool.max_used_bytes, used);
  return address;
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  return call_in_usable_context([&](Context& context) {
    expect(out != nullptr);
    *out = allocate(context, bytes, nullptr, "cuMemAlloc");
  });
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width_bytes, size_t height,
                            unsigned element_bytes) {
  return call_in_usable_context([&](Context& context) {
    expect(out != nullptr && pitch != nullptr && width_bytes > 0 && height > 0);
    expect(element_bytes == 4 || element_bytes == 8 || element_bytes == 16);
    const std::size_t row = (width_bytes + kPitchBytes - 1) / kPitchBytes * kPitchBytes;
    *out = allocate(context, row * height, nullptr, "cuMemAllocPitch");
    *pitch = row;
  });
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return call_in_usable_context([&](Context&) { free_device(address); });
}

CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return call_in_usable_context([&](Context& context) {
    const GlobalMemory& memory = context.device.machine().memory();
    if (total_bytes != nullptr) *total_bytes = memory.capacity_bytes();
    if (free_bytes != nullptr) *free_bytes = memory.capacity_bytes() - memory.used_bytes();
  });
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return call_in_usable_context([&](Context& context) {
    std::uint64_t start = 0, size = 0;
    if (const std::optional<Block> block = Driver::get().blocks.find(address)) {
      start = block->address;
      size = block->size_bytes;
    } else {
      const auto allocation = context.device.machine().memory().find(address);
      expect(allocation && !allocation->is_freed, CUresult::kNotFound);
      start = allocation->address;
      size = allocation->size_bytes;
    }
    if (base != nullptr) *base = start;
    if (bytes != nullptr) *bytes = size;
  });
}

CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream handle) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    stream->context.report_fault();
    Device& device = stream->context.device;
    std::shared_ptr<MemoryPool> pool;
    {
      const std::lock_guard lock(device.mutex);
      pool = device.current_pool;
    }
    *out = allocate_from(*pool, *stream, bytes);
  });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool,
                                 CUstream handle) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    expect(out != nullptr);
    stream->context.report_fault();
    *out = allocate_from(*Driver::get().pools.find(pool), *stream, bytes);
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return call([&] {
    const std::shared_ptr<Stream> stream = find_stream(handle);
    require_not_captured(*stream);
    if (stream->context.is_silently_broken()) return;
    free_device(address);
  });
}

}  // namespace tilewright::sim::abi
