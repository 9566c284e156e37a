// Where lanes point ldmatrix and stmatrix, against the fragments that the words are read as: for
// all lanes, words and halves, at compile time. Kernels state these places by hand.

#include "arch/byte_operand.h"
#include "arch/fragments/matrix_copy.h"
#include "arch/fragments/mma_sync.h"
#include "arch/register_index.h"

#include <gtest/gtest.h>

namespace tilewright::arch {
namespace {

/// Half `half` of word `word` of a lane, in a copy of four matrices: which lane points to its row,
/// and its place in the 16 bytes there, in units of 16 bits.
struct Copied {
  int pointing, column;
};
constexpr Copied copied(int lane, int word, int half, bool is_transposed) {
  const auto at = static_cast<int>(matrix_registers(4, is_transposed)(lane, 2 * word + half));
  return {at % 32, at / 32};
}

/// Column and reduction index of a register's half in the B fragment of m16n8k16.
struct InB {
  int n, k;
};
constexpr InB in_b(int lane, int r, int half) {
  const auto at = static_cast<int>(kMmaM16N8K16.b_tv(lane, 2 * r + half));
  return {at % 8, at / 8};
}

template <class Holds>
constexpr bool for_all_words(Holds&& holds) {
  for (int at = 0; at < 32 * 8; ++at) {
    if (!holds(at / 8, at / 2 % 4, at % 2)) return false;
  }
  return true;
}

// Decode attention (kernels/attention/decode/operands.h), 16 bits. Keys: word i is register i % 2
// of the block of eight keys i / 2. Values: the same of the block of eight dimensions i / 2.
static_assert(for_all_words([](int lane, int i, int half) {
  const Copied at = copied(lane, i, half, false);
  const int key = at.pointing / 16 * 8 + at.pointing % 8, chunk = at.pointing / 8 % 2;
  const InB b = in_b(lane, i % 2, half);
  return key == i / 2 * 8 + b.n && chunk * 8 + at.column == b.k;
}));
static_assert(for_all_words([](int lane, int i, int half) {
  const Copied at = copied(lane, i, half, true);
  const int key = at.pointing / 8 % 2 * 8 + at.pointing % 8, chunk = at.pointing / 16;
  const InB b = in_b(lane, i % 2, half);
  return key == b.k && chunk * 8 + at.column == i / 2 * 8 + b.n;
}));

// The same in e4m3. A word has four dimensions of a key, whose lower and upper pair become
// registers 0 and 1 of step i % 2. Queries have that order: DecodeOperands::query_dim().
static_assert(for_all_words([](int lane, int i, int half) {
  const Copied at = copied(lane, i, half, false);
  const int key = at.pointing / 16 * 8 + at.pointing % 8, step = at.pointing / 8 % 2;
  bool is_right = step == i % 2;
  for (int byte = 0; byte < 2; ++byte) {
    const int pair = half;  // of the word's bytes: 0 and 1, or 2 and 3
    const int dim = 2 * at.column + byte, query_dim = pair * 2 + lane % 4 * 4 + byte;
    const InB b = in_b(lane, pair, byte);
    is_right = is_right && key == i / 2 * 8 + b.n && dim == query_dim;
  }
  return is_right;
}));
// Of values a half has two dimensions of a key. Permuted by 0x3120, the word's lower half has the
// even dimension of both keys, its upper half the odd one: blocks 0 and 1 of 16 dimensions.
// Results have that order: DecodeOperands::dim_of().
static_assert(for_all_words([](int lane, int i, int half) {
  const Copied at = copied(lane, i, half, true);
  const int key = at.pointing / 8 % 2 * 8 + at.pointing % 8, step = at.pointing / 16;
  const InB b = in_b(lane, i % 2, half);
  bool is_right = key == b.k && step == i / 2 && at.column == b.n;
  for (int block = 0; block < 2; ++block) {
    for (int column = 0; column < 2; ++column) {
      // The lane whose column of results is this one's row of the operand.
      const int t = b.n / 2, n = 2 * t + column, dim = 2 * n + block;
      is_right = is_right && block % 2 + column * 2 + t * 4 == dim;
    }
  }
  return is_right;
}));

// Linear layers for many tokens (kernels/linear/wide/epilogue.h): accumulators are 64 rows of
// weights by tokens, and become rows of tokens. With SwiGLU only rows g are results.
template <bool IsSwiglu>
constexpr bool turns_results_over() {
  return for_all_words([](int lane, int j, int half) {
    const Copied at = copied(lane, j, half, true);
    const int matrix = at.pointing / 8;
    const int token = (IsSwiglu ? matrix : matrix / 2) * 8 + at.pointing % 8;
    const int column = (IsSwiglu ? 0 : matrix % 2) * 8 + at.column;
    const int i = accumulator_of(IsSwiglu ? 0 : j % 2, 2 * (IsSwiglu ? j : j / 2)) + half;
    const auto row = static_cast<int>(accumulator_first_row(lane)) + 8 * accumulator_row(i);
    const auto of = static_cast<int>(accumulator_first_column(lane)) + accumulator_column(i);
    return token == of && column == row;
  });
}
static_assert(turns_results_over<false>() && turns_results_over<true>());

// Attention (kernels/attention/epilogue.h): 16 columns of the results of a warp's 16 rows.
static_assert(for_all_words([](int lane, int word, int half) {
  const Copied at = copied(lane, word, half, false);
  const int row = at.pointing % 16, column = at.pointing / 16 * 8 + at.column;
  const int i = operand_source_16bit(0, word) + half;
  return row == static_cast<int>(accumulator_first_row(lane)) + 8 * accumulator_row(i) &&
         column == static_cast<int>(accumulator_first_column(lane)) + accumulator_column(i);
}));

// A lane that pointed elsewhere would be found.
TEST(LoadedOperand, OtherPlacesAreOtherOperands) {
  EXPECT_FALSE(for_all_words([](int lane, int i, int half) {
    const Copied at = copied(lane, i, half, true);
    const int key = at.pointing / 16 * 8 + at.pointing % 8;  // as for keys
    return key == in_b(lane, i % 2, half).k;
  }));
}

}  // namespace
}  // namespace tilewright::arch
