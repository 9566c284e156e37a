// How the layout algebra says no: one function per law, named after it.
//
// At run time each throws InvalidArgument and names the operands. None is constexpr, on purpose:
// when a constant breaks a law, the compiler stops with "call to non-constexpr function law::<the
// law>", which is the message.
#pragma once

#include <cstdint>

namespace tilewright {

struct IntTuple;
struct Layout;

namespace law {

// Tuples
[[noreturn]] void mode_must_exist(int mode, int rank);
[[noreturn]] void a_must_have_as_many_modes_as_b(const char* operation, int rank_a, int rank_b);
[[noreturn]] void shape_and_stride_must_be_nested_alike(const IntTuple& shape,
                                                        const IntTuple& stride);
[[noreturn]] void coordinate_must_be_nested_like_the_shape(const IntTuple& crd,
                                                           const IntTuple& shape);
[[noreturn]] void order_must_be_nested_like_the_shape(const IntTuple& order, const IntTuple& shape);
[[noreturn]] void extents_must_be_positive(const IntTuple& shape);
[[noreturn]] void product_must_fit_in_63_bits(std::int64_t a, std::int64_t b);
[[noreturn]] void a_number_and_a_tuple_have_no_sum(const IntTuple& a, const IntTuple& b);
/// OutOfMemory: a layout has room for kMaxLeaves leaves and kMaxNodes nodes.
[[noreturn]] void must_fit_the_capacity_of_a_layout(const char* what, int needed, int available);

// Layouts
[[noreturn]] void coordinate_layouts_have_no_offsets(const char* operation, const Layout& a);
[[noreturn]] void offset_must_be_reached(const Layout& a, std::int64_t offset);
[[noreturn]] void strides_of_b_must_divide_the_extents_of_a_they_cross(const Layout& a,
                                                                       const Layout& b);
[[noreturn]] void extents_of_b_must_be_multiples_of_the_parts_of_a_they_fill(const Layout& a,
                                                                             const Layout& b);
[[noreturn]] void modes_of_b_must_not_carry_from_one_extent_of_a_into_the_next(const Layout& a,
                                                                               const Layout& b);
[[noreturn]] void complement_needs_an_injective_layout_with_nested_strides(const Layout& a);
[[noreturn]] void tiled_modes_must_be_pairs(const Layout& pairs);
[[noreturn]] void operand_values_must_divide_the_accumulators(const IntTuple& operand,
                                                              const IntTuple& accumulator);

// Widths
[[noreturn]] void upcast_must_merge_contiguous_whole_elements(const Layout& a, std::int64_t n);
[[noreturn]] void one_width_must_be_a_multiple_of_the_other(std::int64_t old_bits,
                                                            std::int64_t new_bits);
[[noreturn]] void swizzles_recast_by_powers_of_two(std::int64_t ratio);
[[noreturn]] void swizzle_must_keep_the_wider_element_together(std::int64_t new_bits);
[[noreturn]] void offset_must_be_whole_elements(const IntTuple& offset, std::int64_t new_bits);

// Accesses
[[noreturn]] void an_access_is_1_2_4_8_or_16_bytes(std::int64_t bytes);
[[noreturn]] void values_of_a_vector_must_be_contiguous(const Layout& thread_value);
[[noreturn]] void tile_must_be_whole_atoms(const IntTuple& tile, const IntTuple& atom);

}  // namespace law
}  // namespace tilewright
