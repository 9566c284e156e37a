// PTX that a compiler kept beside the machine code it hands over.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::sim {

/// A folder of .ptx files. Where a program loads machine code alone, the file that defines the same
/// kernels is run in its place.
inline constexpr const char* kPtxFolderVariable = "TILEWRIGHT_SIM_PTX";

/// Names of the kernels in a cubin: its sections .text.NAME. Empty if it is none, or damaged.
std::vector<std::string> kernels_of_cubin(std::string_view elf);

/// How long an ELF image is, by its own headers; 0 if it is none.
std::size_t elf_bytes(const void* image);

/// The newest file of the folder that defines all kernels of the cubin; none without the variable.
std::optional<std::string> find_kept_ptx(std::string_view elf);

}  // namespace tilewright::sim
