#include "sim/time/machine_units.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tilewright::sim {

namespace {

enum class Unit : std::uint8_t {
  kControl,  ///< an issue slot
  kFma,
  kWideFma,  ///< integers and pairs of floats on the same unit, at half its rate
  kAlu,
  kSpecial,
  kDouble,
  kUniform,  ///< the unit that works once for all lanes
  kMmaSync,
  kShared,
  kGlobal,
  kAsync,
};

struct Opcode {
  std::uint16_t code = 0;
  Unit unit = Unit::kControl;
  MachineKind kind = MachineKind::kOther;
};

// By number. Names are those of nvdisasm.
constexpr auto kOpcodes = std::to_array<Opcode>({
    {0x002, Unit::kAlu},                                  // MOV
    {0x003, Unit::kAlu},                                  // P2R
    {0x004, Unit::kAlu},                                  // R2P
    {0x005, Unit::kControl},                              // CS2R
    {0x006, Unit::kAlu},                                  // VOTE
    {0x007, Unit::kAlu},                                  // SEL
    {0x008, Unit::kAlu},                                  // FSEL
    {0x009, Unit::kAlu},                                  // FMNMX
    {0x00b, Unit::kAlu},                                  // FSETP
    {0x00c, Unit::kAlu},                                  // ISETP
    {0x00f, Unit::kAlu},                                  // VIMNMX3
    {0x010, Unit::kAlu},                                  // IADD3
    {0x011, Unit::kAlu},                                  // LEA
    {0x012, Unit::kAlu},                                  // LOP3
    {0x013, Unit::kAlu},                                  // IABS
    {0x016, Unit::kAlu},                                  // PRMT
    {0x019, Unit::kAlu},                                  // SHF
    {0x01c, Unit::kAlu},                                  // PLOP3
    {0x020, Unit::kFma},                                  // FMUL
    {0x021, Unit::kFma},                                  // FADD
    {0x023, Unit::kFma},                                  // FFMA
    {0x024, Unit::kWideFma},                              // IMAD
    {0x025, Unit::kWideFma},                              // IMAD.WIDE
    {0x027, Unit::kWideFma},                              // IMAD.HI
    {0x028, Unit::kDouble},                               // DMUL
    {0x029, Unit::kDouble},                               // DADD
    {0x02a, Unit::kDouble},                               // DSETP
    {0x02b, Unit::kDouble},                               // DFMA
    {0x02f, Unit::kControl},                              // ELECT
    {0x030, Unit::kFma},                                  // HADD2
    {0x032, Unit::kFma},                                  // HMUL2
    {0x035, Unit::kFma},                                  // HFMA2
    {0x036, Unit::kAlu},                                  // VIADD
    {0x037, Unit::kMmaSync, MachineKind::kMma},           // IMMA
    {0x03b, Unit::kShared, MachineKind::kShared},         // LDSM
    {0x03c, Unit::kMmaSync, MachineKind::kMma},           // HMMA
    {0x03e, Unit::kAlu},                                  // F2FP
    {0x044, Unit::kShared, MachineKind::kShared},         // STSM
    {0x045, Unit::kAlu},                                  // I2FP
    {0x046, Unit::kAlu},                                  // VIADDMNMX
    {0x048, Unit::kAlu},                                  // VIMNMX
    {0x049, Unit::kWideFma},                              // FFMA2
    {0x04a, Unit::kWideFma},                              // FMUL2
    {0x04b, Unit::kWideFma},                              // FADD2
    {0x076, Unit::kAlu},                                  // FMNMX3
    {0x07a, Unit::kMmaSync, MachineKind::kMma},           // QMMA
    {0x082, Unit::kUniform},                              // UMOV
    {0x083, Unit::kUniform},                              // UP2UR
    {0x086, Unit::kUniform},                              // VOTEU
    {0x087, Unit::kUniform},                              // USEL
    {0x08c, Unit::kUniform},                              // UISETP
    {0x090, Unit::kUniform},                              // UIADD3
    {0x091, Unit::kUniform},                              // ULEA
    {0x092, Unit::kUniform},                              // ULOP3
    {0x096, Unit::kUniform},                              // UPRMT
    {0x097, Unit::kUniform},                              // UIADD3.64
    {0x099, Unit::kUniform},                              // USHF
    {0x09c, Unit::kUniform},                              // UPLOP3
    {0x0a4, Unit::kUniform},                              // UIMAD
    {0x0a5, Unit::kUniform},                              // UIMAD.WIDE
    {0x0b9, Unit::kUniform},                              // ULDC
    {0x0bb, Unit::kUniform},                              // ULDC.64
    {0x0bd, Unit::kUniform},                              // UFLO
    {0x0be, Unit::kUniform},                              // UBREV
    {0x0bf, Unit::kUniform},                              // UPOPC
    {0x0ca, Unit::kUniform},                              // R2UR
    {0x100, Unit::kSpecial},                              // FLO
    {0x101, Unit::kSpecial},                              // BREV
    {0x102, Unit::kSpecial},                              // FCHK
    {0x104, Unit::kSpecial},                              // F2F
    {0x105, Unit::kSpecial},                              // F2I
    {0x106, Unit::kSpecial},                              // I2F
    {0x107, Unit::kSpecial},                              // FRND
    {0x108, Unit::kSpecial, MachineKind::kSpecial},       // MUFU
    {0x109, Unit::kSpecial},                              // POPC
    {0x110, Unit::kSpecial},                              // F2F.64
    {0x111, Unit::kSpecial},                              // F2I.64
    {0x112, Unit::kSpecial},                              // I2F.64
    {0x119, Unit::kControl},                              // S2R
    {0x11a, Unit::kControl, MachineKind::kGroup},         // DEPBAR
    {0x11d, Unit::kAsync, MachineKind::kBarrier},         // BAR
    {0x147, Unit::kControl},                              // BRA
    {0x180, Unit::kGlobal, MachineKind::kGlobal},         // LD
    {0x181, Unit::kGlobal, MachineKind::kGlobal},         // LDG
    {0x182, Unit::kUniform},                              // LDC
    {0x183, Unit::kGlobal, MachineKind::kGlobal},         // LDL
    {0x184, Unit::kShared, MachineKind::kShared},         // LDS
    {0x185, Unit::kGlobal, MachineKind::kGlobal},         // ST
    {0x186, Unit::kGlobal, MachineKind::kGlobal},         // STG
    {0x187, Unit::kGlobal, MachineKind::kGlobal},         // STL
    {0x188, Unit::kShared, MachineKind::kShared},         // STS
    {0x189, Unit::kShared, MachineKind::kShuffle},        // SHFL
    {0x18a, Unit::kGlobal, MachineKind::kGlobal},         // ATOM
    {0x18c, Unit::kShared, MachineKind::kShared},         // ATOMS
    {0x18d, Unit::kShared, MachineKind::kShared},         // ATOMS.CAS
    {0x18e, Unit::kGlobal, MachineKind::kGlobal},         // REDG
    {0x192, Unit::kAsync, MachineKind::kFence},           // MEMBAR
    {0x1a1, Unit::kAlu},                                  // MATCH
    {0x1a3, Unit::kGlobal, MachineKind::kGlobal},         // ATOMG
    {0x1a7, Unit::kAsync, MachineKind::kMbarrier},        // SYNCS
    {0x1a8, Unit::kGlobal, MachineKind::kGlobal},         // ATOMG
    {0x1a9, Unit::kGlobal, MachineKind::kGlobal},         // ATOMG.CAS
    {0x1ac, Unit::kUniform},                              // LDCU
    {0x1ae, Unit::kGlobal, MachineKind::kThreadCopy},     // LDGSTS
    {0x1af, Unit::kControl, MachineKind::kGroup},         // LDGDEPBAR
    {0x1b0, Unit::kAsync, MachineKind::kMbarrier},        // ARRIVES
    {0x1b2, Unit::kAsync, MachineKind::kMbarrier},        // SYNCS of constants
    {0x1b4, Unit::kAsync, MachineKind::kBulkCopy},        // UTMALDG
    {0x1b5, Unit::kAsync, MachineKind::kBulkCopy},        // UTMASTG
    {0x1b7, Unit::kControl, MachineKind::kGroup},         // UTMACMDFLUSH
    {0x1ba, Unit::kAsync, MachineKind::kBulkCopy},        // UBLKCP
    {0x1c4, Unit::kAlu, MachineKind::kShuffle},           // REDUX
    {0x1c5, Unit::kControl, MachineKind::kProductSync},   // WARPGROUP
    {0x1c6, Unit::kAsync, MachineKind::kFence},           // FENCE
    {0x1c7, Unit::kAsync, MachineKind::kClusterBarrier},  // UCGABAR
    {0x1c8, Unit::kAsync, MachineKind::kRegisters},       // USETMAXREG
    {0x1e7, Unit::kAsync, MachineKind::kTensorCopy},      // UTCCP
    {0x1e9, Unit::kAsync, MachineKind::kCommit},          // UTCBAR
    {0x1ea, Unit::kAsync, MachineKind::kProduct},         // UTCHMMA, UTCQMMA, UTCOMMA
    {0x1ed, Unit::kAsync, MachineKind::kTensorMemory},    // STTM
    {0x1ee, Unit::kAsync, MachineKind::kTensorMemory},    // LDTM
    {0x1f0, Unit::kAsync, MachineKind::kProduct},         // HGMMA
    {0x1f1, Unit::kAsync, MachineKind::kProduct},         // IGMMA
    {0x1f3, Unit::kAsync, MachineKind::kProduct},         // QGMMA
});
static_assert(std::ranges::is_sorted(kOpcodes, {}, &Opcode::code));

Opcode opcode_of(const MachineInsn& insn) noexcept {
  const auto* const found = std::ranges::lower_bound(kOpcodes, insn.opcode, {}, &Opcode::code);
  return found != kOpcodes.end() && found->code == insn.opcode ? *found : Opcode{};
}

bool has_word(const Instruction& insn, std::string_view prefix) {
  return std::ranges::any_of(insn.modifiers,
                             [&](std::string_view word) { return word.starts_with(prefix); });
}

MachineKind kind_of_access(const Instruction& insn) {
  if (has_word(insn, "param") || has_word(insn, "const")) return MachineKind::kOther;
  const bool is_matrix = insn.opcode == "ldmatrix" || insn.opcode == "stmatrix";
  const bool is_shared =
      is_matrix || (has_word(insn, "shared") && !has_word(insn, "shared::cluster"));
  return is_shared ? MachineKind::kShared : MachineKind::kGlobal;
}

MachineKind kind_of_copy(const Instruction& insn) {
  if (has_word(insn, "mbarrier")) return MachineKind::kMbarrier;
  if (has_word(insn, "commit_group") || has_word(insn, "wait_")) return MachineKind::kGroup;
  return has_word(insn, "bulk") ? MachineKind::kBulkCopy : MachineKind::kThreadCopy;
}

MachineKind kind_of_tcgen05(const Instruction& insn) {
  if (has_word(insn, "mma")) return MachineKind::kProduct;
  if (has_word(insn, "commit")) return MachineKind::kCommit;
  if (has_word(insn, "cp")) return MachineKind::kTensorCopy;
  // A wait for stores is a fence; one for loads is nothing: who uses a register waits for it.
  if (has_word(insn, "wait::st")) return MachineKind::kFence;
  const bool is_access = insn.modifiers.front() == "ld" || insn.modifiers.front() == "st";
  return is_access ? MachineKind::kTensorMemory : MachineKind::kOther;
}

}  // namespace

