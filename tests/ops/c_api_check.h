#ifndef TILEWRIGHT_TESTS_OPS_C_API_CHECK_H
#define TILEWRIGHT_TESTS_OPS_C_API_CHECK_H

#ifdef __cplusplus
extern "C" {
#endif

/* 0, or the line of the check that failed. */
int check_c_api(const char* spec);
int check_cache_c_api(const char* spec);   /* tilewright_cache.h */
int check_decode_c_api(const char* spec);  /* tilewright_decode.h */
int check_hyper_c_api(const char* spec);   /* tilewright_hyper_connection.h */
int check_indexer_c_api(const char* spec); /* tilewright_indexer.h */

#ifdef __cplusplus
}
#endif

#endif
