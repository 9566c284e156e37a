// Which register of which thread holds which element of a matrix operand: the index formulas of the
// PTX manual, one per operand. Written from the manual's text and from nothing else, so that they
// are a second witness beside the layouts that kernels use.
// Source: PTX ISA, "Matrix Fragments for mma.m8n8k4 / mma.m16n8k*" and "Register Fragments for
// wgmma.mma_async.m64n*k*".
#pragma once

namespace tilewright::sim {

/// A place in an operand. `row` counts rows of A, C and D, but columns of B; `col` counts columns
/// of C and D, but k of A and B. So A is [m][k], B is [n][k], C and D are [m][n].
struct FragmentElement {
  int row;
  int col;

  constexpr bool operator==(const FragmentElement&) const = default;
};

/// Registers of one thread that hold an operand, and how many elements each has.
struct FragmentExtents {
  int registers;
  int elems_per_register;
};

/// An operand element type by its width; 8 bytes is f64. All types of one width share fragments.
enum class FragmentWidth { k1Bit = 1, k4Bit = 4, k8Bit = 8, k16Bit = 16, k32Bit = 32, k64Bit = 64 };

constexpr int bits_of(FragmentWidth width) {
  return static_cast<int>(width);
}

// ---- mma.sync.m16n8k*: 32 lanes -----------------------------------------------------------------
//
// The manual states A and B in groups of 32 bits (64 for f64): with groupID = lane / 4 and
// threadID_in_group = lane % 4, a lane has in row groupID + 8*i the elements P*threadID_in_group +
// 0..P-1 of every 4P columns, P elements to a register. Rows alternate first, then columns.

/// Registers of A or B, of `rows` (16 or 8) and k. A register has 32 bits, or one f64.
constexpr FragmentExtents mma_operand_extents(int rows, int k, FragmentWidth width) {
  const int register_bits = width == FragmentWidth::k64Bit ? 64 : 32;
  const int elems_per_register = register_bits / bits_of(width);
  return {rows * k / 32 / elems_per_register, elems_per_register};
}

/// A of m16n8k*: k = 8, 16 (16-bit); 4, 8 (tf32); 16, 32 (8-bit); 32, 64 (4-bit); 128, 256 (1-bit);
/// 4, 8, 16 (f64). Element `elem` of register `reg`:
///     row = groupID + 8 * (reg % 2),  k = P * threadID_in_group + elem + 4P * (reg / 2)
constexpr FragmentElement mma_a_element(FragmentWidth width, int lane, int reg, int elem) {
  const int per_register = width == FragmentWidth::k64Bit ? 1 : 32 / bits_of(width);
  const int group = lane / 4;
  const int in_group = lane % 4;
  return {group + 8 * (reg % 2), per_register * in_group + elem + 4 * per_register * (reg / 2)};
}

/// B of m16n8k*: column groupID, k = P * threadID_in_group + elem + 4P * reg.
constexpr FragmentElement mma_b_element(FragmentWidth width, int lane, int reg, int elem) {
  const int per_register = width == FragmentWidth::k64Bit ? 1 : 32 / bits_of(width);
  const int group = lane / 4;
  const int in_group = lane % 4;
  return {group, per_register * in_group + elem + 4 * per_register * reg};
}

/// Element i of a lane's four of C or D of m16n8 (f32, s32 and f64: register i; f16: half i % 2 of
/// register i / 2).
///     row = groupID + 8 * (i / 2),  col = 2 * threadID_in_group + i % 2
constexpr FragmentElement mma_c_element(int lane, int i) {
  return {lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2};
}

// ---- mma.sync.m8n8k4 with f64 -------------------------------------------------------------------

/// A: row lane / 4, k = lane % 4. B: column lane / 4, k = lane % 4. One register each.
constexpr FragmentElement mma_m8n8k4_f64_operand_element(int lane) {
  return {lane / 4, lane % 4};
}

/// Register i (0, 1) of C or D.
constexpr FragmentElement mma_m8n8k4_f64_c_element(int lane, int i) {
  return {lane / 4, 2 * (lane % 4) + i};
}

// ---- wgmma.mma_async.m64n*k*: 128 threads of a warpgroup ----------------------------------------

/// Element i of a thread's N/2 of D (f32, s32: register i; f16: half i % 2 of register i / 2).
constexpr FragmentElement wgmma_d_element(int thread, int i) {
  const int warp = thread / 32;
  const int group = thread % 32 / 4;
  const int in_group = thread % 4;
  return {16 * warp + group + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * in_group + i % 2};
}

/// A in registers, 16-bit types, k = 16: half i (0..7) of four registers.
constexpr FragmentElement wgmma_a16_element(int thread, int i) {
  const int warp = thread / 32;
  const int group = thread % 32 / 4;
  const int in_group = thread % 4;
  return {16 * warp + group + 8 * (i / 2 % 2), 2 * in_group + i % 2 + 8 * (i / 4)};
}

/// A in registers, 8-bit types, k = 32: byte i (0..15) of four registers.
constexpr FragmentElement wgmma_a8_element(int thread, int i) {
  const int warp = thread / 32;
  const int group = thread % 32 / 4;
  const int in_group = thread % 4;
  return {16 * warp + group + 8 * (i / 4 % 2), 4 * in_group + i % 4 + 16 * (i / 8)};
}

/// A in registers, tf32, k = 8: register i (0..3).
constexpr FragmentElement wgmma_a32_element(int thread, int i) {
  const int warp = thread / 32;
  const int group = thread % 32 / 4;
  const int in_group = thread % 4;
  return {16 * warp + group + 8 * (i % 2), in_group + 4 * (i / 2)};
}

/// A in registers, 1-bit, k = 256: bit i (0..127) of four registers.
constexpr FragmentElement wgmma_a1_element(int thread, int i) {
  const int warp = thread / 32;
  const int group = thread % 32 / 4;
  const int in_group = thread % 4;
  return {16 * warp + group + 8 * (i / 32 % 2), 32 * in_group + i % 32 + 128 * (i / 64)};
}

// ---- ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements -----------------------------

/// Half `elem` (0, 1) of the register that a lane has of one m8n8 matrix. With .trans, `row` and
/// `col` change places.
constexpr FragmentElement matrix_m8n8_element(int lane, int elem) {
  return {lane / 4, 2 * (lane % 4) + elem};
}

/// The lane whose address points to row `row` of matrix `matrix` of ldmatrix and stmatrix.
constexpr int matrix_address_lane(int matrix, int row) {
  return 8 * matrix + row;
}

}  // namespace tilewright::sim
