#include "sim/check/init/init_checker.h"

#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <span>

#include <fmt/format.h>

namespace tilewright::sim {

struct InitChecker::Use {
  SpreadRule rule;
  std::span<const Row> written, read;

  Use(const KernelCode& code, const Insn& insn) {
    const auto index = static_cast<std::size_t>(&insn - code.insns.data());
    const RowUse& use = code.uses[index];
    const Row* rows = code.rows.data() + use.begin;
    rule = static_cast<SpreadRule>(code.spread[index]);
    written = {rows, use.num_written};
    read = {rows + use.num_written, use.num_read};
  }
  /// Of a store: what is stored, without the address.
  std::span<const Row> data(const Insn& insn) const {
    return insn.op[0] == kNoRow ? read : read.subspan(1);
  }
};

namespace {

RowUnits units_of(const Warp& warp) {
  return {warp.grid->code->predicate_end};
}

}  // namespace

std::uint32_t InitChecker::defined(const Warp& warp, Row row) const {
  return warp.definedness->lanes[units_of(warp).of(row)];
}

void InitChecker::set(Warp& warp, Row row, std::uint32_t lanes, std::uint32_t value) {
  WarpDefinedness& state = *warp.definedness;
  std::uint32_t& now = state.lanes[units_of(warp).of(row)];
  const bool was_partial = (warp.existing & ~now) != 0;
  now = (now & ~lanes) | (value & lanes);
  if (!state.partial.empty()) [[unlikely]] {
    const auto at = state.partial.find(row);
    for (std::size_t lane = 0; at != state.partial.end() && lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) != 0) at->second[lane] = 0;
    }
  }
  const bool is_partial = (warp.existing & ~now) != 0;
  state.num_partial += static_cast<std::uint32_t>(is_partial) - was_partial;
  if (state.num_partial == 0) warp.undefined_flags = 0;
}

namespace {

constexpr const char* kWriteAll =
    "write all of these bytes before, or leave out those that are not";

}  // namespace

/// Why a value is undefined, as far as it is known.
std::string InitChecker::missing_value(const Warp& warp) {
  const Insn* const load = warp.definedness->load;
  if (load == nullptr) {
    return "it depends on a register that got no value on this path: set it, or guard the use as "
           "the assignment is";
  }
  const KernelCode& code = *warp.grid->code;
  if (warp.definedness->load_mark != 0) {
    const std::lock_guard lock(mutex_);
    const Execution& store = stores_[warp.definedness->load_mark / 2 - 1U].first;
    return fmt::format(
        "it depends on an undefined value that was stored to memory at {} (the warp last read such "
        "at {}), or on a register without a value: give it one before it is stored",
        code.describe(*store.insn), code.describe(*load));
  }
  return fmt::format(
      "it depends on bytes that were never written (the warp last read such at {}), or on a "
      "register without a value: write them before they are read",
      code.describe(*load));
}

void InitChecker::report(Warp& warp, const Insn& insn, std::uint32_t lanes, const char* what,
                         bool is_strict) {
  Finding finding;
  finding.check = is_strict ? "strict" : "init";
  finding.kernel = warp.grid->code->info.name;
  finding.what = what;
  finding.places.push_back(place_of(warp, insn, lanes, "used"));
  const bool is_memory = finding.what.ends_with("never written");
  finding.missing = is_memory ? kWriteAll : missing_value(warp);
  add(std::move(finding));
}

void InitChecker::add(Finding finding) {
  // Unrolled code: many instructions, one line to fix.
  const std::string& source = finding.places.front().source;
  if (!source.empty()) finding.cause = fmt::format("{} {}", finding.what, source);
  findings_.add(std::move(finding));
}

/// `what` is the operation: "a bulk copy".
void InitChecker::report_copy(Warp& warp, const Insn& insn, std::uint32_t lanes, const char* what,
                              const UndefinedBytes& undefined) {
  Finding finding;
  finding.check = "init";
  finding.kernel = warp.grid->code->info.name;
  finding.places.push_back(place_of(warp, insn, lanes, "used"));
  const std::uint64_t begin = undefined.address & ((1U << kSharedRankShift) - 1);
  finding.notes.push_back(fmt::format(
      "undefined are {}bytes {} to {} of what it reads, shared[{:#x}..{:#x}]",
      undefined.count == undefined.last - undefined.first + 1
          ? ""
          : fmt::format("{} of the ", undefined.count),
      undefined.first, undefined.last, begin + undefined.first, begin + undefined.last));
  if (undefined.mark == 0) {
    finding.what = fmt::format("{} of bytes that were never written", what);
    finding.missing = kWriteAll;
  } else {
    const std::lock_guard lock(mutex_);
    const Store& store = stores_[undefined.mark / 2 - 1U];
    finding.what = fmt::format("{} of an undefined value", what);
    finding.places.push_back(place_of(store.first, "stored"));
    finding.missing = store.origin;
  }
  add(std::move(finding));
}

