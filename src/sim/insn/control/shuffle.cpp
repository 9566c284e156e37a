// shfl.sync: lanes read each other's registers.
#include "sim/insn/control/lane_sync.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

enum class ShuffleMode { kUp, kDown, kButterfly, kIndex };

struct Source {
  int lane;
  bool is_in_range;
};

template <ShuffleMode mode>
Source source_of(int lane, std::uint32_t b, std::uint32_t c) {
  const int distance = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(c & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int first = lane & segment;
  const int last = first | (clamp & ~segment);
  int from = lane;
  bool is_in_range = false;
  switch (mode) {
    case ShuffleMode::kUp:
      from = lane - distance;
      is_in_range = from >= last;
      break;
    case ShuffleMode::kDown:
      from = lane + distance;
      is_in_range = from <= last;
      break;
    case ShuffleMode::kButterfly:
      from = lane ^ distance;
      is_in_range = from <= last;
      break;
    case ShuffleMode::kIndex:
      from = first | (distance & ~segment);
      is_in_range = from <= last;
      break;
  }
  return {is_in_range ? from : lane, is_in_range};
}

// op: d, p, a, b, c, mask
template <ShuffleMode mode>
Step shuffle(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[5], active)) return Step::kRetry;
  const auto* a = warp.row<std::uint32_t>(insn.op[2]);
  const auto* b = warp.row<std::uint32_t>(insn.op[3]);
  const auto* c = warp.row<std::uint32_t>(insn.op[4]);
  std::uint32_t result[kLanes];
  std::uint32_t in_range = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const Source source = source_of<mode>(lane, b[lane], c[lane]);
    result[lane] = a[source.lane & 31];
    in_range |= static_cast<std::uint32_t>(source.is_in_range) << lane;
  }
  write_row(warp.row<std::uint32_t>(insn.op[0]), result, active);
  if (insn.op[1] != kNoRow) warp.set_predicate(insn.op[1], active, in_range);
  return Step::kNext;
}

void lower_shfl(Lowering& l) {
  constexpr ExecFn kModes[] = {shuffle<ShuffleMode::kUp>, shuffle<ShuffleMode::kDown>,
                               shuffle<ShuffleMode::kButterfly>, shuffle<ShuffleMode::kIndex>};
  const int mode = l.take_one_of({"up", "down", "bfly", "idx"});
  if (mode < 0) l.fail("expected .up, .down, .bfly or .idx");
  if (l.type() != Type::kB32) l.fail("shfl.sync moves .b32");
  l.finish_modifiers();
  const auto [d, p] = l.destination_pair(0, Type::kB32);
  l.emit(kModes[mode],
         {d, p, l.source(1, Type::kB32), l.source(2, Type::kB32), l.source(3, Type::kB32),
          l.source(4, Type::kB32)},
         2);
}

const InsnRow kShuffleRows[] = {
    {"shfl.sync", "shfl.sync.{up,down,bfly,idx}.b32 d[|p], a, b, c, membermask;", 30,
     InsnClass::kShuffle, lower_shfl},
};

}  // namespace

const InsnSection& shuffle_section() {
  static const InsnSection section{"Shuffles", kShuffleRows};
  return section;
}

}  // namespace tilewright::sim
