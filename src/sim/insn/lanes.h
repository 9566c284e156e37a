// From an operation on values to an instruction on rows.
//
//     std::uint32_t add(std::uint32_t a, std::uint32_t b) { return a + b; }
//     ExecFn exec = lanes<add>;   // op[0] = add(op[1], op[2]) in every active lane
//
// The operation is computed for all lanes, which the compiler turns into vector instructions, and
// then blended: it must therefore be defined for every input. A bool is a bit of a predicate row.
#pragma once

#include "sim/state/insn.h"
#include "sim/state/warp.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tilewright::sim {

/// A lane of a .b128 register.
struct Bits128 {
  std::uint64_t low = 0, high = 0;
};

template <class T>
struct LaneSource {
  const T* values;
  LaneSource(Warp& warp, Row row) : values(warp.row<T>(row)) {}
  T operator[](int lane) const { return values[lane]; }
};

template <>
struct LaneSource<bool> {
  std::uint32_t mask;
  LaneSource(Warp& warp, Row row) : mask(warp.predicate(row)) {}
  bool operator[](int lane) const { return ((mask >> lane) & 1) != 0; }
};

/// An unsigned integer of so many bytes: lanes are chosen by masks, which vectorise where
/// conditions do not.
template <std::size_t kBytes>
using Word = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

/// All ones if the lane's bit is set in `lanes`, else 0.
template <class W>
inline W lane_word(std::uint32_t lanes, int lane) {
  using Computed = std::conditional_t<sizeof(W) == 8, std::uint64_t, std::uint32_t>;
  return static_cast<W>(Computed{0} - ((Computed{lanes} >> static_cast<Computed>(lane)) & 1));
}

/// d[lane] = the lane's bit in `lanes` ? a[lane] : b[lane]
template <class T>
inline void select_lanes(T* d, std::uint32_t lanes, const T* a, const T* b) {
  if constexpr (sizeof(T) > 8) {
    for (int lane = 0; lane < kLanes; ++lane) {
      d[lane] = ((lanes >> lane) & 1) != 0 ? a[lane] : b[lane];
    }
  } else {
    using W = Word<sizeof(T)>;
    auto* to = reinterpret_cast<W*>(d);
    const auto* if_set = reinterpret_cast<const W*>(a);
    const auto* if_clear = reinterpret_cast<const W*>(b);
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) {
      const W mask = lane_word<W>(lanes, lane);
      to[lane] = static_cast<W>((if_set[lane] & mask) | (if_clear[lane] & ~mask));
    }
  }
}

/// d[lane] = values[lane] for the lanes of `active`.
template <class T>
inline void blend(T* d, const T* values, std::uint32_t active) {
  select_lanes(d, active, values, d);
}

template <class Function>
struct LaneLoop;

template <class D, class... S>
struct LaneLoop<D (*)(S...)> {
  using Result = D;
  using Sources = std::tuple<LaneSource<S>...>;

  template <std::size_t... kIdx>
  static Sources sources(Warp& warp, const Row* rows, std::index_sequence<kIdx...>) {
    return Sources(LaneSource<S>(warp, rows[kIdx])...);
  }
  static Sources sources(Warp& warp, const Row* rows) {
    return sources(warp, rows, std::index_sequence_for<S...>{});
  }
  template <auto kOp>
  static D value(const Sources& sources, int lane) {
    return std::apply([lane](const auto&... source) { return kOp(source[lane]...); }, sources);
  }
};

template <auto kOp>
using LoopOf = LaneLoop<decltype(+kOp)>;

/// The lanes for which an operation on `rows` says true.
template <auto kOp>
inline std::uint32_t lane_mask(Warp& warp, const Row* rows) {
  using Loop = LoopOf<kOp>;
  const auto sources = Loop::sources(warp, rows);
  std::uint32_t bits = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    bits |= static_cast<std::uint32_t>(Loop::template value<kOp>(sources, lane)) << lane;
  }
  return bits;
}

template <auto kOp>
Step lanes(Warp& warp, const Insn& insn, std::uint32_t active) {
  using Loop = LoopOf<kOp>;
  using D = typename Loop::Result;
  if constexpr (std::is_same_v<D, bool>) {
    warp.set_predicate(insn.op[0], active, lane_mask<kOp>(warp, &insn.op[1]));
  } else {
    const auto sources = Loop::sources(warp, &insn.op[1]);
    alignas(64) D blended[kLanes];
    D* const d = warp.row<D>(insn.op[0]);
    D* const out = active == kAllLanes ? d : blended;
#pragma GCC ivdep
    for (int lane = 0; lane < kLanes; ++lane) {
      out[lane] = Loop::template value<kOp>(sources, lane);
    }
    if (active != kAllLanes) blend(d, blended, active);
  }
  return Step::kNext;
}

/// The same for operations that no vector instruction exists for: only the active lanes.
template <auto kOp>
Step lanes_one_by_one(Warp& warp, const Insn& insn, std::uint32_t active) {
  using Loop = LoopOf<kOp>;
  const auto sources = Loop::sources(warp, &insn.op[1]);
  auto* const d = warp.row<typename Loop::Result>(insn.op[0]);
  for (std::uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    d[lane] = Loop::template value<kOp>(sources, lane);
  }
  return Step::kNext;
}

}  // namespace tilewright::sim
