// A kernel ready to run.
#pragma once

#include "sim/state/insn.h"
#include "sim/state/launch.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright::sim {

/// Where an instruction came from.
struct CodePlace {
  const Function* function = nullptr;
  const Instruction* syntax = nullptr;
  std::uint32_t register_base = 0;  ///< number of the function's first register in the kernel
};

/// A special register that the kernel reads, and the row that shows it.
struct SpecialRow {
  SpecialRegister which{};
  std::uint8_t component = 0;
  bool is_wide = false;  ///< 64-bit
  Row row = kNoRow;
};

/// A row that holds the address of shared memory: the CTA's rank in its cluster is added per CTA.
struct SharedAddressRow {
  Row row = kNoRow;
  bool is_wide = false;     ///< 64-bit
  bool is_generic = false;  ///< in the shared window of the generic space
  std::uint32_t offset = 0;
};

/// Rows that an instruction reads and writes, for the checkers: a run of KernelCode::rows.
struct RowUse {
  std::uint32_t begin = 0;
  std::uint16_t num_written = 0;  ///< they come first
  std::uint16_t num_read = 0;
};

struct KernelCode {
  KernelInfo info;
  const Module* module = nullptr;
  std::vector<Insn> insns;        ///< ends with an exit
  std::vector<CodePlace> places;  ///< Insn::syntax indexes it
  std::vector<RowUse> uses;       ///< one per instruction
  std::vector<Row> rows;
  std::vector<Row> register_rows;     ///< by number of the register in the kernel
  std::vector<Row> undefined_rows;    ///< hold no value when a warp starts, and may be read then
  std::vector<std::uint8_t> spread;   ///< SpreadRule (state/definedness.h), one per instruction
  std::uint32_t register_bytes = 0;   ///< of all rows of a warp
  std::uint32_t predicate_end = 0;    ///< rows before it are predicates
  std::uint32_t constants_begin = 0;  ///< rows from here on never change while a warp runs
  std::vector<std::byte> constants;   ///< what they hold at first, from constants_begin on
  std::vector<SpecialRow> specials;
  std::vector<SharedAddressRow> shared_addresses;
  std::uint32_t dynamic_shared_offset = 0;  ///< reserved bytes included
  bool is_cross_cta = false;                ///< CTAs can talk to each other
  /// ... and what they do so is no mere counting: its order shows. Always if not is_cross_cta
  bool is_ordered = true;
  bool has_tensor_memory = false;  ///< has tcgen05 instructions
  bool claims_clusters = false;    ///< has clusterlaunchcontrol.try_cancel
  std::vector<std::shared_ptr<void>> owned;
  std::vector<std::shared_ptr<const Instruction>> made;  ///< instructions that no text has

  const CodePlace& place(const Insn& insn) const { return places[insn.syntax]; }
  /// "gemm.ptx:41" and, with .loc, "gemm.ptx:41 (gemm.cu:17)"
  std::string describe(const Insn& insn) const;
};

}  // namespace tilewright::sim
