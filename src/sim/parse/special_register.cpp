#include "sim/parse/special_register.h"

#include <charconv>

namespace tilewright::sim {
namespace {

using Special = SpecialRegister;

struct NamedRegister {
  std::string_view name;
  Special which;
  bool has_components = false;
};

constexpr NamedRegister kNames[] = {
    {"%tid", Special::kTid, true},
    {"%ntid", Special::kNtid, true},
    {"%ctaid", Special::kCtaid, true},
    {"%nctaid", Special::kNctaid, true},
    {"%clusterid", Special::kClusterid, true},
    {"%nclusterid", Special::kNclusterid, true},
    {"%cluster_ctaid", Special::kClusterCtaid, true},
    {"%cluster_nctaid", Special::kClusterNctaid, true},
    {"%laneid", Special::kLaneid},
    {"%warpid", Special::kWarpid},
    {"%nwarpid", Special::kNwarpid},
    {"%smid", Special::kSmid},
    {"%nsmid", Special::kNsmid},
    {"%gridid", Special::kGridid},
    {"%is_explicit_cluster", Special::kIsExplicitCluster},
    {"%cluster_ctarank", Special::kClusterCtarank},
    {"%cluster_nctarank", Special::kClusterNctarank},
    {"%lanemask_eq", Special::kLanemaskEq},
    {"%lanemask_le", Special::kLanemaskLe},
    {"%lanemask_lt", Special::kLanemaskLt},
    {"%lanemask_ge", Special::kLanemaskGe},
    {"%lanemask_gt", Special::kLanemaskGt},
    {"%clock", Special::kClock},
    {"%clock_hi", Special::kClockHi},
    {"%clock64", Special::kClock64},
    {"%globaltimer", Special::kGlobaltimer},
    {"%globaltimer_lo", Special::kGlobaltimerLo},
    {"%globaltimer_hi", Special::kGlobaltimerHi},
    {"%total_smem_size", Special::kTotalSmemSize},
    {"%aggr_smem_size", Special::kAggrSmemSize},
    {"%dynamic_smem_size", Special::kDynamicSmemSize},
    {"%reserved_smem_offset_begin", Special::kReservedSmemOffsetBegin},
    {"%reserved_smem_offset_end", Special::kReservedSmemOffsetEnd},
    {"%reserved_smem_offset_cap", Special::kReservedSmemOffsetCap},
    {"%current_graph_exec", Special::kCurrentGraphExec},
};

struct NumberedRow {
  std::string_view prefix, suffix;
  Special which;
  std::uint8_t count;
};

constexpr NumberedRow kNumbered[] = {
    {"%envreg", "", Special::kEnvreg, 32},
    {"%pm", "", Special::kPm, 8},
    {"%pm", "_64", Special::kPm64, 8},
    {"%reserved_smem_offset_", "", Special::kReservedSmemOffset, 2},
};

}  // namespace

std::optional<SpecialRegisterName> find_special_register(std::string_view name) noexcept {
  for (const NamedRegister& row : kNames) {
    if (row.name == name) return SpecialRegisterName{row.which, row.has_components, std::nullopt};
  }
  for (const NumberedRow& row : kNumbered) {
    if (!name.starts_with(row.prefix) || !name.ends_with(row.suffix)) continue;
    if (name.size() <= row.prefix.size() + row.suffix.size()) continue;
    const char* first = name.data() + row.prefix.size();
    const char* last = name.data() + name.size() - row.suffix.size();
    std::uint8_t number = 0;
    const auto [end, error] = std::from_chars(first, last, number);
    const bool has_leading_zero = *first == '0' && last - first > 1;
    if (error != std::errc() || end != last || number >= row.count || has_leading_zero) continue;
    return SpecialRegisterName{row.which, false, number};
  }
  return std::nullopt;
}

std::vector<std::string_view> special_register_names() {
  std::vector<std::string_view> names;
  for (const NamedRegister& row : kNames) names.push_back(row.name);
  return names;
}

}  // namespace tilewright::sim
