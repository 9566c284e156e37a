// vote, match, redux, elect, activemask: what lanes find out about each other.
#include "sim/insn/control/lane_sync.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <cmath>
#include <cstring>

namespace tilewright::sim {
namespace {

void write_lanes(Warp& warp, Row row, std::uint32_t lanes, std::uint32_t value) {
  auto* d = warp.row<std::uint32_t>(row);
  for (; lanes != 0; lanes &= lanes - 1) d[std::countr_zero(lanes)] = value;
}

enum class Vote { kAll, kAny, kUniform, kBallot };

// op: d, a, mask; imm: flip of a
template <Vote vote>
Step vote_sync(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[2], active)) return Step::kRetry;
  const std::uint32_t ayes = warp.predicate(insn.op[1]) ^ static_cast<std::uint32_t>(insn.imm);
  for_each_team(warp, insn.op[2], active, [&](std::uint32_t team) {
    const std::uint32_t yes = ayes & team;
    if constexpr (vote == Vote::kBallot) {
      write_lanes(warp, insn.op[0], team, yes);
    } else {
      const bool result = vote == Vote::kAll   ? yes == team
                          : vote == Vote::kAny ? yes != 0
                                               : yes == team || yes == 0;
      warp.set_predicate(insn.op[0], team, result ? kAllLanes : 0);
    }
  });
  return Step::kNext;
}

void lower_vote(Lowering& l) {
  constexpr ExecFn kVotes[] = {vote_sync<Vote::kAll>, vote_sync<Vote::kAny>,
                               vote_sync<Vote::kUniform>, vote_sync<Vote::kBallot>};
  if (!l.take("sync")) l.fail("vote without .sync ended with sm_70; use vote.sync with a mask");
  const int vote = l.take_one_of({"all", "any", "uni", "ballot"});
  if (vote < 0) l.fail("expected .all, .any, .uni or .ballot");
  const Type type = l.type();
  if (type != (vote == 3 ? Type::kB32 : Type::kPred)) l.fail("wrong type of result");
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  const auto [a, is_negated] = l.source_predicate(1);
  Insn& insn = l.emit(kVotes[vote], {d, a, l.source(2, Type::kB32)});
  insn.imm = is_negated ? kAllLanes : 0;
}

// op: d, p, a, mask
template <class T>
Step match_any(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[3], active)) return Step::kRetry;
  T a[kLanes];
  std::memcpy(a, warp.row<T>(insn.op[2]), sizeof a);
  for_each_team(warp, insn.op[3], active, [&](std::uint32_t team) {
    for (std::uint32_t rest = team; rest != 0;) {
      const T value = a[std::countr_zero(rest)];
      std::uint32_t same = 0;
      for (std::uint32_t lanes = rest; lanes != 0; lanes &= lanes - 1) {
        const int lane = std::countr_zero(lanes);
        if (a[lane] == value) same |= 1u << lane;
      }
      write_lanes(warp, insn.op[0], same, same);
      rest &= ~same;
    }
  });
  return Step::kNext;
}

template <class T>
Step match_all(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[3], active)) return Step::kRetry;
  T a[kLanes];
  std::memcpy(a, warp.row<T>(insn.op[2]), sizeof a);
  for_each_team(warp, insn.op[3], active, [&](std::uint32_t team) {
    bool is_same = true;
    for (std::uint32_t lanes = team; lanes != 0; lanes &= lanes - 1) {
      is_same &= a[std::countr_zero(lanes)] == a[std::countr_zero(team)];
    }
    write_lanes(warp, insn.op[0], team, is_same ? team : 0);
    if (insn.op[1] != kNoRow) warp.set_predicate(insn.op[1], team, is_same ? kAllLanes : 0);
  });
  return Step::kNext;
}

void lower_match(Lowering& l) {
  const int mode = l.take_one_of({"any", "all"});
  if (mode < 0) l.fail("expected .any or .all");
  if (!l.take("sync")) l.fail("expected .sync");
  const Type type = l.type();
  if (type != Type::kB32 && type != Type::kB64) l.fail("match compares .b32 or .b64");
  l.finish_modifiers();
  const bool is_wide = type == Type::kB64;
  const ExecFn any = is_wide ? match_any<std::uint64_t> : match_any<std::uint32_t>;
  const ExecFn all = is_wide ? match_all<std::uint64_t> : match_all<std::uint32_t>;
  const auto [d, p] = l.destination_pair(0, Type::kB32);
  l.emit(mode == 0 ? any : all, {d, p, l.source(1, type), l.source(2, Type::kB32)}, 2);
}

enum class Reduction { kAdd, kMin, kMax, kAnd, kOr, kXor };

template <Reduction op, class T>
T combine(T x, T y) {
  switch (op) {
    case Reduction::kAdd:
      return static_cast<T>(x + y);
    case Reduction::kMin:
      return y < x ? y : x;
    case Reduction::kMax:
      return x < y ? y : x;
    case Reduction::kAnd:
      return x & y;
    case Reduction::kOr:
      return x | y;
    default:
      return x ^ y;
  }
}

// op: d, a, mask
template <Reduction op, class T>
Step redux(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[2], active)) return Step::kRetry;
  T a[kLanes];
  std::memcpy(a, warp.row<T>(insn.op[1]), sizeof a);
  for_each_team(warp, insn.op[2], active, [&](std::uint32_t team) {
    T result = a[std::countr_zero(team)];
    for (std::uint32_t rest = team & (team - 1); rest != 0; rest &= rest - 1) {
      result = combine<op, T>(result, a[std::countr_zero(rest)]);
    }
    write_lanes(warp, insn.op[0], team, static_cast<std::uint32_t>(result));
  });
  return Step::kNext;
}

