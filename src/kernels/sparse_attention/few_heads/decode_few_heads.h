// Contract of sparse attention for up to 8, 16 or 32 heads, on Hopper and Blackwell.
#pragma once

#include "kernels/sparse_attention/decode.h"

#include <cstdint>

namespace tilewright::kernels {

/// Entries sparse_few_heads_FORMAT_hHEADS, FORMAT fp8, nvfp4, bf16, HEADS 8, 16, 32, with
/// SparseDecodeParams of at most that many heads. A group is a CTA.
inline constexpr int kFewHeadsPieceKeys = 16;  ///< keys of a stage
inline constexpr int kFewHeadsPieces = kSparseBlockKeys / kFewHeadsPieceKeys;
/// Warps: two score a piece, each half the dimensions; each then has 64 dimensions of all values.
inline constexpr int kFewHeadsConsumers = 2 * kFewHeadsPieces;
inline constexpr int kFewHeadsLoaders = kFewHeadsPieces;
/// 32 heads are two teams of so many warps, 16 heads each, that share the rows.
constexpr int few_heads_teams(int heads) {
  return heads > 16 ? 2 : 1;
}
constexpr int few_heads_threads(int heads) {
  return (few_heads_teams(heads) * kFewHeadsConsumers + kFewHeadsLoaders) * 32;
}
/// Bytes from head to head of q and of weights: spread over the banks.
inline constexpr int kFewHeadsQueryPitch = kKvDims * 2 + 16;
inline constexpr int kFewHeadsWeightPitch = kSparseBlockKeys * 2 + 32;

/// Bytes of a row in shared memory, its scales behind its data. 32 or 96 more than a multiple of
/// 128: then neither reads along keys nor reads along dimensions meet in a bank.
constexpr int few_heads_row_pitch(KvFormat format) {
  return format == KvFormat::kFp8 ? 608 : format == KvFormat::kNvfp4 ? 416 : 1056;
}
/// CTAs of an SM.
constexpr int few_heads_residents(int heads) {
  return heads > 16 ? 1 : 2;
}

/// What a team needs beside the ring of pieces.
template <int Heads>
struct FewHeadsFixed {
  alignas(16) std::uint8_t q[Heads * kFewHeadsQueryPitch];
  /// exp(s) of two blocks in turn, in bf16; keys in the order of few_heads_position().
  alignas(16) std::uint8_t weights[2][Heads * kFewHeadsWeightPitch];
  /// What a warp's 64 dimensions of each key's values are multiplied with beside the weights; the
  /// same order.
  alignas(16) std::uint16_t factors[kFewHeadsConsumers][kSparseBlockKeys];
  /// Of a block's scores, at the end of all; whether one is far above what weights are relative to.
  float maxima[kFewHeadsConsumers][Heads];
  alignas(8) std::uint8_t grows[2][kFewHeadsConsumers];
  union {
    float largest[kFewHeadsConsumers][Heads];  ///< scores that a warp has seen
    float sums[kFewHeadsConsumers][Heads];     ///< at the end, when those stand in maxima
  };
  float units[Heads], sinks[Heads];  ///< units: of scores
  SparseWork work;
  /// Scores over half of the dimensions, from each warp to the one with the other half.
  alignas(8) float scores[kFewHeadsConsumers][Heads / 8][32][2];
};

/// 227 KB, of which each resident CTA costs 1 KB more than it asks for.
constexpr int few_heads_stages(KvFormat format, int heads) {
  const int all = 228 * 1024 / few_heads_residents(heads) - 1024;
  const int fixed = static_cast<int>(heads == 8    ? sizeof(FewHeadsFixed<8>)
                                     : heads == 16 ? sizeof(FewHeadsFixed<16>)
                                                   : 2 * sizeof(FewHeadsFixed<16>));
  const int stage = kFewHeadsPieceKeys * few_heads_row_pitch(format) + 3 * 8;
  return (all - fixed - 64) / stage;
}

/// Named barriers of a CTA; number 0 is that of all its threads.
enum FewHeadsBarrier : std::uint32_t {
  kTeamBarrier = 1,   ///< + i: the consumers of team i
  kPieceBarrier = 3,  ///< + 4 i + j: the two warps of piece j of team i
};

template <KvFormat Format, int Heads>
struct FewHeadsShared {
  static constexpr int kStages = few_heads_stages(Format, Heads);
  static constexpr int kTeams = few_heads_teams(Heads);

  alignas(128) std::uint8_t rows[kStages][kFewHeadsPieceKeys * few_heads_row_pitch(Format)];
  FewHeadsFixed<Heads / kTeams> fixed[kTeams];
  std::uint64_t full[kStages], empty[kStages];
  /// Which keys exist: bit 4 g of the first word few_heads_key(g), of the second that and 8.
  alignas(8) std::uint32_t valid[kStages][2];
};

/// Lanes g = 0 to 7 (or quads of lanes) take the first eight keys of a piece in this order: then
/// two neighbours' 64 bytes lie in different banks.
constexpr std::uint32_t few_heads_key(std::uint32_t g) {
  return (g & 4) | (g & 1) << 1 | (g >> 1 & 1);
}
/// Where key `key` of 16 stands among weights and factors: the four keys that a lane multiplies,
/// t, t + 8, t + 4 and t + 12, side by side.
constexpr std::uint32_t few_heads_position(std::uint32_t key) {
  return key % 4 * 4 + key / 4 % 2 * 2 + key / 8;
}

}  // namespace tilewright::kernels
