#include "sim/insn/memory_operand.h"

namespace tilewright::sim {
namespace {

template <class To, class From>
void extend(std::byte* row, const std::byte* values, std::uint32_t active) {
  From from[kLanes];
  To to[kLanes];
  std::memcpy(from, values, sizeof from);
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = static_cast<To>(from[lane]);
  write_row(reinterpret_cast<To*>(row), to, active);
}

template <class From>
void extend_from(std::byte* row, std::uint32_t to_bytes, const std::byte* values,
                 std::uint32_t active) {
  switch (to_bytes) {
    case 1:
      return extend<std::int8_t, From>(row, values, active);
    case 2:
      return extend<std::int16_t, From>(row, values, active);
    case 4:
      return extend<std::int32_t, From>(row, values, active);
    case 8:
      return extend<std::int64_t, From>(row, values, active);
    default:
      break;
  }
  Bytes16 to[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    From from;
    std::memcpy(&from, values + std::size_t(lane) * sizeof(From), sizeof from);
    const auto wide = static_cast<std::int64_t>(from);
    to[lane] = {static_cast<std::uint64_t>(wide), from < From{0} ? ~std::uint64_t{0} : 0};
  }
  write_row(reinterpret_cast<Bytes16*>(row), to, active);
}

}  // namespace

AddressSpace take_space(Lowering& l) {
  struct Name {
    std::string_view modifier;
    AddressSpace space;
  };
  constexpr Name kNames[] = {
      {"global", AddressSpace::kGlobal},         {"shared", AddressSpace::kSharedCta},
      {"shared::cta", AddressSpace::kSharedCta}, {"shared::cluster", AddressSpace::kSharedCluster},
      {"local", AddressSpace::kLocal},           {"const", AddressSpace::kGlobal},
      {"param", AddressSpace::kParam},           {"param::entry", AddressSpace::kParam},
      {"param::func", AddressSpace::kLocal},
  };
  for (const Name& name : kNames) {
    if (l.take(name.modifier)) return name.space;
  }
  return AddressSpace::kGeneric;
}

MemoryScope take_scope(Lowering& l) {
  constexpr MemoryScope kScopes[] = {MemoryScope::kCta, MemoryScope::kCluster, MemoryScope::kGpu,
                                     MemoryScope::kSystem};
  const int scope = l.take_one_of({"cta", "cluster", "gpu", "sys"});
  return scope < 0 ? MemoryScope::kNone : kScopes[scope];
}

MemoryOrder take_order(Lowering& l) {
  constexpr MemorySemantics kSemantics[] = {
      MemorySemantics::kWeak,       MemorySemantics::kVolatile, MemorySemantics::kRelaxed,
      MemorySemantics::kAcquire,    MemorySemantics::kRelease,  MemorySemantics::kAcquireRelease,
      MemorySemantics::kSequential,
  };
  MemoryOrder order;
  l.take("mmio");
  const int semantics =
      l.take_one_of({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc"});
  if (semantics >= 0) order.semantics = kSemantics[semantics];
  order.scope = take_scope(l);
  return order;
}

bool take_cache_hints(Lowering& l) {
  bool has_policy = false;
  l.take_one_of({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  l.take("nc");
  while (!l.take_prefix("L1::").empty()) continue;
  for (auto hint = l.take_prefix("L2::"); !hint.empty(); hint = l.take_prefix("L2::")) {
    has_policy |= hint == "L2::cache_hint";
  }
  return has_policy;
}

AddressForm address_form(Lowering& l, int operand_idx, AddressSpace space) {
  const Address address = l.address(operand_idx);
  AddressForm form;
  form.base = address.base;
  form.is_wide = address.is_wide;
  form.offset = address.offset;
  form.space = space;
  const bool is_variable = address.base == kNoRow && address.space != Space::kGeneric;
  if (is_variable && space == AddressSpace::kGeneric) {
    switch (address.space) {
      case Space::kShared:
        form.space = AddressSpace::kSharedCta;
        break;
      case Space::kLocal:
        form.space = AddressSpace::kLocal;
        break;
      case Space::kParam:
        form.space = AddressSpace::kParam;
        break;
      default:
        form.space = AddressSpace::kGlobal;
        break;
    }
  }
  // In a frame a variable's address has a base (exec/call_frame.h).
  if (space == AddressSpace::kGeneric && address.space == Space::kLocal) {
    form.space = AddressSpace::kLocal;
  }
  form.is_own_shared = is_variable && address.space == Space::kShared;
  // The parameters of functions and of calls are variables of the thread.
  if (form.space == AddressSpace::kParam) {
    const bool is_kernel_param = is_variable ? address.is_kernel_param : l.function().is_entry;
    if (!is_kernel_param) form.space = AddressSpace::kLocal;
  }
  return form;
}

void reads_address(Lowering& l, const AddressForm& form) {
  if (form.base != kNoRow) l.also_reads(form.base);
}

int take_vector(Lowering& l) {
  const int vector = l.take_one_of({"v2", "v4", "v8"});
  return vector < 0 ? 1 : 2 << vector;
}

void extend_row(std::byte* row, std::uint32_t to_bytes, const std::byte* values,
                std::uint32_t from_bytes, bool is_signed, std::uint32_t active) {
  switch (from_bytes) {
    case 1:
      return is_signed ? extend_from<std::int8_t>(row, to_bytes, values, active)
                       : extend_from<std::uint8_t>(row, to_bytes, values, active);
    case 2:
      return is_signed ? extend_from<std::int16_t>(row, to_bytes, values, active)
                       : extend_from<std::uint16_t>(row, to_bytes, values, active);
    case 4:
      return is_signed ? extend_from<std::int32_t>(row, to_bytes, values, active)
                       : extend_from<std::uint32_t>(row, to_bytes, values, active);
    default:
      return is_signed ? extend_from<std::int64_t>(row, to_bytes, values, active)
                       : extend_from<std::uint64_t>(row, to_bytes, values, active);
  }
}

void truncate_row(std::byte* values, std::uint32_t to_bytes, const std::byte* row,
                  std::uint32_t from_bytes) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::memcpy(values + lane * to_bytes, row + lane * from_bytes, to_bytes);
  }
}

}  // namespace tilewright::sim