// small: 1 = max, 2 = .abs, 4 = .NaN
Step redux_f32(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[2], active)) return Step::kRetry;
  float a[kLanes];
  std::memcpy(a, warp.row<float>(insn.op[1]), sizeof a);
  const bool is_max = (insn.small & 1) != 0, keeps_nan = (insn.small & 4) != 0;
  for_each_team(warp, insn.op[2], active, [&](std::uint32_t team) {
    bool has_nan = false, has_number = false;
    float result = 0;
    for (std::uint32_t rest = team; rest != 0; rest &= rest - 1) {
      float value = a[std::countr_zero(rest)];
      if ((insn.small & 2) != 0) value = std::fabs(value);
      if (std::isnan(value)) {
        has_nan = true;
        continue;
      }
      // -0 < +0
      const bool is_less = value < result || (value == result && std::signbit(value));
      if (!has_number || is_less != is_max) result = value;
      has_number = true;
    }
    const bool is_nan = !has_number || (keeps_nan && has_nan);
    std::uint32_t bits = 0x7fffffff;
    if (!is_nan) std::memcpy(&bits, &result, sizeof bits);
    write_lanes(warp, insn.op[0], team, bits);
  });
  return Step::kNext;
}

ExecFn pick_redux(int op, bool has_sign) {
  using U = std::uint32_t;
  switch (op) {
    case 0:
      return redux<Reduction::kAdd, U>;
    case 1:
      return has_sign ? redux<Reduction::kMin, std::int32_t> : redux<Reduction::kMin, U>;
    case 2:
      return has_sign ? redux<Reduction::kMax, std::int32_t> : redux<Reduction::kMax, U>;
    case 3:
      return redux<Reduction::kAnd, U>;
    case 4:
      return redux<Reduction::kOr, U>;
    default:
      return redux<Reduction::kXor, U>;
  }
}

void lower_redux(Lowering& l) {
  const int op = l.take_one_of({"add", "min", "max", "and", "or", "xor"});
  if (op < 0) l.fail("expected .add .min .max .and .or .xor");
  const bool is_abs = l.take("abs"), keeps_nan = l.take("NaN");
  const Type type = l.type();
  l.finish_modifiers();
  const bool is_extreme = op == 1 || op == 2, is_f32 = type == Type::kF32;
  if (is_f32) need_family_target(l, 100, "redux.sync of .f32");
  const bool is_legal = is_f32    ? is_extreme
                        : op >= 3 ? type == Type::kB32
                                  : type == Type::kU32 || type == Type::kS32;
  if (!is_legal || ((is_abs || keeps_nan) && !is_f32)) l.fail("no such reduction for this type");
  const ExecFn exec = is_f32 ? redux_f32 : pick_redux(op, type == Type::kS32);
  Insn& insn = l.emit(exec, {l.destination(0, type), l.source(1, type), l.source(2, Type::kB32)});
  insn.small =
      static_cast<std::uint8_t>((op == 2 ? 1 : 0) | (is_abs ? 2 : 0) | (keeps_nan ? 4 : 0));
}

// op: d, p, mask
Step elect(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (!have_members_met(warp, insn, insn.op[2], active)) return Step::kRetry;
  for_each_team(warp, insn.op[2], active, [&](std::uint32_t team) {
    write_lanes(warp, insn.op[0], team, static_cast<std::uint32_t>(std::countr_zero(team)));
    if (insn.op[1] != kNoRow) warp.set_predicate(insn.op[1], team, team & (~team + 1));
  });
  return Step::kNext;
}

void lower_elect(Lowering& l) {
  l.finish_modifiers();
  const auto [d, p] = l.destination_pair(0, Type::kB32);
  l.emit(elect, {d, p, l.source(1, Type::kB32)}, 2);
}

Step activemask(Warp& warp, const Insn& insn, std::uint32_t active) {
  write_lanes(warp, insn.op[0], active, active);
  return Step::kNext;
}

void lower_activemask(Lowering& l) {
  l.type();
  l.finish_modifiers();
  l.emit(activemask, {l.destination(0, Type::kB32)});
}

const InsnRow kVoteRows[] = {
    {"vote", "vote.sync.{all,any,uni}.pred d, {!}a, mask; vote.sync.ballot.b32 d, {!}a, mask;", 30,
     InsnClass::kShuffle, lower_vote},
    {"match", "match.any.sync.{b32,b64} d, a, mask; match.all.sync.{b32,b64} d[|p], a, mask;", 70,
     InsnClass::kShuffle, lower_match},
    {"redux.sync", "redux.sync.op{.abs}{.NaN}.{u32,s32,b32,f32} d, a, mask;", 80,
     InsnClass::kShuffle, lower_redux},
    {"elect.sync", "elect.sync d|p, mask;", 90, InsnClass::kShuffle, lower_elect},
    {"activemask", "activemask.b32 d;", 30, InsnClass::kShuffle, lower_activemask},
};

}  // namespace

const InsnSection& vote_section() {
  static const InsnSection section{"Votes and matches", kVoteRows};
  return section;
}

}  // namespace tilewright::sim
