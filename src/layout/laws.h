// How the layout algebra says no: one function per law, named after it.
//
// At run time each throws InvalidArgument and names the operands. None is constexpr, on purpose:
// when a constant breaks a law, the compiler stops with "call to non-constexpr function law::<the
// law>", which is the message.
//
// A GPU cannot throw, and a layout with a run-time coordinate would be an array of 1,700 bytes and
// loops over it in every thread. So device code has layouts as constants only (layout/constant.h
// takes run-time coordinates), and anything else does not assemble: laws, and what builds or reads
// a layout while the kernel runs, call functions that no device has, and ptxas names them.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TILEWRIGHT_LAW [[noreturn]] __host__ __device__ void
extern "C" __device__ void
layouts_must_be_constants_in_device_code__pass_run_time_coordinates_to_offset_in();
#else
#define TILEWRIGHT_LAW [[noreturn]] void
#endif

namespace tilewright {

struct IntTuple;
struct Layout;

namespace law {

/// What builds or reads a layout calls this first.
constexpr void must_be_a_constant_in_device_code() {
#ifdef __CUDA_ARCH__
  if (!__builtin_is_constant_evaluated())
    layouts_must_be_constants_in_device_code__pass_run_time_coordinates_to_offset_in();
#endif
}

// Tuples
TILEWRIGHT_LAW mode_must_exist(int mode, int rank);
TILEWRIGHT_LAW a_must_have_as_many_modes_as_b(const char* operation, int rank_a, int rank_b);
TILEWRIGHT_LAW shape_and_stride_must_be_nested_alike(const IntTuple& shape, const IntTuple& stride);
TILEWRIGHT_LAW coordinate_must_be_nested_like_the_shape(const IntTuple& crd, const IntTuple& shape);
TILEWRIGHT_LAW order_must_be_nested_like_the_shape(const IntTuple& order, const IntTuple& shape);
TILEWRIGHT_LAW extents_must_be_positive(const IntTuple& shape);
TILEWRIGHT_LAW product_must_fit_in_63_bits(std::int64_t a, std::int64_t b);
TILEWRIGHT_LAW a_number_and_a_tuple_have_no_sum(const IntTuple& a, const IntTuple& b);
/// OutOfMemory: a layout has room for kMaxLeaves leaves and kMaxNodes nodes.
TILEWRIGHT_LAW must_fit_the_capacity_of_a_layout(const char* what, int needed, int available);

// Layouts
TILEWRIGHT_LAW coordinate_layouts_have_no_offsets(const char* operation, const Layout& a);
TILEWRIGHT_LAW coordinates_must_be_flat(const Layout& a);
TILEWRIGHT_LAW offset_must_be_reached(const Layout& a, std::int64_t offset);
TILEWRIGHT_LAW strides_of_b_must_divide_the_extents_of_a_they_cross(const Layout& a,
                                                                    const Layout& b);
TILEWRIGHT_LAW extents_of_b_must_be_multiples_of_the_parts_of_a_they_fill(const Layout& a,
                                                                          const Layout& b);
TILEWRIGHT_LAW modes_of_b_must_not_carry_from_one_extent_of_a_into_the_next(const Layout& a,
                                                                            const Layout& b);
TILEWRIGHT_LAW complement_needs_an_injective_layout_with_nested_strides(const Layout& a);
TILEWRIGHT_LAW tiled_modes_must_be_pairs(const Layout& pairs);
TILEWRIGHT_LAW operand_values_must_divide_the_accumulators(const IntTuple& operand,
                                                           const IntTuple& accumulator);

// Widths
TILEWRIGHT_LAW upcast_must_merge_contiguous_whole_elements(const Layout& a, std::int64_t n);
TILEWRIGHT_LAW one_width_must_be_a_multiple_of_the_other(std::int64_t old_bits,
                                                         std::int64_t new_bits);
TILEWRIGHT_LAW swizzles_recast_by_powers_of_two(std::int64_t ratio);
TILEWRIGHT_LAW swizzle_must_keep_the_wider_element_together(std::int64_t new_bits);
TILEWRIGHT_LAW offset_must_be_whole_elements(const IntTuple& offset, std::int64_t new_bits);

// Accesses
TILEWRIGHT_LAW an_access_is_1_2_4_8_or_16_bytes(std::int64_t bytes);
TILEWRIGHT_LAW values_of_a_vector_must_be_contiguous(const Layout& thread_value);
TILEWRIGHT_LAW an_operand_must_be_contiguous_along_mn_or_k(const Layout& tile);
TILEWRIGHT_LAW tile_must_be_whole_atoms(const IntTuple& tile, const IntTuple& atom);

}  // namespace law
}  // namespace tilewright