/// For bytes of an undefined value that this instruction stores.
std::uint8_t InitChecker::mark_of(Warp& warp, const Insn& insn, std::uint32_t lanes) {
  constexpr std::size_t kMostStores = 127;
  std::string origin = missing_value(warp);
  const std::lock_guard lock(mutex_);
  auto at = std::ranges::find(stores_, &insn, [](const Store& store) { return store.first.insn; });
  if (at == stores_.end()) {
    if (stores_.size() == kMostStores) return 0;
    stores_.push_back({execution_of(warp, insn, lanes), std::move(origin)});
    at = stores_.end() - 1;
  }
  return static_cast<std::uint8_t>(2 * (at - stores_.begin() + 1));
}

void InitChecker::report_row(Warp& warp, const Insn& insn, Row row, std::uint32_t active,
                             const char* what, bool is_strict) {
  const std::uint32_t undefined = active & ~defined(warp, row);
  if (undefined == 0) return;
  report(warp, insn, undefined, what, is_strict);
  set(warp, row, undefined, kAllLanes);  // said once
}

void InitChecker::check_guard(Warp& warp, const Insn& insn, std::uint32_t lanes) {
  const bool is_branch = (insn.flags & kControl) != 0;
  report_row(warp, insn, insn.guard, lanes,
             is_branch ? "a branch on an undefined value" : "a guard of an undefined value");
}

void InitChecker::before(Warp& warp, const Insn& insn, std::uint32_t lanes, std::uint32_t active) {
  if (insn.guard != kTrueRow) check_guard(warp, insn, lanes);
  if (active == 0) return;
  const Use use(*warp.grid->code, insn);
  switch (use.rule) {
    case SpreadRule::kPlain:
    case SpreadRule::kCopy:
      break;
    case SpreadRule::kSink:
    case SpreadRule::kLoad:
    case SpreadRule::kMatrixLoad:
    case SpreadRule::kMatrixLoadTransposed: {
      const bool is_load = use.rule != SpreadRule::kSink;
      for (const Row row : use.read) {
        report_row(warp, insn, row, active,
                   is_load ? "an address is an undefined value" : "an operand is undefined");
      }
      for (const Row row : use.written) set(warp, row, active, kAllLanes);
      return;
    }
    case SpreadRule::kStore:
    case SpreadRule::kMatrixStore:
    case SpreadRule::kMatrixStoreTransposed:
      if (insn.op[0] != kNoRow) {
        report_row(warp, insn, insn.op[0], active, "an address is an undefined value");
      }
      return;  // the data: when the memory is written
    case SpreadRule::kSelect:
      return select(warp, insn, use, active);
    case SpreadRule::kShuffle:
      return shuffle(warp, insn, active);
    case SpreadRule::kMma:
      return multiply(warp, insn, use);
    case SpreadRule::kWgmma:
      return warpgroup_multiply(warp, insn, use, active);
    case SpreadRule::kAcrossLanes:
      break;
  }
  std::uint32_t all = kAllLanes;
  for (const Row row : use.read) all &= defined(warp, row);
  const bool is_by_bytes = use.rule == SpreadRule::kPlain || use.rule == SpreadRule::kCopy;
  if ((active & ~all) != 0 && is_by_bytes && spread_bytes(warp, insn, active)) return;
  if (use.rule == SpreadRule::kAcrossLanes) all = (active & ~all) == 0 ? kAllLanes : 0;
  for (const Row row : use.written) set(warp, row, active, all);
}

// op: d, a, b, p of selp; slct has a number for p and spreads from all.
void InitChecker::select(Warp& warp, const Insn& insn, const Use& use, std::uint32_t active) {
  std::uint32_t all = kAllLanes;
  for (const Row row : use.read) all &= defined(warp, row);
  const Row chooser = insn.op[3];
  if (chooser != kNoRow && chooser < warp.grid->code->predicate_end) {
    const std::uint32_t chosen = warp.predicate(chooser);
    all = (chosen & defined(warp, insn.op[1])) | (~chosen & defined(warp, insn.op[2]));
    all &= defined(warp, chooser);
    if ((active & ~all) != 0) return select_bytes(warp, insn, chosen, active);
  }
  set(warp, insn.op[0], active, all);
}

