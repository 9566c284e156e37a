#include "layout/tmem_handoff.h"

#include "base/error.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace tilewright {

const char* to_string(TmemVerdict verdict) {
  switch (verdict) {
    case TmemVerdict::kSame:
      return "same places";
    case TmemVerdict::kPack:
      return "pack within the lane";
    case TmemVerdict::kLanes:
      return "change lanes";
  }
  return "?";
}

namespace {

struct Cell {
  int lane, column;
};

Cell cell_of(std::int64_t address) {
  return {static_cast<int>(address >> 16), static_cast<int>(address & 0xFFFF)};
}

// Operand element that occupies the low end of each cell: address -> (row, k).
std::map<std::int64_t, std::pair<int, int>> readers(const Layout& operand, int per_cell) {
  std::map<std::int64_t, std::pair<int, int>> out;
  const auto rows = static_cast<int>(size(operand, 0)),
             k_extent = static_cast<int>(size(operand, 1));
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < k_extent; ++k) {
      const std::int64_t at = operand(make_coord(row, k));
      if (at % per_cell == 0) out.emplace(at / per_cell, std::pair{row, k});
    }
  }
  return out;
}

int count_columns(const std::set<int>& columns) {
  return static_cast<int>(columns.size());
}

}  // namespace

TmemHandoff analyze_tmem_handoff(const Layout& accumulator, const Layout& operand,
                                 int operand_bits) {
  require(operand_bits == 8 || operand_bits == 16 || operand_bits == 32,
          ErrorKind::kInvalidArgument,
          "tmem handoff: operand elements of {} bits; expected 8, 16 or 32", operand_bits);
  require(size(accumulator, 0) == size(operand, 0), ErrorKind::kInvalidArgument,
          "tmem handoff: the accumulator has {} rows, the operand {}; they must agree",
          size(accumulator, 0), size(operand, 0));
  TmemHandoff out;
  out.per_cell = 32 / operand_bits;
  const Layout operand_2d = make_layout(mode(operand, 0), mode(operand, 1));
  const auto read_at = readers(operand_2d, out.per_cell);
  const auto rows = static_cast<int>(size(operand, 0));
  const auto columns = static_cast<int>(std::min(size(accumulator, 1), size(operand, 1)));
  std::set<int> written, read;
  bool changes_lane = false;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      const std::int64_t address = accumulator(make_coord(row, column));
      const std::int64_t target = operand_2d(make_coord(row, column));
      const Cell cell = cell_of(address), wanted = cell_of(target / out.per_cell);
      written.insert(cell.column);
      read.insert(wanted.column);
      ++out.elements;
      if (target == address * out.per_cell) continue;
      ++out.misplaced;
      changes_lane |= cell.lane != wanted.lane;
      const auto reader = read_at.find(address);
      const auto [read_row, read_k] = reader == read_at.end() ? std::pair{-1, -1} : reader->second;
      if (out.examples.size() < 4096) {
        out.examples.push_back({row, column, cell.lane, cell.column, read_row, read_k});
      }
    }
  }
  out.columns_written = count_columns(written);
  out.columns_read = count_columns(read);
  if (out.misplaced > 0) out.verdict = changes_lane ? TmemVerdict::kLanes : TmemVerdict::kPack;
  return out;
}

std::string TmemHandoff::explain() const {
  if (verdict == TmemVerdict::kSame) {
    return fmt::format("All {} elements are read where they were written.\n", elements);
  }
  std::string out = fmt::format(
      "{} of {} elements are read from another place than they were written to. The accumulator "
      "spreads them "
      "over {} columns, one a 32-bit cell; the operand is packed {} to a cell, in {} columns.\n",
      misplaced, elements, columns_written, per_cell, columns_read);
  // Any example will do; one away from the corner that is read as something else says most.
  const auto shown = std::find_if(examples.begin(), examples.end(), [](const TmemMismatch& at) {
    return at.row >= 3 && at.column >= 40 && at.read_k >= 0;
  });
  const auto read =
      std::find_if(examples.begin(), examples.end(), [](const auto& at) { return at.read_k >= 0; });
  const TmemMismatch& at = shown != examples.end()  ? *shown
                           : read != examples.end() ? *read
                                                    : examples.front();
  out +=
      fmt::format("For example: written as accumulator column {} of row {} (lane {}, column {}), ",
                  at.column, at.row, at.lane, at.cell);
  out += at.read_k < 0
             ? "which the operand does not read at all.\n"
             : fmt::format("read as A element{} k = {} of row {}.\n", per_cell > 1 ? "s" : "",
                           per_cell > 1 ? fmt::format("{}-{}", at.read_k, at.read_k + per_cell - 1)
                                        : std::to_string(at.read_k),
                           at.read_row);
  out += verdict == TmemVerdict::kPack
             ? fmt::format(
                   "Remedy: the thread that owns the lane loads its values, converts them, packs "
                   "{} to a "
                   "register (lower k in the lower bits) and stores them again, in {} columns.\n",
                   per_cell, columns_read)
             : std::string(
                   "Remedy: values change lanes as well; go through shared memory, or choose "
                   "shapes whose row layouts agree.\n");
  return out;
}

}  // namespace tilewright