bool is_branch(const MachineInsn& insn) noexcept {
  return insn.opcode >= 0x142 && insn.opcode <= 0x150;  // BREAK to RET
}

bool is_jump(const MachineInsn& insn) noexcept {
  constexpr std::uint16_t kBssy = 0x145, kYield = 0x146, kWarpsync = 0x148;
  return is_branch(insn) && insn.opcode != kBssy && insn.opcode != kYield &&
         insn.opcode != kWarpsync;
}

MachineKind machine_kind(const MachineInsn& insn) noexcept {
  return opcode_of(insn).kind;
}

MachineKind machine_kind(const Instruction& insn, InsnClass insn_class) {
  const std::string_view op = insn.opcode;
  if (op == "wgmma")
    return has_word(insn, "mma_async") ? MachineKind::kProduct : MachineKind::kProductSync;
  if (op == "tcgen05") return kind_of_tcgen05(insn);
  if (op == "cp") return kind_of_copy(insn);
  if (op == "mbarrier") return MachineKind::kMbarrier;
  if (op == "setmaxnreg") return MachineKind::kRegisters;
  if (op == "fence" || op == "membar") return MachineKind::kFence;
  if (op == "bar" || op == "barrier") {
    return has_word(insn, "cluster") ? MachineKind::kClusterBarrier : MachineKind::kBarrier;
  }
  switch (insn_class) {
    case InsnClass::kLoad:
    case InsnClass::kStore:
    case InsnClass::kAtomic:
      return kind_of_access(insn);
    case InsnClass::kShuffle:
      return op == "shfl" || op == "redux" ? MachineKind::kShuffle : MachineKind::kOther;
    case InsnClass::kTensor:
      return MachineKind::kMma;
    case InsnClass::kSpecialFunction:
      return MachineKind::kSpecial;
    default:
      return MachineKind::kOther;
  }
}

