// Tensor maps: the driver's arguments become the fields that the machine reads.
#include "sim/async/tensor_map.h"

#include "sim/driver/abi/functions.h"
#include "sim/driver/objects/state.h"

namespace tilewright::sim::abi {

namespace {

template <class To, class From>
To converted(From value, To last) {
  const auto number = static_cast<int>(value);
  expect(number >= 0 && number <= static_cast<int>(last));
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
  fields.element = converted(tensor.type, TensorElement::k16U6Align16B);
  fields.interleave = converted(tensor.interleave, TensorInterleave::k32B);
  fields.swizzle = converted(tensor.swizzle, TensorSwizzle::k128BAtom64B);
  fields.l2_promotion = converted(tensor.l2_promotion, TensorL2Promotion::k256B);
  fields.fill = converted(tensor.fill, TensorFill::kNan);
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
void write(CUtensorMap* map, const TensorMapFields& fields, const std::string& problem) {
  expect(map != nullptr);
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
    write(map, fields, validate(fields));
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
    write(map, fields, validate(fields));
  });
}

CUresult cuTensorMapEncodeIm2colWide(
    CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank, void* address,
    const std::uint64_t* dims, const std::uint64_t* strides_bytes, int lower_corner_width,
    int upper_corner_width, std::uint32_t channels_per_pixel, std::uint32_t pixels_per_column,
    const std::uint32_t* element_strides, CUtensorMapInterleave interleave,
    CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
    CUtensorMapFloatOOBfill fill) {
  return call([&] {
    TensorMapFields fields = fields_of({type, rank, address, dims, strides_bytes, element_strides,
                                        interleave, swizzle, l2_promotion, fill});
    expect(rank >= 3 &&
           (mode == CUtensorMapIm2ColWideMode::kW || mode == CUtensorMapIm2ColWideMode::kW128));
    fields.mode = TensorMode::kIm2col;
    fields.lower_corner[0] = lower_corner_width;
    fields.upper_corner[0] = upper_corner_width;
    fields.channels_per_pixel = channels_per_pixel;
    fields.pixels_per_column = pixels_per_column;
    require_known_to_device(fields);
    write(map, fields, validate_im2col_wide(fields));
  });
}

CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return call([&] {
    expect(map != nullptr);
    const std::span<std::byte, kTensorMapBytes> object(reinterpret_cast<std::byte*>(map),
                                                       kTensorMapBytes);
    DecodedTensorMap decoded = decode_tensor_map(object);
    expect(decoded.problem.empty());
    decoded.fields.address = reinterpret_cast<std::uint64_t>(address);
    expect(validate(decoded.fields).empty());
    replace_address(object, decoded.fields.address);
  });
}

}  // namespace tilewright::sim::abi