// The lanes that are undefined go through the instruction itself, as numbers.
void InitChecker::shuffle(Warp& warp, const Insn& insn, std::uint32_t active) {
  const Row d = insn.op[0], p = insn.op[1], a = insn.op[2];
  for (std::size_t i = 3; i < insn.op.size(); ++i) {
    if (insn.op[i] != kNoRow) report_row(warp, insn, insn.op[i], active, "an operand is undefined");
  }
  const std::uint32_t known = defined(warp, a);
  std::array<std::uint16_t, kLanes> masks{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) masks[lane] = defined_bytes(warp, a, lane);
  if (p != kNoRow) set(warp, p, active, kAllLanes);
  if ((active & ~known) == 0) return set(warp, d, active, kAllLanes);
  std::array<std::uint32_t, kLanes> old_d, old_a;
  std::memcpy(old_d.data(), warp.row<std::uint32_t>(d), sizeof old_d);
  std::memcpy(old_a.data(), warp.row<std::uint32_t>(a), sizeof old_a);
  const std::uint32_t old_p = p == kNoRow ? 0 : warp.predicate(p);
  for (int lane = 0; lane < kLanes; ++lane) {
    warp.row<std::uint32_t>(a)[lane] = masks[static_cast<std::size_t>(lane)];
  }
  Observer* const observer = std::exchange(warp.observer, nullptr);
  const Step step = insn.exec(warp, insn, active);
  warp.observer = observer;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    masks[lane] = static_cast<std::uint16_t>(warp.row<std::uint32_t>(d)[lane]);
  }
  std::memcpy(warp.row<std::uint32_t>(a), old_a.data(), sizeof old_a);
  std::memcpy(warp.row<std::uint32_t>(d), old_d.data(), sizeof old_d);
  if (p != kNoRow) *warp.row<std::uint32_t>(p) = old_p;
  if (step == Step::kNext) set_bytes(warp, d, active, 4, masks);
}

namespace {

/// Bit g: row g (or column g) of the fragment has an undefined element among these registers.
std::uint32_t undefined_groups(std::uint32_t undefined_lanes) {
  std::uint32_t groups = 0;
  for (int g = 0; g < 8; ++g) {
    if ((undefined_lanes >> (4 * g) & 15) != 0) groups |= 1U << g;
  }
  return groups;
}

/// All four lanes of each group.
std::uint32_t lanes_of_groups(std::uint32_t groups) {
  std::uint32_t lanes = 0;
  for (int g = 0; g < 8; ++g) lanes |= (groups >> g & 1) * (15U << (4 * g));
  return lanes;
}

/// Lanes that hold one of two neighbouring columns 2q + first, ... of the result.
std::uint32_t lanes_of_columns(std::uint32_t columns, std::uint32_t which) {
  std::uint32_t lanes = 0;
  for (std::uint32_t q = 0; q < 4; ++q) {
    if ((columns >> (2 * q) & which) != 0) lanes |= 0x11111111U << q;
  }
  return lanes;
}

}  // namespace

void InitChecker::multiply(Warp& warp, const Insn& insn, const Use& use) {
  const std::size_t num_d = use.written.size();
  const std::size_t num_ab = use.read.size() - num_d;
  if (is_strict_) {
    for (const Row row : use.read) {
      report_row(warp, insn, row, kAllLanes, "a tensor operand is an undefined value", true);
    }
  }
  const bool is_m16 = num_ab % 3 == 0 && (num_d == 2 || num_d == 4);
  const std::size_t num_a = is_m16 ? num_ab / 3 * 2 : num_ab / 2;
  std::array<std::uint32_t, 2> rows{};
  std::uint32_t columns = 0;
  for (std::size_t i = 0; i < num_ab; ++i) {
    const std::uint32_t groups = undefined_groups(~defined(warp, use.read[i]));
    if (i >= num_a) {
      columns |= groups;
    } else {
      rows[is_m16 ? i % 2 : 0] |= groups;
    }
  }
  std::vector<std::uint32_t> results;
  for (std::size_t i = 0; i < num_d; ++i) {
    const std::size_t half = !is_m16 ? 0 : num_d == 4 ? i / 2 : i;
    const std::uint32_t which = num_d == 4 && is_m16 ? 1U << (i % 2) : 3;
    results.push_back(defined(warp, use.read[num_ab + i]) & ~lanes_of_groups(rows[half]) &
                      ~lanes_of_columns(columns, which));
  }
  for (std::size_t i = 0; i < num_d; ++i) set(warp, use.written[i], kAllLanes, results[i]);
}

/// Of a wgmma: the first type of an accumulator that it names is that of D.
bool InitChecker::has_half_results(const Warp& warp, const Insn& insn) {
  for (const auto& modifier : warp.grid->code->place(insn).syntax->modifiers) {
    if (modifier == "f16") return true;
    if (modifier == "f32" || modifier == "s32") return false;
  }
  return false;
}

