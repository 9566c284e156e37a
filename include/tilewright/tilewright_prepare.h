/* The C interface of preparing e4m3 operands of attention. tilewright.h has rules of use; formulas,
 * shapes and rules of each field stand in attention_prepare.h, under the same names. All pointers
 * of arguments are device addresses. */
#ifndef TILEWRIGHT_TILEWRIGHT_PREPARE_H
#define TILEWRIGHT_TILEWRIGHT_PREPARE_H

#include "tilewright/tilewright.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fill it with tw_attention_prepare_problem_init(), which sets struct_bytes; then set what you
 * need. */
typedef struct tw_attention_prepare_problem {
  size_t struct_bytes;
  int32_t dtype;     /* of what is read: TW_BF16 or TW_F16 */
  int32_t is_packed; /* lengths come as cu_q and cu_kv */
  int64_t batch, heads, kv_heads;
  int64_t q_len, kv_len;     /* of every sequence; of the longest if packed */
  int64_t head_dim;          /* 64, 128 or 256 */
  int64_t total_q, total_kv; /* rows of packed tensors */
  tw_strides q_strides, k_strides, v_strides;
  tw_strides q8_strides, k8_strides, v8_strides; /* of the codes */
  int32_t scales;                                /* tw_fp8_scales: TW_SCALES_BLOCK */
  int32_t v_columns;                             /* 1: as Fp8ValueLayout::kColumns */
  int32_t is_rotated;                            /* 1 */
  int32_t rope;                                  /* tw_rotary */
  uint64_t sign_seed;
  int64_t rotary_dim;     /* 0: head_dim */
  int64_t rope_positions; /* rows of the table of angles */
  int32_t has_positions;  /* positions come as lists */
  int32_t reserved;
} tw_attention_prepare_problem;

/* What the outputs need. */
typedef struct tw_attention_prepare_sizes {
  size_t q8_bytes, k8_bytes, v8_bytes;
  size_t num_q_descales, num_k_descales, num_v_descales;
  size_t num_v_descale_max;
  size_t workspace_bytes;
} tw_attention_prepare_sizes;

/* NULL where the problem does not need it. */
typedef struct tw_attention_prepare_arguments {
  const void *q, *k, *v;
  void *q8, *k8, *v8;
  float *q_descale, *k_descale, *v_descale;
  float* v_descale_max;        /* TW_SCALES_BLOCK */
  const int32_t *cu_q, *cu_kv; /* [batch + 1] */
  const float* rope;           /* [rope_positions, rotary_dim]: cosines, then sines */
  const int32_t *q_positions, *k_positions;
  void* workspace; /* 256-byte aligned */
  void* stream;    /* CUstream; NULL: the default stream */
} tw_attention_prepare_arguments;

typedef struct tw_attention_prepare tw_attention_prepare;

TW_API void tw_attention_prepare_problem_init(tw_attention_prepare_problem* problem);
TW_API tw_status tw_attention_prepare_create(const tw_device* device,
                                             const tw_attention_prepare_problem* problem,
                                             tw_attention_prepare** prepare);
TW_API void tw_attention_prepare_destroy(tw_attention_prepare* prepare); /* NULL is allowed */
/* Valid until the object is destroyed. */
TW_API const char* tw_attention_prepare_plan_text(const tw_attention_prepare* prepare);
/* All 0 if there is no object. */
TW_API tw_attention_prepare_sizes
tw_attention_prepare_get_sizes(const tw_attention_prepare* prepare);
TW_API tw_status tw_attention_prepare_run(const tw_attention_prepare* prepare,
                                          const tw_attention_prepare_arguments* arguments);
/* The signs of a rotation, for who rotates elsewhere: signs[head_dim], on the host. */
TW_API tw_status tw_attention_prepare_signs(uint64_t seed, int64_t head_dim, float* signs);

#ifdef __cplusplus
}
#endif

#endif
