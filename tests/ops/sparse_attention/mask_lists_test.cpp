// Masks to lists, compared with plain loops: both kinds of entries, blocks, strides that are not
// aligned, pages, lists that are too short.
#include "tilewright/mask_lists.h"

#include "device/internal.h"
#include "reference/sparse_attention/mask_lists.h"
#include "tests/kernels/kernel_test.h"
#include "tests/ops/operator_test.h"

#include <gmock/gmock.h>

namespace tilewright::ops {
namespace {

using device::Buffer;
using ::testing::HasSubstr;

constexpr std::int32_t kUnwritten = 123456789;  // no index, and not the -1 behind them

MaskListsProblem with(MaskListsProblem p, auto change) {
  change(p);
  return p;
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

class MaskListsTest : public ChipTest<MaskListsTest> {
 protected:
  /// `share`: of entries that are set. The mask begins `shift` bytes behind an aligned address.
  static void check(const MaskListsProblem& problem, double share, std::int64_t shift = 0) {
    const MaskLists lists(*device_, problem);
    const MaskListsProblem& p = lists.plan().problem;
    SCOPED_TRACE(lists.plan().to_string());
    const std::int64_t mask_rows = divide_up(p.rows, p.query_block);
    const std::int64_t entries = divide_up(p.keys, p.key_block);
    kernels::Random random(11);
    std::vector<bool> set;
    for (std::int64_t i = 0; i < p.batch * mask_rows * entries; ++i)
      set.push_back(random.uniform(0, 1) < share);
    std::vector<std::uint8_t> bytes(
        static_cast<std::size_t>(shift + p.batch * p.mask_batch_bytes + 1), 0);
    for (std::int64_t i = 0; i < p.batch * mask_rows * entries; ++i) {
      const std::int64_t e = i % entries, row = i / entries % mask_rows,
                         b = i / entries / mask_rows;
      const std::int64_t begin = shift + b * p.mask_batch_bytes + row * p.mask_row_bytes;
      if (!set[static_cast<std::size_t>(i)]) continue;
      if (p.entry == MaskEntry::kBits) {
        bytes[static_cast<std::size_t>(begin + e / 8)] |= static_cast<std::uint8_t>(1 << e % 8);
      } else {  // any value but 0
        bytes[static_cast<std::size_t>(begin + e)] = static_cast<std::uint8_t>(1 << e % 8);
      }
    }
    // Bits behind the last entry of a row do not count.
    if (p.entry == MaskEntry::kBits && entries % 8 != 0)
      for (std::int64_t i = 0; i < p.batch * mask_rows; ++i)
        bytes[static_cast<std::size_t>(shift + i / mask_rows * p.mask_batch_bytes +
                                       i % mask_rows * p.mask_row_bytes + entries / 8)] |=
            static_cast<std::uint8_t>(0xff << entries % 8);
    std::vector<std::int32_t> table;
    const std::int64_t pages = p.page_size > 0 ? divide_up(p.keys, p.page_size) : 0;
    for (std::int64_t i = 0; i < p.batch * p.table_stride; ++i)
      table.push_back(static_cast<std::int32_t>(5 * i % 97));
    const device::Device& inner = opened(*device_);
    const Buffer mask = Buffer::from(inner, bytes), block_table = Buffer::from(inner, table);
    const std::int64_t lines = p.batch * p.rows;
    const auto poisoned = [&](std::int64_t count) {
      return Buffer::from(inner,
                          std::vector<std::int32_t>(static_cast<std::size_t>(count), kUnwritten));
    };
    const Buffer indices = poisoned(lines * p.index_stride);
    const Buffer lengths = poisoned(lines), totals = poisoned(lines);
    lists.run({.mask = kernels::pointer_to<const std::uint8_t>(mask) + shift,
               .indices = kernels::pointer_to<std::int32_t>(indices),
               .lengths = kernels::pointer_to<std::int32_t>(lengths),
               .totals = kernels::pointer_to<std::int32_t>(totals),
               .block_table = kernels::pointer_to<const std::int32_t>(block_table)});
    device_->synchronize();
    EXPECT_LE(pages, p.table_stride);
    const auto got = indices.to_vector<std::int32_t>();
    const auto got_lengths = lengths.to_vector<std::int32_t>();
    const auto got_totals = totals.to_vector<std::int32_t>();
    for (std::int64_t line = 0; line < lines; ++line) {
      const std::int64_t b = line / p.rows, mask_row = line % p.rows / p.query_block;
      const std::vector<std::int64_t> keys =
          reference::list_keys(p.keys, p.key_block, [&](std::int64_t e) {
            return bool(set[static_cast<std::size_t>((b * mask_rows + mask_row) * entries + e)]);
          });
      const auto found = static_cast<std::int64_t>(keys.size());
      const auto at = static_cast<std::size_t>(line);
      ASSERT_EQ(got_lengths[at], std::min(found, p.topk)) << "list " << line;
      ASSERT_EQ(got_totals[at], p.has_totals ? found : kUnwritten) << "list " << line;
      for (std::int64_t i = 0; i < p.index_stride; ++i) {
        std::int64_t expected = i < p.topk ? -1 : kUnwritten;
        if (i < std::min(found, p.topk)) {
          const std::int64_t key = keys[static_cast<std::size_t>(i)];
          expected = key;
          if (p.page_size > 0)
            expected = table[static_cast<std::size_t>(b * p.table_stride + key / p.page_size)] *
                           p.page_size +
                       key % p.page_size;
        }
        ASSERT_EQ(got[static_cast<std::size_t>(line * p.index_stride + i)], expected)
            << "list " << line << ", entry " << i;
      }
    }
  }
};
TILEWRIGHT_ON_EVERY_CHIP(MaskListsTest);

// 100 keys end within a thread's word and within a byte of bits.
const MaskListsProblem kSmall = {.batch = 2, .rows = 3, .keys = 100, .topk = 100};
constexpr MaskEntry kKinds[] = {MaskEntry::kBytes, MaskEntry::kBits};

TEST_P(MaskListsTest, EveryShareOfKeys) {
  for (const MaskEntry entry : kKinds)
    for (const double share : {0.0, 0.02, 0.5, 1.0})
      check(with(kSmall, [&](auto& p) { p.entry = entry; }), share);
}
TEST_P(MaskListsTest, BlocksOfQueriesAndKeys) {
  for (const MaskEntry entry : kKinds)
    for (const auto& [query_block, key_block] :
         {std::pair(2, 1), std::pair(1, 16), std::pair(3, 33)})
      for (const double share : {0.4, 1.0})
        check(with(kSmall,
                   [&, queries = query_block, keys = key_block](auto& p) {
                     p.entry = entry, p.query_block = queries, p.key_block = keys;
                   }),
              share);
}
// A CTA takes 8192 entries a step: here two steps, the second with one entry.
TEST_P(MaskListsTest, MoreEntriesThanAStep) {
  for (const MaskEntry entry : kKinds)
    check({.entry = entry, .rows = 1, .keys = 8193, .topk = 900, .has_totals = true}, 0.1);
}
TEST_P(MaskListsTest, ListsThatAreTooShortAndTotals) {
  for (const MaskEntry entry : kKinds)
    check(with(kSmall, [&](auto& p) { p.entry = entry, p.topk = 17, p.has_totals = true; }), 0.6);
}
TEST_P(MaskListsTest, StridesAndAddressesThatAreNotAligned) {
  for (const MaskEntry entry : kKinds)
    for (const std::int64_t shift : {0, 3, 16})
      check(with(kSmall,
                 [&](auto& p) {
                   p.entry = entry, p.mask_row_bytes = 117, p.mask_batch_bytes = 360;
                   p.index_stride = 104;
                 }),
            0.5, shift);
}
TEST_P(MaskListsTest, SlotsOfPages) {
  for (const std::int64_t page_size : {1, 16, 64})
    check(with(kSmall,
               [&](auto& p) {
                 p.page_size = page_size;
                 p.table_stride = page_size == 16 ? 9 : 0;
               }),
          0.5);
}
TEST_P(MaskListsTest, NoKeysGiveEmptyLists) {
  check(with(kSmall, [](auto& p) { p.keys = 0; }), 1);
}
TEST_P(MaskListsTest, NoRowsLaunchNothing) {
  const MaskLists lists(*device_, with(kSmall, [](auto& p) { p.rows = 0; }));
  EXPECT_TRUE(lists.plan().launches.empty());
  lists.run({});
}
TEST_P(MaskListsTest, RefusesWithValueAndRule) {
  const auto refused = [&](auto change, const char* part) {
    try {
      const MaskLists lists(*device_, with(kSmall, change));
      ADD_FAILURE() << "not refused: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr(part));
    }
  };
  refused([](auto& p) { p.rows = -1; }, "rows = -1; expected 0 to");
  refused([](auto& p) { p.keys = std::int64_t{1} << 31; }, "keys = 2147483648; expected 0 to");
  refused([](auto& p) { p.topk = 0; }, "topk = 0; expected 1 to");
  refused([](auto& p) { p.key_block = 0; }, "key_block = 0; expected 1 to");
  refused([](auto& p) { p.query_block = -2; }, "query_block = -2; expected 1 to");
  refused([](auto& p) { p.index_stride = 99; }, "index_stride = 99; expected at least topk = 100");
  refused([](auto& p) { p.table_stride = 9; }, "table_stride = 9; expected 0 without pages");
  refused([](auto& p) { p.mask_row_bytes = -1; }, "mask_row_bytes = -1; expected 0 or more");
  refused([](auto& p) { p.mask_row_bytes = std::int64_t{1} << 62; },
          "mask_row_bytes = 4611686018427387904; expected 0 or more, at most 2^60 over all");
  refused([](auto& p) { p.batch = p.rows = 1 << 20; }, "fewer than 2^31 lists");
  const MaskLists lists(*device_, with(kSmall, [](auto& p) { p.page_size = 4; }));
  MaskListsArguments a;
  const auto message = [&]() -> std::string {
    try {
      lists.run(a);
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  auto* const address = reinterpret_cast<std::int32_t*>(std::uintptr_t{4096});
  EXPECT_THAT(message(), HasSubstr("the address of mask is null"));
  a.mask = address, a.indices = address, a.lengths = address + 1;
  EXPECT_THAT(message(), HasSubstr("the address of block_table is null"));
}

}  // namespace
}  // namespace tilewright::ops
