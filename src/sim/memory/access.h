// From the addresses of a warp's lanes to host memory, with the checks of the device.
#pragma once

#include "sim/event/access_form.h"
#include "sim/state/warp.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilewright::sim {

using LaneAddresses = std::array<std::uint64_t, kLanes>;

/// Where the bytes of each lane are. Lanes that are not active have the pointer of the lowest
/// active one, so that reading through all 32 is harmless.
struct LanePointers {
  alignas(64) std::array<std::byte*, kLanes> at;
  std::uint32_t shared_lanes = 0;  ///< lanes whose bytes are shared memory
};

/// The addresses before any check; inactive lanes get the one of the lowest active lane.
void compute_addresses(Warp& warp, const AddressForm& form, std::uint32_t active,
                       LaneAddresses& addresses);

/// Checks and resolves an access of the active lanes and notifies the observer.
/// Errors   FaultError that names lanes, address, size and the allocation
void resolve(Warp& warp, const Insn& insn, std::uint32_t active, const AddressForm& form,
             const Access& access, LanePointers& pointers);

/// The usual access: all lanes, their bytes side by side in global memory or in shared memory of
/// the own CTA, and nothing wrong with it. Tells the observer.
/// Returns  where lane 0's bytes are; nullptr if it is none of that: then nothing has happened, and
///          resolve() finds out
std::byte* resolve_run(Warp& warp, const Insn& insn, const AddressForm& form, const Access& access);

/// As resolve(), for addresses that the caller has computed.
void resolve_addresses(Warp& warp, const Insn& insn, std::uint32_t active, AddressSpace space,
                       const Access& access, LaneAddresses& addresses, LanePointers& pointers);

/// A run of bytes of one lane, for asynchronous work. Does not tell the observer.
/// Errors   FaultError
struct Range {
  std::byte* data = nullptr;
  bool is_shared = false;
  /// Shared: rank << 24 | offset; else the global address
  std::uint64_t address = 0;
  Cta* cta = nullptr;  ///< shared: whose
};
Range resolve_range(Warp& warp, std::uint32_t lane, AddressSpace space, std::uint64_t address,
                    std::uint64_t bytes, std::uint32_t align_bytes, AccessKind kind);

/// The CTA of a shared window address.
/// Errors   FaultError if the cluster has no such rank or that CTA has ended
Cta& cta_of_shared(Warp& warp, std::uint64_t address, std::uint32_t lanes);

/// Ensures that all of [address, address + bytes) may be accessed in global memory; for copies that
/// compute their own addresses. The cache of the warp makes repetition cheap.
void check_global(Warp& warp, std::uint64_t address, std::uint64_t bytes, AccessKind kind,
                  std::uint32_t lanes);

}  // namespace tilewright::sim
