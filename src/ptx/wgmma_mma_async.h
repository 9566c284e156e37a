// clang-format off
// Made by tools/make_wgmma_wrappers.py; edit that.
//
// Matrix multiply of one warpgroup: accumulator in registers, A from registers or shared memory, B from
// shared memory. PTX ISA: "wgmma.mma_async". Fragments: arch/fragments/wgmma.h; descriptors:
// arch/smem_descriptor.h.
//
// Asynchronous: d and a register a must not be touched between the call and the wgmma_wait_group that covers it;
// before the first call, and after touching them, wgmma_fence. Shared memory is read by the async proxy.
#pragma once

#include <cstdint>

namespace tilewright::ptx {

/// wgmma.mma_async.sync.aligned.m64nN<shape and types>: d += a * b, or d = a * b if `accumulate` is false.
/// A given as 64 bits is a descriptor, as four registers a fragment. ImmTrans: 0 = K-major, 1 = MN-major.
template <int N>
struct wgmma_mma_async;

#define TILEWRIGHT_UNWRAP(...) __VA_ARGS__
#define TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, A, B, PREDICATE, TAIL, ...)                                 \
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, " PREDICATE ", 0;\n"                                            \
               "wgmma.mma_async.sync.aligned.m64n" #N SHAPE_TYPES " " D ", " A ", " B ", p, 1, 1" TAIL ";\n}\n"  \
               : TILEWRIGHT_UNWRAP OUT                                                                           \
               : __VA_ARGS__)
#define TILEWRIGHT_WGMMA_16(NAME, SHAPE_TYPES, N, D, OUT, P0, P1, P2, P3, P4, P5, P6)                            \
  template <int ImmTransA, int ImmTransB>                                                                        \
  static __device__ void NAME(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {            \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, P0, P1, P2, ", " P3 ", " P4, "l"(a), "l"(b),                    \
                         "r"(static_cast<int>(accumulate)), "n"(ImmTransA), "n"(ImmTransB));                     \
  }                                                                                                              \
  template <int ImmTransB>                                                                                       \
  static __device__ void NAME(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b,                   \
                              bool accumulate) {                                                                 \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, "{" P0 ", " P1 ", " P2 ", " P3 "}", P4, P5, ", " P6, "r"(a[0]), \
                         "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)),             \
                         "n"(ImmTransB));                                                                        \
  }
#define TILEWRIGHT_WGMMA_K_MAJOR(NAME, SHAPE_TYPES, N, D, OUT, P0, P1, P2, P3, P4, P5, P6)                       \
  static __device__ void NAME(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate) {            \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, P0, P1, P2, "", "l"(a), "l"(b),                                 \
                         "r"(static_cast<int>(accumulate)));                                                     \
  }                                                                                                              \
  static __device__ void NAME(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b,                   \
                              bool accumulate) {                                                                 \
    TILEWRIGHT_WGMMA_ASM(N, SHAPE_TYPES, D, OUT, "{" P0 ", " P1 ", " P2 ", " P3 "}", P4, P5, "", "r"(a[0]),      \
                         "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));            \
  }
#define TILEWRIGHT_WGMMA(N, ...)                                                                                 \
  template <>                                                                                                    \
  struct wgmma_mma_async<N> {                                                                                    \
    TILEWRIGHT_WGMMA_16(k16_f32_bf16_bf16, "k16.f32.bf16.bf16", N, __VA_ARGS__)                                  \
    TILEWRIGHT_WGMMA_16(k16_f32_f16_f16, "k16.f32.f16.f16", N, __VA_ARGS__)                                      \
    TILEWRIGHT_WGMMA_K_MAJOR(k32_f32_e4m3_e4m3, "k32.f32.e4m3.e4m3", N, __VA_ARGS__)                             \
    TILEWRIGHT_WGMMA_K_MAJOR(k8_f32_tf32_tf32, "k8.f32.tf32.tf32", N, __VA_ARGS__)                               \
  };

TILEWRIGHT_WGMMA(8,
                 "{%0, %1, %2, %3}",
                 ("+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])),
                 "%4", "%5", "%6", "%7", "%8", "%9", "%10")

TILEWRIGHT_WGMMA(24,
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11}",
                 ("+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])),
                 "%12", "%13", "%14", "%15", "%16", "%17", "%18")

TILEWRIGHT_WGMMA(64,
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
                 "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}",
                 ("+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
                  "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                  "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
                  "+f"(d[29]), "+f"(d[30]), "+f"(d[31])),
                 "%32", "%33", "%34", "%35", "%36", "%37", "%38")

TILEWRIGHT_WGMMA(128,
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
                 "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                 "%60, %61, %62, %63}",
                 ("+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
                  "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                  "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
                  "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
                  "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
                  "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
                  "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])),
                 "%64", "%65", "%66", "%67", "%68", "%69", "%70")

TILEWRIGHT_WGMMA(256,
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
                 "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
                 "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
                 "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, "
                 "%100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, "
                 "%120, %121, %122, %123, %124, %125, %126, %127}",
                 ("+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                  "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]),
                  "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]),
                  "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]),
                  "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),
                  "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]),
                  "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]),
                  "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),
                  "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
                  "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]),
                  "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]),
                  "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]),
                  "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]),
                  "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]),
                  "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]),
                  "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]),
                  "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
                  "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]),
                  "+f"(d[127])),
                 "%128", "%129", "%130", "%131", "%132", "%133", "%134")

#undef TILEWRIGHT_WGMMA
#undef TILEWRIGHT_WGMMA_K_MAJOR
#undef TILEWRIGHT_WGMMA_16
#undef TILEWRIGHT_WGMMA_ASM
#undef TILEWRIGHT_UNWRAP

}  // namespace tilewright::ptx
