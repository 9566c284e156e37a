// clang-format off
// Made by tools/make_c_api.py from tools/c_api; edit that.
//
// What the handles of the operators of the C interface are.
#pragma once

#include "ops/c_api/convert/all.h"
#include "ops/c_api/operator.h"

struct tw_attention : tilewright::c_api::Made<tilewright::Attention> {
  using Made::Made;
};

struct tw_attention_merge : tilewright::c_api::Made<tilewright::AttentionMerge> {
  using Made::Made;
};

struct tw_attention_prepare : tilewright::c_api::Made<tilewright::AttentionPrepare> {
  using Made::Made;
};

struct tw_attention_decode : tilewright::c_api::Made<tilewright::AttentionDecode> {
  using Made::Made;
};

struct tw_cache_append : tilewright::c_api::Made<tilewright::CacheAppend> {
  using Made::Made;
};

struct tw_linear : tilewright::c_api::Made<tilewright::Linear> {
  using Made::Made;
};

struct tw_block_scaled_linear : tilewright::c_api::Made<tilewright::BlockScaledLinear> {
  using Made::Made;
};

struct tw_quantize : tilewright::c_api::Made<tilewright::Quantize> {
  using Made::Made;
};

struct tw_moe : tilewright::c_api::Made<tilewright::Moe> {
  using Made::Made;
};

struct tw_sparse_attention : tilewright::c_api::Made<tilewright::SparseAttention> {
  using Made::Made;
};

struct tw_latent_attention : tilewright::c_api::Made<tilewright::LatentAttention> {
  using Made::Made;
};

struct tw_mask_lists : tilewright::c_api::Made<tilewright::MaskLists> {
  using Made::Made;
};

struct tw_kv_cache : tilewright::c_api::Made<tilewright::KvCache> {
  using Made::Made;
};

struct tw_inverse_rope : tilewright::c_api::Made<tilewright::InverseRope> {
  using Made::Made;
};

struct tw_compressor : tilewright::c_api::Made<tilewright::Compressor> {
  using Made::Made;
};

struct tw_indexer : tilewright::c_api::Made<tilewright::Indexer> {
  using Made::Made;
};

struct tw_indexer_logits : tilewright::c_api::Made<tilewright::IndexerLogits> {
  using Made::Made;
};

struct tw_hyper_connection : tilewright::c_api::Made<tilewright::HyperConnection> {
  using Made::Made;
};

struct tw_hyper_embedding : tilewright::c_api::Made<tilewright::HyperEmbedding> {
  using Made::Made;
};

struct tw_rms_norm : tilewright::c_api::Made<tilewright::RmsNorm> {
  using Made::Made;
};

struct tw_sample : tilewright::c_api::Made<tilewright::Sample> {
  using Made::Made;
};

struct tw_gather_rows : tilewright::c_api::Made<tilewright::GatherRows> {
  using Made::Made;
};
