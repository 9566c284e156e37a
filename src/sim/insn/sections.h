// The sections of the instruction table, each in its own file.
#pragma once

#include "sim/program/lowering.h"

namespace tilewright::sim {

const InsnSection& control_section();
const InsnSection& barrier_section();
const InsnSection& load_store_section();
const InsnSection& atomic_section();
const InsnSection& cp_async_section();
const InsnSection& matrix_copy_section();
const InsnSection& shuffle_section();
const InsnSection& vote_section();
const InsnSection& mbarrier_section();
const InsnSection& bulk_copy_section();
const InsnSection& tensor_copy_section();
const InsnSection& tensormap_section();
const InsnSection& mma_sync_section();
const InsnSection& wgmma_section();
const InsnSection& fence_section();

}  // namespace tilewright::sim
