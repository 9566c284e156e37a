// All instructions, in the order in which `tilewright sim isa` lists them.
#include "sim/insn/sections.h"

#include <array>

namespace tilewright::sim {

std::span<const InsnSection> insn_table() {
  static const std::array sections = {
      arithmetic_section(),
      carry_section(),
      special_function_section(),
      bits_section(),
      compare_section(),
      convert_section(),
      move_section(),
      address_section(),
      load_store_section(),
      atomic_section(),
      async_store_section(),
      cp_async_section(),
      bulk_copy_section(),
      tensor_copy_section(),
      tensormap_section(),
      matrix_copy_section(),
      shuffle_section(),
      vote_section(),
      mma_sync_section(),
      wmma_section(),
      wgmma_section(),
      tensor_memory_section(),
      tensor_load_store_section(),
      tensor_pipe_section(),
      tcgen05_mma_section(),
      mbarrier_section(),
      fence_section(),
      barrier_section(),
      control_section(),
      hint_section(),
      cluster_launch_section(),
  };
  return sections;
}

}  // namespace tilewright::sim
