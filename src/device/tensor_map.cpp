#include "device/tensor_map.h"

#include "base/error.h"

#include <array>
#include <bit>
#include <cstddef>

namespace tilewright::device {

namespace {

/// For what the driver refuses although every documented rule holds.
const char* advice_on_refusal(const Device& device, const TensorMapSpec& spec) {
  const bool is_blackwell_only = element_bits(spec.type) < 8 ||
                                 spec.swizzle == TensorMapSwizzle::k128BAtom32B ||
                                 spec.swizzle == TensorMapSwizzle::k128BAtom32BFlip8B ||
                                 spec.swizzle == TensorMapSwizzle::k128BAtom64B;
  return is_blackwell_only && device.info().compute_capability < 100
             ? "; 4-bit and 6-bit types and swizzle atoms above 16 bytes need compute capability "
               "10.0"
             : "";
}

std::string text_of(const TensorMapSpec& spec) {
  return fmt::format(
      "tensor map = {}, type = {}, address = {:#x}, dims = [{}], strides_bytes = [{}], box = [{}], "
      "element_strides = [{}], interleave = {}, swizzle = {}",
      spec.name, name_of(spec.type), spec.address, fmt::join(spec.dims, ", "),
      fmt::join(spec.strides_bytes, ", "), fmt::join(spec.box, ", "),
      fmt::join(spec.element_strides, ", "), static_cast<int>(spec.interleave),
      name_of(spec.swizzle));
}

}  // namespace

const char* name_of(TensorMapType type) noexcept {
  switch (type) {
#define TILEWRIGHT_NAME(ours, theirs, value) \
  case TensorMapType::ours:                  \
    return #ours;
    TILEWRIGHT_CU_TENSOR_MAP_DATA_TYPES(TILEWRIGHT_NAME)
#undef TILEWRIGHT_NAME
  }
  return "unknown type";
}

const char* name_of(TensorMapSwizzle swizzle) noexcept {
  switch (swizzle) {
#define TILEWRIGHT_NAME(ours, theirs, value) \
  case TensorMapSwizzle::ours:               \
    return #ours;
    TILEWRIGHT_CU_TENSOR_MAP_SWIZZLES(TILEWRIGHT_NAME)
#undef TILEWRIGHT_NAME
  }
  return "unknown swizzle";
}

int element_bits(TensorMapType type) noexcept {
  switch (type) {
    case TensorMapType::k16U4Align8B:
    case TensorMapType::k16U4Align16B:
      return 4;
    case TensorMapType::k16U6Align16B:
      return 6;
    case TensorMapType::kUint8:
      return 8;
    case TensorMapType::kUint16:
    case TensorMapType::kFloat16:
    case TensorMapType::kBfloat16:
      return 16;
    case TensorMapType::kUint64:
    case TensorMapType::kInt64:
    case TensorMapType::kFloat64:
      return 64;
    default:
      return 32;
  }
}

abi::CUtensorMap encode_tensor_map(const Device& device, const TensorMapSpec& spec) {
  require(device.info().has_tensor_maps, ErrorKind::kUnsupported,
          "tensor map {}: {} has no Tensor Memory Accelerator", spec.name, device.label());
  validate(spec);
  std::vector<std::uint32_t> element_strides = spec.element_strides;
  element_strides.resize(spec.dims.size(), 1);
  const auto current = device.make_current();
  // Not in the result's own place: GCC 12 does not align a temporary of the caller to 64 bytes in
  // every case, and the driver needs that.
  alignas(abi::CUtensorMap) std::array<std::byte, sizeof(abi::CUtensorMap)> object{};
  const abi::CUresult result = device.cu().tensor_map_encode_tiled(
      reinterpret_cast<abi::CUtensorMap*>(object.data()), spec.type,
      static_cast<std::uint32_t>(spec.dims.size()), reinterpret_cast<void*>(spec.address),
      spec.dims.data(), spec.strides_bytes.data(), spec.box.data(), element_strides.data(),
      spec.interleave, spec.swizzle, spec.l2_promotion, spec.oob_fill);
  if (result == abi::CUresult::kSuccess) return std::bit_cast<abi::CUtensorMap>(object);
  device.raise(result, "cuTensorMapEncodeTiled", text_of(spec) + advice_on_refusal(device, spec));
}

}  // namespace tilewright::device