InsnCost machine_cost(const MachineInsn& insn, const TimeParameters& p) {
  InsnCost cost;
  const auto on = [&](Pipe pipe, double interval, double latency) {
    cost.pipe = pipe;
    cost.interval = static_cast<float>(interval);
    cost.latency = static_cast<float>(latency);
    return cost;
  };
  const Opcode opcode = opcode_of(insn);
  switch (opcode.unit) {
    case Unit::kFma:
      return on(Pipe::kFma, p.fma_interval, p.fma_latency);
    case Unit::kWideFma:
      return on(Pipe::kFma, p.alu_interval, p.alu_latency);
    case Unit::kAlu:
      return on(Pipe::kAlu, p.alu_interval, p.alu_latency);
    case Unit::kSpecial:
      // Conversions have four times the lanes of exponentials.
      return on(Pipe::kSpecial,
                opcode.kind == MachineKind::kSpecial ? p.special_interval : p.special_interval / 4,
                p.special_latency);
    case Unit::kDouble:
      return on(Pipe::kDouble, p.double_interval, p.double_latency);
    case Unit::kUniform:
      return on(Pipe::kNone, 0, p.uniform_latency);
    case Unit::kMmaSync:
      return on(Pipe::kMmaSync, 0, p.mma_sync_latency);
    case Unit::kShared:
      return on(Pipe::kShared, p.shared_issue,
                opcode.kind == MachineKind::kShuffle ? p.shuffle_latency : p.shared_latency);
    case Unit::kGlobal:
      return on(Pipe::kGlobal, 1, p.l1_latency);
    case Unit::kAsync:
      return on(Pipe::kAsync, 0, 0);
    case Unit::kControl:
      break;
  }
  return on(Pipe::kNone, 0, p.uniform_latency);
}

}  // namespace tilewright::sim
