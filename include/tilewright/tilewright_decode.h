/* The C interface of attention of new tokens over caches. tilewright.h has rules of use; formulas,
 * shapes and rules of each field stand in attention_decode.h, under the same names. All pointers of
 * arguments are device addresses. */
#ifndef TILEWRIGHT_TILEWRIGHT_DECODE_H
#define TILEWRIGHT_TILEWRIGHT_DECODE_H

#include "tilewright/tilewright.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tw_descale {
  TW_DESCALE_NONE = 0,
  TW_DESCALE_PER_TENSOR = 1,
  TW_DESCALE_PER_HEAD = 2
} tw_descale;

/* Fill it with tw_attention_decode_problem_init(), which sets struct_bytes; then set what you
 * need. */
typedef struct tw_attention_decode_problem {
  size_t struct_bytes;
  int32_t dtype;    /* TW_BF16 or TW_F16 */
  int32_t kv_dtype; /* the same, or TW_E4M3 */
  int64_t batch, q_len, heads, kv_heads, head_dim;
  int64_t max_len;                                       /* without pages */
  int64_t page_size, num_pages, max_pages, table_stride; /* page_size 0: no pages */
  double scale;                                          /* 0: head_dim^-0.5 */
  int32_t causal;                                        /* 1 */
  int64_t window_left;                                   /* -1: all */
  double softcap;                                        /* 0: none */
  int32_t descale;                                       /* tw_descale */
  int32_t has_sink, has_lse;
  int32_t appends; /* new_k and new_v are written first */
  int32_t rotary;  /* tw_rotary */
  int64_t rotary_dim, max_position;
  tw_strides q_strides, out_strides, new_k_strides, new_v_strides; /* 0: contiguous */
  tw_strides cache_strides;                                        /* batch: of a page */
  int64_t splits;                                                  /* 0: by the lengths */
  const char* kernel;                                              /* NULL: "auto" */
} tw_attention_decode_problem;

typedef struct tw_attention_decode_arguments {
  const void* q;
  void *k_cache, *v_cache;
  const int32_t *lengths, *block_table;
  const float *k_descale, *v_descale;
  const void *new_k, *new_v;
  const float *cos, *sin;
  void* out;
  float* lse;
  const float* sink;
  void* workspace;
  void* stream; /* CUstream; NULL: the default stream */
} tw_attention_decode_arguments;

typedef struct tw_attention_decode tw_attention_decode;

TW_API void tw_attention_decode_problem_init(tw_attention_decode_problem* problem);
TW_API tw_status tw_attention_decode_create(const tw_device* device,
                                            const tw_attention_decode_problem* problem,
                                            tw_attention_decode** decode);
TW_API void tw_attention_decode_destroy(tw_attention_decode* decode); /* NULL is allowed */
/* Valid until the object is destroyed. */
TW_API const char* tw_attention_decode_plan_text(const tw_attention_decode* decode);
TW_API size_t tw_attention_decode_workspace_bytes(const tw_attention_decode* decode);
TW_API tw_status tw_attention_decode_run(const tw_attention_decode* decode,
                                         const tw_attention_decode_arguments* arguments);

#ifdef __cplusplus
}
#endif

#endif
