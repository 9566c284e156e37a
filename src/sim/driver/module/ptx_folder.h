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

/// The newest file of the folder that defines all kernels of the cubin; none without the variable.
std::optional<std::string> find_kept_ptx(std::string_view elf);
/// The same of an image that comes without a length: it is as long as its headers say. They are
/// read only if the variable is set.
std::optional<std::string> find_kept_ptx(const void* image);

}  // namespace tilewright::sim
