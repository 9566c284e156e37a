// Lineage of values in registers: which element of an accumulator a value was made of.
//
// Every byte of a register has a tag. tcgen05.ld gives tags, arithmetic on one tagged value and
// values without keeps it, moves and conversions carry it along, byte for byte; a result made of
// two values with different tags has none, and neither has what comes from memory, from other lanes
// or out of an instruction that is not known here. So a tag is only where it is certain.
#pragma once

#include "sim/state/code.h"
#include "sim/state/warp.h"

#include <cstdint>
#include <vector>

namespace tilewright::sim {

/// 0: no lineage. Else bits 30..16 the number of a tile (from 1), 15..8 the row, 7..0 the column of
/// the accumulator; bit 31 says that the value has been made narrower than it was there.
using Tag = std::uint32_t;

inline constexpr Tag kNarrowTag = Tag{1} << 31;

struct TagParts {
  std::uint32_t tile = 0, row = 0, column = 0;
};
constexpr Tag make_tag(const TagParts& parts) {
  return parts.tile << 16 | parts.row << 8 | parts.column;
}
constexpr TagParts parts_of(Tag tag) {
  return {tag >> 16 & 0x7fff, tag >> 8 & 255, tag & 255};
}

/// What an instruction does to tags.
enum class LineageRule : std::uint8_t {
  kDrop,         ///< the results have none
  kElements,     ///< element by element, of `element_bytes`
  kBytes,        ///< byte by byte: logic
  kSelect,       ///< selp
  kShift,        ///< shl, shr
  kMove,         ///< mov, with vectors on either side
  kConvert,      ///< cvt of one value
  kResize,       ///< cvt between integers
  kConvertPair,  ///< cvt of two values into one register, the second in the lower half
  kPermute,      ///< prmt
  kLoaded,       ///< tcgen05.ld: the checker sets the tags
};

struct Lineage {
  LineageRule rule = LineageRule::kDrop;
  std::uint8_t element_bytes = 4;  ///< of a source element
  std::uint8_t result_bytes = 4;   ///< of a result: its register, kConvertPair: its element
  std::int64_t selector = -1;      ///< kPermute: if it is an immediate
};

/// By instruction.
std::vector<Lineage> plan_lineage(const KernelCode& code);

/// Of a warp.
class RegisterTags {
 public:
  explicit RegisterTags(const KernelCode& code);

  /// Before an instruction runs.
  void run(Warp& warp, const Insn& insn, const Lineage& lineage, const RowUse& use,
           std::uint32_t active);

  /// Of a register, by its row.
  bool has_tags(Row row) const;
  void clear(Row row);
  /// Of a byte of a lane of a register that is `width` bytes wide.
  Tag at(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t byte) const {
    return tags_[row + lane * width + byte];
  }
  void set(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t byte, Tag tag);

 private:
  struct Use;
  Tag element(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t from,
              std::uint32_t bytes) const;
  void put(Row row, std::uint32_t width, std::uint32_t lane, std::uint32_t from,
           std::uint32_t bytes, Tag tag);
  bool is_usable(const Insn& insn, const Lineage& lineage, const Use& use) const;
  void elements(const Use& use, const Lineage& lineage, std::uint32_t active);
  void bytes(const Use& use, const Lineage& lineage, std::uint32_t active);
  void select(Warp& warp, const Use& use, const Insn& insn, const Lineage& lineage,
              std::uint32_t active);
  void shift(Warp& warp, const Use& use, const Insn& insn, std::uint32_t active);
  void move(const Use& use, const Lineage& lineage, std::uint32_t active);
  void resize(const Use& use, const Lineage& lineage, std::uint32_t active);
  void convert(const Use& use, const Lineage& lineage, std::uint32_t active);
  void permute(Warp& warp, const Use& use, const Insn& insn, const Lineage& lineage,
               std::uint32_t active);

  static constexpr std::uint32_t kUnitBytes = 64;
  static constexpr std::uint32_t kMostUnits = 8;  // .b128

  std::uint32_t predicate_end_;
  std::vector<Tag> tags_;             // by byte of the warp's registers
  std::vector<std::uint8_t> is_set_;  // by 64 bytes: some tag may not be 0
  /// By 64 bytes: how many of them the register has that begins there
  std::vector<std::uint32_t> row_units_;
};

}  // namespace tilewright::sim