// op: a descriptor, b descriptor, scale-d; then the accumulators and the registers of A are read.
void InitChecker::warpgroup_multiply(Warp& warp, const Insn& insn, const Use& use,
                                     std::uint32_t active) {
  if (use.written.empty()) return;  // fence, commit, wait
  for (const std::size_t i : {0, 1, 2}) {
    if (insn.op[i] != kNoRow) report_row(warp, insn, insn.op[i], active, "an operand is undefined");
  }
  const auto num_ops = static_cast<std::size_t>(
      std::ranges::count_if(insn.op, [](Row row) { return row != kNoRow; }));
  const auto a = use.read.subspan(std::min(use.read.size(), num_ops + use.written.size()));
  std::array<std::uint32_t, 2> rows{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (is_strict_) {
      report_row(warp, insn, a[i], active, "a tensor operand is an undefined value", true);
    }
    rows[i % 2] |= undefined_groups(~defined(warp, a[i]));
  }
  const bool keeps_old = warp.predicate(insn.op[2]) != 0;
  const bool is_half = has_half_results(warp, insn);
  for (std::size_t i = 0; i < use.written.size(); ++i) {
    const std::size_t half = is_half ? i % 2 : i / 2 % 2;
    const std::uint32_t old = keeps_old ? defined(warp, use.written[i]) : kAllLanes;
    set(warp, use.written[i], active, old & ~lanes_of_groups(rows[half]));
  }
}

void InitChecker::after_load(Warp& warp, const Insn& insn, std::uint32_t active) {
  warp.has_loaded_undefined = false;
  warp.definedness->load = &insn;
  const Use use(*warp.grid->code, insn);
  const auto& bytes = warp.definedness->bytes;
  const std::size_t count = use.written.size();
  const auto is_defined = [&](int lane, std::size_t from, std::size_t size) {
    return is_all_defined(bytes[static_cast<std::size_t>(lane)].data() + from, size);
  };
  warp.undefined_flags = kMaybeUndefined | kHasRows;
  for (std::size_t j = 0; j < count; ++j) {
    std::uint32_t lanes = 0;
    std::array<std::uint16_t, kLanes> masks{};
    for (int lane = 0; lane < kLanes; ++lane) {
      bool good = true;
      const int g = lane / 4, q = lane % 4, first = static_cast<int>(8 * j);
      if (use.rule == SpreadRule::kMatrixLoad) {
        good = is_defined((first + g) % kLanes, static_cast<std::size_t>(4 * q), 4);
      } else if (use.rule == SpreadRule::kMatrixLoadTransposed) {
        const auto at = static_cast<std::size_t>(2 * g);
        good = is_defined((first + 2 * q) % kLanes, at, 2) &&
               is_defined((first + 2 * q + 1) % kLanes, at, 2);
      } else {
        const std::size_t size = warp.definedness->load_bytes / std::max<std::size_t>(1, count);
        good = is_defined(lane, j * size, size);
        for (std::size_t i = 0; i < std::min<std::size_t>(size, 16); ++i) {
          const unsigned byte = bytes[static_cast<std::size_t>(lane)][j * size + i] & 1U;
          masks[static_cast<std::size_t>(lane)] |= static_cast<std::uint16_t>(byte << i);
        }
      }
      lanes |= static_cast<std::uint32_t>(good) << lane;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1) != 0) masks[lane] = 0xffff;
    }
    set_bytes(warp, use.written[j], active, 16, masks);
  }
}

void InitChecker::loaded(Warp& warp, const Insn& insn, Row row, std::uint32_t lanes) {
  warp.undefined_flags = kMaybeUndefined | kHasRows;
  warp.definedness->load = &insn;
  warp.definedness->load_mark = 0;
  set(warp, row, kAllLanes, lanes);
}

void InitChecker::cta_started(Cta& cta) {
  const KernelCode& code = *cta.grid->code;
  const std::size_t local = std::size_t{kLanes} * code.info.local_bytes * cta.warps.size();
  cta.shared_defined.resize(cta.shared_bytes);
  cta.local_defined.resize(local);
  const RowUnits units{code.predicate_end};
  for (Warp& warp : cta.warps) {
    auto state = std::make_shared<WarpDefinedness>();
    state->lanes.assign(units.of(code.register_bytes) + 1, kAllLanes);
    for (const Row row : code.undefined_rows) state->lanes[units.of(row)] = 0;
    state->num_partial = static_cast<std::uint32_t>(code.undefined_rows.size());
    warp.undefined_flags = state->num_partial == 0 ? 0 : kMaybeUndefined;
    warp.definedness = std::move(state);
  }
}

}  // namespace tilewright::sim
