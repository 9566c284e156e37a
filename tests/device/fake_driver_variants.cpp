// What the fake drivers differ in; the rest is compiled once. FAKE_VERSION is what
// cuDriverGetVersion says, FAKE_WITHOUT_... leaves functions out, FAKE_SIMULATOR makes it pass for
// the simulator.
#include "fake_call.h"

using namespace tilewright::device::abi;
using namespace tilewright::device::fake;

#ifndef FAKE_VERSION
#define FAKE_VERSION 13000
#endif

extern "C" {

#ifdef FAKE_SIMULATOR
int tilewright_simulator = 1;
#endif

CUresult cuDriverGetVersion(int* version) {
  Call call(__func__, Needs::kNothing);
  *version = FAKE_VERSION;
  return call.result();
}

#ifndef FAKE_WITHOUT_OPTIONAL
CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset_bytes,
                            std::size_t* size_bytes) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  const Object* const object = call.find(function, "function");
  if (object == nullptr) return CUresult::kInvalidHandle;
  if (index > 0 || object->bytes == 0) {
    return CUresult::kInvalidValue;
  }
  *offset_bytes = 0;
  *size_bytes = object->bytes;
  return CUresult::kSuccess;
}
#endif

#ifndef FAKE_WITHOUT_TENSOR_MAPS
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank,
                                void* address, const std::uint64_t* dims,
                                const std::uint64_t* strides_bytes, const std::uint32_t* box,
                                const std::uint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill oob_fill) {
  Call call(__func__);
  if (call.is_failed()) return call.result();
  if (number_of(map) % 64 != 0) return call.misuse(CUresult::kInvalidValue, "unaligned");
  state().tensor_maps.push_back({type,
                                 rank,
                                 number_of(address),
                                 {dims, dims + rank},
                                 {strides_bytes, strides_bytes + rank - 1},
                                 {box, box + rank},
                                 {element_strides, element_strides + rank},
                                 interleave,
                                 swizzle,
                                 l2_promotion,
                                 oob_fill});
  for (int i = 0; i < 16; ++i) map->opaque[i] = 0x7e50'0000u + static_cast<unsigned>(i);
  return CUresult::kSuccess;
}
#endif

}  // extern "C"
