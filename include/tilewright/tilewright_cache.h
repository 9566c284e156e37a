/* The C interface of what DeepSeek-V4 does between projections and attention: rows of paged caches,
 * lists of them, compressors, and the rotation taken out of attention's output. tilewright.h has
 * rules of use; formulas, shapes and rules of each field stand in cache_writer.h and compressor.h,
 * under the same names. All pointers of arguments are device addresses. */
#ifndef TILEWRIGHT_TILEWRIGHT_CACHE_H
#define TILEWRIGHT_TILEWRIGHT_CACHE_H

#include "tilewright/tilewright.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DeepSeek-V4 has {10000} and {160000, 1}; zeros of the rest are YaRN's 16, 65536, 32 and 1. */
typedef struct tw_rope_options {
  double theta;
  int32_t has_yarn;
  double factor, original_positions, beta_fast, beta_slow;
} tw_rope_options;

/* table [positions, 64] of host memory: of each position from `first` on 32 cosines, 32 sines. */
TW_API tw_status tw_rope_table(const tw_rope_options* options, int64_t positions, int64_t first,
                               float* table);

typedef struct tw_kv_layout {
  int32_t format; /* tw_kv_format of tilewright.h */
  int64_t page_size, num_pages;
  int64_t page_stride_bytes; /* 0: the least */
} tw_kv_layout;

typedef struct tw_kv_cache tw_kv_cache;

TW_API tw_status tw_kv_cache_create(const tw_device* device, const tw_kv_layout* layout,
                                    tw_kv_cache** cache);
TW_API void tw_kv_cache_destroy(tw_kv_cache* cache); /* NULL is allowed */
/* Of all pages: what the caller allocates. */
TW_API size_t tw_kv_cache_bytes(const tw_kv_cache* cache);

typedef struct tw_kv_write_arguments {
  size_t struct_bytes;
  int64_t tokens, heads;
  double eps; /* 1e-6 */
  const void* q;
  void* q_out;
  int64_t q_token_stride, q_head_stride;
  const void* kv;
  int32_t kv_dtype; /* TW_BF16 or TW_F32 */
  int64_t kv_stride;
  const void* kv_weight;
  const int32_t* positions;
  const float* rope;
  int64_t rope_positions;
  const int32_t* slots;
  void* pages;
  void* kv_out;
  void* stream; /* CUstream; NULL: the default stream */
} tw_kv_write_arguments;

TW_API void tw_kv_write_arguments_init(tw_kv_write_arguments* arguments);
TW_API tw_status tw_kv_cache_write(const tw_kv_cache* cache,
                                   const tw_kv_write_arguments* arguments);
/* out [count, 512] bf16. */
TW_API tw_status tw_kv_cache_read(const tw_kv_cache* cache, int64_t count, const int32_t* rows,
                                  const void* pages, void* out, void* stream);

typedef struct tw_sequence_batch {
  int64_t batch, q_len;
  const int32_t* offsets;
  const int32_t* starts;
} tw_sequence_batch;
typedef struct tw_sequence_pages {
  const int32_t* pages;
  int64_t blocks, stride;
} tw_sequence_pages;

typedef enum tw_kv_list_kind {
  TW_LIST_WRITE = 0,
  TW_LIST_WINDOW = 1,
  TW_LIST_ENTRIES = 2
} tw_kv_list_kind;

typedef struct tw_kv_list_arguments {
  size_t struct_bytes;
  int32_t kind; /* tw_kv_list_kind */
  int64_t tokens;
  tw_sequence_batch sequences;
  tw_sequence_pages table;
  int64_t ring, window, ratio;   /* 0, 128, 4 */
  int64_t list_len, list_stride; /* 1, 0 */
  int32_t* lists;
  int32_t* lengths;
  int32_t* positions;
  void* stream;
} tw_kv_list_arguments;

TW_API void tw_kv_list_arguments_init(tw_kv_list_arguments* arguments);
TW_API tw_status tw_kv_cache_list(const tw_kv_cache* cache, const tw_kv_list_arguments* arguments);

typedef struct tw_inverse_rope tw_inverse_rope;

typedef struct tw_inverse_rope_arguments {
  size_t struct_bytes;
  int64_t tokens, heads;
  void* out;
  int64_t token_stride, head_stride;
  const int32_t* positions;
  const float* rope;
  int64_t rope_positions;
  void* codes;
  void* scales;
  int32_t has_pow2_scales, has_block_major_scales, has_operand_order;
  void* stream;
} tw_inverse_rope_arguments;

TW_API void tw_inverse_rope_arguments_init(tw_inverse_rope_arguments* arguments);
TW_API tw_status tw_inverse_rope_create(const tw_device* device, tw_inverse_rope** rope);
TW_API void tw_inverse_rope_destroy(tw_inverse_rope* rope); /* NULL is allowed */
TW_API tw_status tw_inverse_rope_run(const tw_inverse_rope* rope,
                                     const tw_inverse_rope_arguments* arguments);

typedef enum tw_compressor_kind {
  TW_COMPRESSOR_CSA = 0,
  TW_COMPRESSOR_HCA = 1,
  TW_COMPRESSOR_INDEX_FP8 = 2,
  TW_COMPRESSOR_INDEX_MXFP4 = 3
} tw_compressor_kind;

typedef struct tw_compressor_problem {
  size_t struct_bytes;
  int32_t kind; /* tw_compressor_kind */
  tw_kv_layout cache;
  int64_t state_slots, ring;
  double eps; /* 1e-6 */
} tw_compressor_problem;

typedef struct tw_compressor_arguments {
  size_t struct_bytes;
  tw_sequence_batch sequences;
  int64_t max_tokens; /* 1 */
  const float* kv;
  const float* gate;
  int64_t kv_stride, gate_stride;
  const float* ape;
  const void* norm_weight;
  const float* rope;
  int64_t rope_positions;
  void* state;
  const int32_t* state_slots;
  tw_sequence_pages table;
  void* pages;
  void* stream;
} tw_compressor_arguments;

typedef struct tw_compressor tw_compressor;

TW_API void tw_compressor_problem_init(tw_compressor_problem* problem);
TW_API void tw_compressor_arguments_init(tw_compressor_arguments* arguments);
TW_API tw_status tw_compressor_create(const tw_device* device, const tw_compressor_problem* problem,
                                      tw_compressor** compressor);
TW_API void tw_compressor_destroy(tw_compressor* compressor); /* NULL is allowed */
TW_API size_t tw_compressor_state_bytes(const tw_compressor* compressor);
TW_API size_t tw_compressor_cache_bytes(const tw_compressor* compressor);
TW_API tw_status tw_compressor_run(const tw_compressor* compressor,
                                   const tw_compressor_arguments* arguments);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_CACHE_H */
