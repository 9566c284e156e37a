#ifndef TILEWRIGHT_TESTS_OPS_C_API_CHECK_H
#define TILEWRIGHT_TESTS_OPS_C_API_CHECK_H

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or the line of the check that failed. */
int check_c_api(const char* spec);
int check_tokenizer_c_api(const char* folder); /* with a tokenizer.json */
int check_llm_c_api(const char* folder);       /* of a checkpoint of 256 tokens */
int check_attention_c_api(const char* spec);   /* preparing operands, decode attention */
int check_pages_c_api(const char* spec);       /* attention over pages, merges, mask lists */
int check_cache_c_api(const char* spec);       /* caches, compressors */
int check_hyper_c_api(const char* spec);
int check_indexer_c_api(const char* spec);
int check_plan_c_api(void);                 /* plans and reasons, without a device */
int check_versions_c_api(const char* spec); /* sizes that structs may have */
/* One program, compiled with the previous header and with one that lacks members of today's. */
int check_previous_header(const char* spec);
int check_older_header(const char* spec);

#ifdef __cplusplus
}
#endif

#endif
