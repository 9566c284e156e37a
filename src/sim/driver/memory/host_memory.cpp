// Pinned, registered and managed memory: host memory that kernels reach at its own address.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/state.h"

#include <cstdlib>

namespace tilewright::sim::abi {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr unsigned kKnownHostFlags =
    kMemHostAllocPortable | kMemHostAllocDeviceMap | kMemHostAllocWriteCombined;

void announce(Block block) {
  Driver::get().blocks.add(block);
  announce_host_range(block);
}

void* allocate(Context& context, std::size_t bytes, Block::Kind kind, unsigned flags) {
  expect(bytes > 0);
  constexpr std::size_t kMax = std::size_t{1} << 46;
  expect(bytes <= kMax, CUresult::kOutOfMemory);
  const std::size_t whole = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  void* const memory = std::aligned_alloc(kPageBytes, whole);
  expect(memory != nullptr, CUresult::kOutOfMemory);
  Block block;
  block.kind = kind;
  block.address = reinterpret_cast<std::uint64_t>(memory);
  block.size_bytes = bytes;
  block.device = &context.device;
  block.context = &context;
  block.flags = flags;
  announce(block);
  return memory;
}

/// The host block that holds the pointer. Errors   Failure: CUDA_ERROR_INVALID_VALUE
Block find_host(const void* pointer) {
  const std::optional<Block> block =
      Driver::get().blocks.find(reinterpret_cast<std::uint64_t>(pointer));
  expect(block && block->is_host());
  return *block;
}

void take(const void* pointer, Block::Kind kind, CUresult otherwise) {
  Driver& driver = Driver::get();
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const std::optional<Block> known = driver.blocks.find(address);
  expect(known && known->address == address && known->kind == kind, otherwise);
  driver.blocks.take(address);
  release_block(*known);
}

}  // namespace

CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  return call_in_usable_context([&](Context& context) {
    expect(out != nullptr && (flags & ~kKnownHostFlags) == 0);
    *out = allocate(context, bytes, Block::Kind::kPinned, flags);
  });
}

CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
  return cuMemHostAlloc(out, bytes, 0);
}

CUresult cuMemAllocHost(void** out, unsigned bytes) {
  return cuMemHostAlloc(out, bytes, 0);
}

CUresult cuMemFreeHost(void* memory) {
  return call_in_usable_context([&](Context&) {
    if (memory == nullptr) return;
    take(memory, Block::Kind::kPinned, CUresult::kInvalidValue);
  });
}

CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned flags) {
  return call_in_usable_context([&](Context& context) {
    expect(out != nullptr);
    const bool is_known = flags == static_cast<unsigned>(CUmemAttach_flags::kGlobal) ||
                          flags == static_cast<unsigned>(CUmemAttach_flags::kHost);
    expect(is_known);
    *out = reinterpret_cast<CUdeviceptr>(allocate(context, bytes, Block::Kind::kManaged, flags));
  });
}

CUresult cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
  return call_in_usable_context([&](Context& context) {
    expect(memory != nullptr && bytes > 0 && (flags & ~kMemHostRegisterFlags) == 0);
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    expect(!Driver::get().blocks.overlaps(address, bytes), CUresult::kHostMemoryAlreadyRegistered);
    Block block;
    block.kind = Block::Kind::kRegistered;
    block.address = address;
    block.size_bytes = bytes;
    block.device = &context.device;
    block.context = &context;
    block.flags = flags;
    announce(block);
  });
}

CUresult cuMemHostUnregister(void* memory) {
  return call_in_usable_context([&](Context&) {
    expect(memory != nullptr);
    take(memory, Block::Kind::kRegistered, CUresult::kHostMemoryNotRegistered);
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* out, void* memory, unsigned flags) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr && flags == 0);
    find_host(memory);
    *out = reinterpret_cast<CUdeviceptr>(memory);
  });
}

CUresult cuMemHostGetFlags(unsigned* out, void* memory) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr);
    *out = find_host(memory).flags | kMemHostAllocDeviceMap;
  });
}

// Hints about managed memory: it is in one place and stays there.

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise, CUmemLocation) {
  return call_in_usable_context([&](Context&) {
    const std::optional<Block> block = Driver::get().blocks.find(address);
    expect(bytes > 0 && block && block->kind == Block::Kind::kManaged);
  });
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUdevice) {
  return cuMemAdvise_v2(address, bytes, advice, {});
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned,
                               CUstream) {
  return cuMemAdvise_v2(address, bytes, {}, {});
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream) {
  return cuMemAdvise_v2(address, bytes, {}, {});
}

CUresult cuMemRangeGetAttribute(void* out, size_t out_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t bytes) {
  return call_in_usable_context([&](Context&) {
    expect(out != nullptr && out_bytes >= sizeof(int) && bytes > 0);
    const std::optional<Block> block = Driver::get().blocks.find(address);
    expect(block && block->kind == Block::Kind::kManaged);
    constexpr int kCpu = -1;
    const bool is_flag = attribute == CUmem_range_attribute::kReadMostly;
    *static_cast<int*>(out) = is_flag ? 0 : kCpu;
  });
}

CUresult cuMemRangeGetAttributes(void** out, size_t* out_bytes, CUmem_range_attribute* attributes,
                                 size_t count, CUdeviceptr address, size_t bytes) {
  return call([&] {
    expect(out != nullptr && out_bytes != nullptr && attributes != nullptr && count > 0);
    for (size_t i = 0; i < count; ++i) {
      const CUresult result =
          cuMemRangeGetAttribute(out[i], out_bytes[i], attributes[i], address, bytes);
      expect(result == CUresult::kSuccess, result);
    }
  });
}

}  // namespace tilewright::sim::abi
