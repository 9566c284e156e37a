// What an instruction says of an access: where, how many bytes, in what order.
#pragma once

#include "sim/event/observer.h"
#include "sim/state/insn.h"

#include <cstdint>

namespace tilewright::sim {

/// The space that an instruction names. Constant variables lie in global memory, parameters of
/// functions that are called in local memory.
enum class AddressSpace : std::uint8_t {
  kGeneric,
  kGlobal,
  kSharedCta,      ///< .shared, .shared::cta
  kSharedCluster,  ///< any CTA of the cluster
  kLocal,
  kParam,  ///< of the entry
};

/// [base + offset] of one operand.
struct AddressForm {
  Row base = kNoRow;
  bool is_wide = true;  ///< the base has 64 bits
  /// A shared variable by its name: the offset lacks the rank of the CTA
  bool is_own_shared = false;
  AddressSpace space = AddressSpace::kGeneric;
  std::int64_t offset = 0;
};

struct Access {
  AccessKind kind = AccessKind::kRead;
  MemoryOrder order;
  std::uint32_t bytes = 4;        ///< per lane
  std::uint32_t align_bytes = 4;  ///< a power of two
  bool is_silent = false;         ///< the observer is notified by other means
};

}  // namespace tilewright::sim
