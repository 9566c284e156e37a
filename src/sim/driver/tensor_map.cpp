// Tensor maps: the driver's arguments become the fields that the machine reads.
#include "sim/async/tensor_map.h"

#include "sim/driver/functions.h"
#include "sim/driver/state.h"

namespace tilewright::sim::abi {

namespace {

constexpr std::uint32_t kMaxEnumerator = 15;

template <class To, class From>
To converted(From value) {
  const auto number = static_cast<int>(value);
  expect(number >= 0 && number <= static_cast<int>(kMaxEnumerator));
  return static_cast<To>(number);
}

struct Tensor {
  CUtensorMapDataType type;
  std::uint32_t rank;
  void* address;
  const std::uint64_t* dims;
  const std::uint64_t* strides_bytes;
  const std::uint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion l2_promotion;
  CUtensorMapFloatOOBfill fill;
};

/// What both kinds of maps have.
TensorMapFields fields_of(const Tensor& tensor) {
  expect(tensor.rank >= 1 && tensor.rank <= kMaxTensorRank);
  expect(tensor.dims != nullptr && tensor.element_strides != nullptr);
  expect(tensor.strides_bytes != nullptr || tensor.rank == 1);
  TensorMapFields fields;
  fields.element = converted<TensorElement>(tensor.type);
  fields.interleave = converted<TensorInterleave>(tensor.interleave);
  fields.swizzle = converted<TensorSwizzle>(tensor.swizzle);
  fields.l2_promotion = converted<TensorL2Promotion>(tensor.l2_promotion);
  fields.fill = converted<TensorFill>(tensor.fill);
  fields.rank = tensor.rank;
  fields.address = reinterpret_cast<std::uint64_t>(tensor.address);
  for (std::uint32_t i = 0; i < tensor.rank; ++i) {
    fields.dims[i] = tensor.dims[i];
    fields.element_strides[i] = tensor.element_strides[i];
    if (i > 0) fields.strides_bytes[i - 1] = tensor.strides_bytes[i - 1];
  }
  return fields;
}

/// Errors   Failure after saying which rule is broken: the driver itself would not tell
void write(CUtensorMap* map, const TensorMapFields& fields) {
  expect(map != nullptr);
  const std::string problem = validate(fields);
  if (!problem.empty()) {
    say(problem);
    refuse(CUresult::kInvalidValue);
  }
  static_assert(sizeof(CUtensorMap) == kTensorMapBytes);
  encode(fields,
         std::span<std::byte, kTensorMapBytes>(reinterpret_cast<std::byte*>(map), kTensorMapBytes));
}

/// 4-bit and 6-bit elements and larger swizzle atoms came with Blackwell.
void require_known_to_device(const TensorMapFields& fields) {
  if (current_context().device.model.compute_capability >= 100) return;
  expect(element_bits(fields.element) >= 8 && fields.swizzle <= TensorSwizzle::k128B);
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank,
                                void* address, const std::uint64_t* dims,
                                const std::uint64_t* strides_bytes, const std::uint32_t* box,
                                const std::uint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  return call([&] {
    TensorMapFields fields = fields_of({type, rank, address, dims, strides_bytes, element_strides,
                                        interleave, swizzle, l2_promotion, fill});
    expect(box != nullptr);
    for (std::uint32_t i = 0; i < rank; ++i) fields.box[i] = box[i];
    require_known_to_device(fields);
    write(map, fields);
  });
}

CUresult cuTensorMapEncodeIm2col(
    CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank, void* address,
    const std::uint64_t* dims, const std::uint64_t* strides_bytes, const int* lower_corner,
    const int* upper_corner, std::uint32_t channels_per_pixel, std::uint32_t pixels_per_column,
    const std::uint32_t* element_strides, CUtensorMapInterleave interleave,
    CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion, CUtensorMapFloatOOBfill fill) {
  return call([&] {
    TensorMapFields fields = fields_of({type, rank, address, dims, strides_bytes, element_strides,
                                        interleave, swizzle, l2_promotion, fill});
    expect(rank >= 3 && lower_corner != nullptr && upper_corner != nullptr);
    fields.mode = TensorMode::kIm2col;
    for (std::uint32_t i = 0; i + 2 < rank; ++i) {
      fields.lower_corner[i] = lower_corner[i];
      fields.upper_corner[i] = upper_corner[i];
    }
    fields.channels_per_pixel = channels_per_pixel;
    fields.pixels_per_column = pixels_per_column;
    require_known_to_device(fields);
    write(map, fields);
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return call([&] {
    expect(map != nullptr);
    DecodedTensorMap decoded = decode_tensor_map(std::span<const std::byte, kTensorMapBytes>(
        reinterpret_cast<const std::byte*>(map), kTensorMapBytes));
    expect(decoded.problem.empty());
    decoded.fields.address = reinterpret_cast<std::uint64_t>(address);
    write(map, decoded.fields);
  });
}

}  // namespace tilewright::sim::abi
