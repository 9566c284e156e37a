// Addresses: cvta, isspacep, mapa, getctarank. The windows of the generic space are in warp.h.
#include "sim/insn/lower_forms.h"
#include "sim/insn/sections.h"

namespace tilewright::sim {
namespace {

constexpr InsnClass kClass = InsnClass::kMove;

std::uint64_t same(std::uint64_t address) {
  return address;
}

template <std::uint64_t kWindow>
std::uint64_t to_generic(std::uint64_t address) {
  return kWindow | (address & ~kWindowMask);
}
std::uint64_t from_generic(std::uint64_t address) {
  return address & ~kWindowMask;
}

// A shared address has 32 bits, whatever is in the upper half of its register.
constexpr std::uint64_t kSharedMask = 0xffff'ffff;
std::uint64_t shared_to_generic(std::uint64_t address) {
  return kSharedWindow | (address & kSharedMask);
}
std::uint64_t shared_from_generic(std::uint64_t address) {
  return address & kSharedMask;
}

/// A space of cvta and isspacep: the position in take_state_space's list.
enum class StateSpace : std::uint8_t {
  kGlobal,
  kConst,
  kLocal,
  kParam,
  kShared,
  kSharedCluster,
  kSharedCta
};

StateSpace take_state_space(Lowering& l) {
  const int space = l.take_one_of(
      {"global", "const", "local", "param", "shared", "shared::cluster", "shared::cta"});
  if (space >= 0) return static_cast<StateSpace>(space);
  if (l.take("param::entry")) return StateSpace::kParam;
  l.fail("expected a space such as .shared or .global");
}

ExecFn to_generic_exec(StateSpace space) {
  switch (space) {
    case StateSpace::kGlobal:
    case StateSpace::kConst:
      return lanes<same>;
    case StateSpace::kLocal:
      return lanes<to_generic<kLocalWindow>>;
    case StateSpace::kParam:
      return lanes<to_generic<kParamWindow>>;
    default:
      return lanes<shared_to_generic>;
  }
}

ExecFn from_generic_exec(StateSpace space) {
  switch (space) {
    case StateSpace::kGlobal:
    case StateSpace::kConst:
      return lanes<same>;
    case StateSpace::kLocal:
    case StateSpace::kParam:
      return lanes<from_generic>;
    default:
      return lanes<shared_from_generic>;
  }
}

void lower_cvta(Lowering& l) {
  const bool is_from_generic = l.take("to");
  const StateSpace space = take_state_space(l);
  const Type type = l.type();
  if (type != Type::kU64) l.fail("addresses are 64 bits wide: cvta needs .u64");
  const ExecFn exec = is_from_generic ? from_generic_exec(space) : to_generic_exec(space);
  emit_uniform(l, exec, type, 1);
}

template <std::uint64_t kWindow>
bool lies_in(std::uint64_t address) {
  return (address & kWindowMask) == kWindow;
}
bool lies_in_global(std::uint64_t address) {
  return !lies_in<kSharedWindow>(address) && !lies_in<kLocalWindow>(address) &&
         !lies_in<kParamWindow>(address);
}
/// Constant variables lie among the global ones, where they cannot be told apart.
bool lies_nowhere(std::uint64_t) {
  return false;
}

Step run_is_own_shared(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto* addresses = warp.row<std::uint64_t>(insn.op[1]);
  const std::uint64_t own = kSharedWindow | std::uint64_t{warp.cta->rank} << kSharedRankShift;
  std::uint32_t mask = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    mask |= std::uint32_t{(addresses[lane] & ~std::uint64_t{kSharedOffsetMask}) == own} << lane;
  }
  warp.set_predicate(insn.op[0], active, mask);
  return Step::kNext;
}

void lower_isspacep(Lowering& l) {
  constexpr ExecFn kExecs[] = {lanes<lies_in_global>,
                               lanes<lies_nowhere>,
                               lanes<lies_in<kLocalWindow>>,
                               lanes<lies_in<kParamWindow>>,
                               run_is_own_shared,
                               lanes<lies_in<kSharedWindow>>,
                               run_is_own_shared};
  const StateSpace space = take_state_space(l);
  emit_from(l, kExecs[static_cast<int>(space)], Type::kPred, Type::kU64, 1);
}

template <class T>
T map_to_rank(T address, std::uint32_t rank) {
  constexpr T kRankMask = T{0xff} << kSharedRankShift;
  return (address & ~kRankMask) | (static_cast<T>(rank) << kSharedRankShift & kRankMask);
}
std::uint64_t map_shared_to_rank(std::uint64_t address, std::uint32_t rank) {
  return map_to_rank(address & kSharedMask, rank);
}
template <class T>
std::uint32_t rank_of(T address) {
  return static_cast<std::uint32_t>(address >> kSharedRankShift) & 0xff;
}

Type take_address_type(Lowering& l) {
  const Type type = l.type();
  if (type != Type::kU32 && type != Type::kU64) refuse_type(l, type);
  return type;
}

void lower_mapa(Lowering& l) {
  const ExecFn exec_of_64 =
      l.take("shared::cluster") ? lanes<map_shared_to_rank> : lanes<map_to_rank<std::uint64_t>>;
  const Type type = take_address_type(l);
  l.finish_modifiers();
  const Row d = l.destination(0, type);
  const ExecFn exec = type == Type::kU32 ? lanes<map_to_rank<std::uint32_t>> : exec_of_64;
  l.emit(exec, {d, l.source(1, type), l.source(2, Type::kU32)});
}

void lower_getctarank(Lowering& l) {
  l.take("shared::cluster");
  const Type type = take_address_type(l);
  const ExecFn exec =
      type == Type::kU32 ? lanes<rank_of<std::uint32_t>> : lanes<rank_of<std::uint64_t>>;
  emit_from(l, exec, Type::kU32, type, 1);
}

const InsnRow kMoveAddressRows[] = {
    {"cvta", "cvta{.to}.{global,shared{::cta,::cluster},local,param,const}.u64 d, a;", 20, kClass,
     lower_cvta},
    {"isspacep", "isspacep.{global,shared{::cta,::cluster},local,param,const} p, a;", 20, kClass,
     lower_isspacep},
    {"mapa", "mapa{.shared::cluster}.{u32,u64} d, a, rank;", 90, kClass, lower_mapa},
    {"getctarank", "getctarank{.shared::cluster}.{u32,u64} d, a;", 90, kClass, lower_getctarank},
};

}  // namespace

const InsnSection& address_section() {
  static const InsnSection section{"Addresses", kMoveAddressRows};
  return section;
}

}  // namespace tilewright::sim
