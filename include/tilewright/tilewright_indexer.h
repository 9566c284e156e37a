/* The C interface of DeepSeek-V4's lightning indexer. tilewright.h has rules of use; formulas,
 * shapes and rules of each field stand in indexer.h, under the same names. All pointers of
 * arguments are device addresses. */
#ifndef TILEWRIGHT_TILEWRIGHT_INDEXER_H
#define TILEWRIGHT_TILEWRIGHT_INDEXER_H

#include "tilewright/tilewright_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tw_indexer_format { TW_INDEXER_FP8 = 0, TW_INDEXER_MXFP4 = 1 } tw_indexer_format;

typedef struct tw_indexer_problem {
  size_t struct_bytes;
  int32_t format; /* tw_indexer_format */
  int64_t heads, topk, ratio, max_len;
  tw_kv_layout keys; /* its format does not count */
  tw_kv_layout rows; /* only sizes count; num_pages 0: rows are entries */
  int32_t fill_logits;
} tw_indexer_problem;

typedef struct tw_indexer_arguments {
  size_t struct_bytes;
  int64_t tokens;
  tw_sequence_batch sequences; /* starts are not used */
  const int32_t* positions;
  const int32_t* lengths; /* NULL: by the positions */
  const void* q;
  int64_t q_token_stride, q_head_stride;
  const void* weights;
  int32_t has_f32_weights; /* else bf16 */
  int64_t weights_stride;
  const float* rope;
  int64_t rope_positions;
  const void* key_pages;
  tw_sequence_pages key_table, row_table;
  int32_t* rows;
  int64_t rows_stride;
  int32_t* counts; /* or NULL */
  void* workspace;
  int32_t has_schedule;
  void* stream; /* CUstream; NULL: the default stream */
} tw_indexer_arguments;

typedef struct tw_indexer tw_indexer;

TW_API void tw_indexer_problem_init(tw_indexer_problem* problem);
TW_API void tw_indexer_arguments_init(tw_indexer_arguments* arguments);
TW_API tw_status tw_indexer_create(const tw_device* device, const tw_indexer_problem* problem,
                                   tw_indexer** indexer);
TW_API void tw_indexer_destroy(tw_indexer* indexer); /* NULL is allowed */
TW_API size_t tw_indexer_key_cache_bytes(const tw_indexer* indexer);
/* 0 if a number makes no sense. */
TW_API size_t tw_indexer_workspace_bytes(const tw_indexer* indexer, int64_t tokens, int64_t batch);
TW_API tw_status tw_indexer_run(const tw_indexer* indexer, const tw_indexer_arguments* arguments);

#ifdef __cplusplus
}
#endif

#endif
