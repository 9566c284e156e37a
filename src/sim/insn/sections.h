// The sections of the instruction table, each in its own file.
#pragma once

#include "sim/compile/lowering.h"

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
const InsnSection& wmma_section();
const InsnSection& wgmma_section();
const InsnSection& tensor_memory_section();
const InsnSection& tensor_load_store_section();
const InsnSection& tensor_pipe_section();
const InsnSection& tcgen05_mma_section();
const InsnSection& fence_section();
const InsnSection& async_store_section();
const InsnSection& arithmetic_section();
const InsnSection& carry_section();
const InsnSection& bits_section();
const InsnSection& compare_section();
const InsnSection& convert_section();
const InsnSection& move_section();
const InsnSection& address_section();
const InsnSection& special_function_section();
const InsnSection& hint_section();
const InsnSection& cluster_launch_section();

}  // namespace tilewright::sim
