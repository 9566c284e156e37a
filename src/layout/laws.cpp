#include "layout/laws.h"

#include "base/error.h"
#include "layout/print.h"

namespace tilewright::law {

namespace {

constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;

}  // namespace

void mode_must_exist(int mode, int rank) {
  fail(kInvalid, "mode {} does not exist; there are {} modes, numbered from 0", mode, rank);
}
void a_must_have_as_many_modes_as_b(const char* operation, int rank_a, int rank_b) {
  fail(kInvalid,
       "{}: A has {} modes, B has {}: work by mode needs as many modes in A as in B; group or "
       "append modes",
       operation, rank_a, rank_b);
}
void shape_and_stride_must_be_nested_alike(const IntTuple& shape, const IntTuple& stride) {
  fail(kInvalid, "layout: shape = {}, stride = {}: shape and stride must have the same nesting",
       to_string(shape), to_string(stride));
}
void coordinate_must_be_nested_like_the_shape(const IntTuple& crd, const IntTuple& shape) {
  fail(kInvalid,
       "coordinate {} in shape {}: a coordinate must have the nesting of the shape, or a coarser "
       "one",
       to_string(crd), to_string(shape));
}
void order_must_be_nested_like_the_shape(const IntTuple& order, const IntTuple& shape) {
  fail(kInvalid,
       "order {} for shape {}: an order must have the nesting of the shape, or a coarser one",
       to_string(order), to_string(shape));
}
void extents_must_be_positive(const IntTuple& shape) {
  fail(kInvalid, "layout: shape = {}: extents must be at least 1", to_string(shape));
}
void product_must_fit_in_63_bits(std::int64_t a, std::int64_t b) {
  fail(kInvalid, "layout: {} * {}: sizes and offsets must stay below 2^63", a, b);
}
void a_number_and_a_tuple_have_no_sum(const IntTuple& a, const IntTuple& b) {
  fail(kInvalid, "coordinates {} and {}: a number and a tuple have no sum", to_string(a),
       to_string(b));
}
void must_fit_the_capacity_of_a_layout(const char* what, int needed, int available) {
  fail(ErrorKind::kOutOfMemory,
       "layout: {} {} needed, there is room for {}; coalesce first, or raise kMaxLeaves and "
       "kMaxNodes",
       needed, what, available);
}

void coordinate_layouts_have_no_offsets(const char* operation, const Layout& a) {
  fail(kInvalid, "{}: A = {} maps to coordinates, not to offsets; use coordinate() or slice()",
       operation, to_string(a));
}
void coordinates_must_be_flat(const Layout& a) {
  fail(kInvalid, "one axis of A = {}: each stride must count along one axis, as in 1@0 or 8@1",
       to_string(a));
}
void offset_must_be_reached(const Layout& a, std::int64_t offset) {
  fail(kInvalid, "coordinate of offset {}: A = {} never reaches it", offset, to_string(a));
}
void strides_of_b_must_divide_the_extents_of_a_they_cross(const Layout& a, const Layout& b) {
  fail(kInvalid,
       "composition A o B: A = {}, B = {}: a stride of B must divide the extents of A that it "
       "crosses, or be a "
       "multiple of them",
       to_string(a), to_string(b));
}
void extents_of_b_must_be_multiples_of_the_parts_of_a_they_fill(const Layout& a, const Layout& b) {
  fail(kInvalid,
       "composition A o B: A = {}, B = {}: an extent of B that goes on beyond an extent of A must "
       "be a multiple of "
       "the part of A that it fills",
       to_string(a), to_string(b));
}
void modes_of_b_must_not_carry_from_one_extent_of_a_into_the_next(const Layout& a,
                                                                  const Layout& b) {
  fail(kInvalid,
       "composition A o B: A = {}, B = {}: the modes of B together must stay within each extent of "
       "A, or the sum of "
       "their offsets is not the offset of their sum",
       to_string(a), to_string(b));
}
void complement_needs_an_injective_layout_with_nested_strides(const Layout& a) {
  fail(kInvalid,
       "complement: A = {}: A must be injective, and each stride a multiple of the extent that the "
       "smaller strides "
       "cover",
       to_string(a));
}
void tiled_modes_must_be_pairs(const Layout& pairs) {
  fail(kInvalid, "zipped divide or product: {}: each tiled mode must be a pair (tile, rest)",
       to_string(pairs));
}
void operand_values_must_divide_the_accumulators(const IntTuple& operand,
                                                 const IntTuple& accumulator) {
  fail(kInvalid,
       "re-reading an accumulator: operand values {}, accumulator values {}: the former must "
       "divide the latter",
       to_string(operand), to_string(accumulator));
}

void upcast_must_merge_contiguous_whole_elements(const Layout& a, std::int64_t n) {
  fail(kInvalid,
       "upcast: A = {} by {}: the {} old elements of a new one must be contiguous, and all there",
       to_string(a), n, n);
}
void one_width_must_be_a_multiple_of_the_other(std::int64_t old_bits, std::int64_t new_bits) {
  fail(kInvalid, "recast from {} to {} bits: one width must be a multiple of the other", old_bits,
       new_bits);
}
void swizzles_recast_by_powers_of_two(std::int64_t ratio) {
  fail(kInvalid, "recast of a swizzle by {}: element widths must differ by a power of two", ratio);
}
void swizzle_must_keep_the_wider_element_together(std::int64_t new_bits) {
  fail(kInvalid,
       "recast of a swizzle to {} bits: the element is wider than what the swizzle keeps together",
       new_bits);
}
void offset_must_be_whole_elements(const IntTuple& offset, std::int64_t new_bits) {
  fail(kInvalid, "recast to {} bits: the offset {} is not a whole number of new elements", new_bits,
       to_string(offset));
}

void an_access_is_1_2_4_8_or_16_bytes(std::int64_t bytes) {
  fail(kInvalid, "bank conflicts: a lane accesses 1, 2, 4, 8 or 16 bytes at once, not {}", bytes);
}
void values_of_a_vector_must_be_contiguous(const Layout& thread_value) {
  fail(kInvalid,
       "bank conflicts: {}: the values of one vector access must be contiguous; use a narrower "
       "vector",
       to_string(thread_value));
}
void an_operand_must_be_contiguous_along_mn_or_k(const Layout& tile) {
  fail(
      kInvalid,
      "operand tile {}: a matrix descriptor can describe tiles (mn, k) in which mn or k has stride "
      "1; lay it out so, or copy it",
      to_string(tile));
}
void tile_must_be_whole_atoms(const IntTuple& tile, const IntTuple& atom) {
  fail(kInvalid, "tile {}: must be a whole number of atoms of {} in each mode", to_string(tile),
       to_string(atom));
}

}  // namespace tilewright::law
