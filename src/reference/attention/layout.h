// Where the queries and keys of every sequence lie: dense, packed (variable length) or paged.
#pragma once

#include "reference/attention/attention.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::reference {

struct AttentionSequence {
  int64_t index;     ///< b
  int64_t q_begin;   ///< row of its first query in q
  int64_t q_len;     ///< its queries
  int64_t kv_begin;  ///< row of its first key in k and v; 0 if they are paged
  int64_t kv_len;    ///< its keys in use
};

/// The sequences of a call, in order. Checks every argument: throws what attention() documents.
std::vector<AttentionSequence> attention_sequences(const AttentionParams& params,
                                                   std::span<const double> q,
                                                   std::span<const double> k,
                                                   std::span<const double> v);

/// Row of key j in k and v, counted in groups of kv_heads vectors.
int64_t attention_kv_row(const AttentionParams& params, const AttentionSequence& sequence,
                         int64_t j);

}  // namespace tilewright::reference
