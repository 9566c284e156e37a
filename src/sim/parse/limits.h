// What the parser refuses, so that a small hostile text cannot ask for much time or memory. All are
// far beyond what compilers and people write.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tilewright::sim {

constexpr int kLastMajorVersion = 29;  ///< of PTX: later ones are garbage in a .version
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;
constexpr int kMaxScopeDepth = 64;       ///< { } in a function
constexpr int kMaxExpressionDepth = 64;  ///< parentheses, signs and ?: of a constant expression
constexpr int kMaxOperandDepth = 8;      ///< operands in operands: [a, {b}]
constexpr std::size_t kMaxDimensions = 16;
constexpr std::uint64_t kMaxRange = 1 << 18;       ///< N of %r<N>
constexpr std::size_t kMaxRangePrefixBytes = 256;  ///< of the name before <N>
constexpr std::uint64_t kMaxAlignBytes = 1 << 20;
constexpr std::uint64_t kMaxVariableBytes = std::uint64_t{1} << 36;
constexpr std::uint64_t kMaxInitialBytes = 1 << 28;  ///< all initialised variables of a module

}  // namespace tilewright::sim
