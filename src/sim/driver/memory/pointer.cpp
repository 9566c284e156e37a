// What is known about an address.
#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/state.h"

#include <cstring>

namespace tilewright::sim::abi {

namespace {

using Attribute = CUpointer_attribute;

/// The block of an address; variables of modules are made into one.
std::optional<Block> find_block(std::uint64_t address) {
  if (const std::optional<Block> block = Driver::get().blocks.find(address)) return block;
  for (const auto& device : Driver::get().devices()) {
    Machine* const machine = device->existing_machine();
    if (machine == nullptr) continue;
    const GlobalMemory& memory = machine->memory();
    if (address < memory.begin() || address >= memory.end()) continue;
    const auto allocation = memory.find(address);
    if (!allocation || allocation->is_freed) continue;
    Block block;
    block.address = allocation->address;
    block.size_bytes = allocation->size_bytes;
    block.id = allocation->id;
    block.device = device.get();
    block.context = device->primary.get();
    return block;
  }
  return std::nullopt;
}

template <class Value>
void give(void* out, Value value) {
  std::memcpy(out, &value, sizeof value);
}

CUmemorytype type_of(const Block& block) {
  const bool is_host = block.kind == Block::Kind::kPinned || block.kind == Block::Kind::kRegistered;
  return is_host ? CUmemorytype::kHost : CUmemorytype::kDevice;
}

void give_attribute(void* out, Attribute attribute, std::uint64_t address, const Block& block) {
  switch (attribute) {
    case Attribute::kContext:
      return give(out, Registry<CUcontext, Context>::handle_of(block.context));
    case Attribute::kMemoryType:
      return give(out, static_cast<unsigned>(type_of(block)));
    case Attribute::kDevicePointer:
      return give(out, CUdeviceptr{address});
    case Attribute::kHostPointer:
      expect(block.is_host());
      return give(out, reinterpret_cast<void*>(address));
    case Attribute::kSyncMemops:
      return give(out, static_cast<unsigned>(block.is_sync_memops ? 1 : 0));
    case Attribute::kBufferId:
      return give(out, static_cast<unsigned long long>(block.id));
    case Attribute::kIsManaged:
      return give(out, static_cast<unsigned>(block.kind == Block::Kind::kManaged ? 1 : 0));
    case Attribute::kDeviceOrdinal:
      return give(out, block.device->ordinal);
    case Attribute::kRangeStartAddr:
      return give(out, CUdeviceptr{block.address});
    case Attribute::kRangeSize:
      return give(out, std::size_t{block.size_bytes});
    case Attribute::kMapped:
      return give(out, 1);
    case Attribute::kIsLegacyCudaIpcCapable:
    case Attribute::kIsGpuDirectRdmaCapable:
    case Attribute::kIsHwDecompressCapable:
      return give(out, 0);
    case Attribute::kAllowedHandleTypes:
      return give(out, std::uint64_t{0});
    case Attribute::kAccessFlags:
      return give(out, static_cast<unsigned>(CUmemAccess_flags::kProtReadwrite));
    case Attribute::kMempoolHandle:
      return give(out, Registry<CUmemoryPool, MemoryPool>::handle_of(block.pool));
    default:
      refuse(CUresult::kInvalidValue);
  }
}

/// What cuPointerGetAttributes gives for an unknown address.
void give_nothing(void* out, Attribute attribute) {
  switch (attribute) {
    case Attribute::kDeviceOrdinal:
      return give(out, -2);
    case Attribute::kContext:
    case Attribute::kDevicePointer:
    case Attribute::kHostPointer:
    case Attribute::kBufferId:
    case Attribute::kRangeStartAddr:
    case Attribute::kRangeSize:
    case Attribute::kMempoolHandle:
    case Attribute::kAllowedHandleTypes:
      return give(out, std::uint64_t{0});
    default:
      return give(out, 0);
  }
}

}  // namespace

CUresult cuPointerGetAttribute(void* out, CUpointer_attribute attribute, CUdeviceptr address) {
  return call_in_context([&](Context&) {
    expect(out != nullptr);
    const std::optional<Block> block = find_block(address);
    expect(block.has_value());
    give_attribute(out, attribute, address, *block);
  });
}

CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** out,
                                CUdeviceptr address) {
  return call_in_context([&](Context&) {
    expect(attributes != nullptr && out != nullptr && count > 0);
    const std::optional<Block> block = find_block(address);
    for (unsigned i = 0; i < count; ++i) {
      const bool has_value =
          block && (attributes[i] != Attribute::kHostPointer || block->is_host());
      if (has_value) {
        give_attribute(out[i], attributes[i], address, *block);
      } else {
        give_nothing(out[i], attributes[i]);
      }
    }
  });
}

CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  return call_in_context([&](Context&) {
    expect(value != nullptr && attribute == Attribute::kSyncMemops);
    expect(find_block(address).has_value());
    Driver::get().blocks.set_sync_memops(address, *static_cast<const unsigned*>(value) != 0);
  });
}

}  // namespace tilewright::sim::abi
