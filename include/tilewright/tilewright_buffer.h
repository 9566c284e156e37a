/* Device memory for C programs that have no other way to get it, and numbers for it:
 * tilewright/buffer.h and convert.h explain more.
 *
 *     tw_buffer* q;
 *     if (tw_buffer_create(device, bytes, &q) != TW_OK) ...
 *     if (tw_buffer_upload(q, 0, host, bytes) != TW_OK) ...
 *     arguments.q = tw_buffer_data(q);
 */
#ifndef TILEWRIGHT_TILEWRIGHT_BUFFER_H
#define TILEWRIGHT_TILEWRIGHT_BUFFER_H

#include "tilewright/tilewright.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_buffer tw_buffer;

/* Uninitialised memory of the device, 256-byte aligned. */
TW_API tw_status tw_buffer_create(const tw_device* device, size_t size_bytes, tw_buffer** buffer);
/* NULL is allowed. */
TW_API void tw_buffer_destroy(tw_buffer* buffer);
/* The device address, not for use by the host; NULL for a buffer of 0 bytes, and for NULL. */
TW_API void* tw_buffer_data(const tw_buffer* buffer);
TW_API size_t tw_buffer_size_bytes(const tw_buffer* buffer);
/* Copies of `bytes` bytes from or to `offset` of the buffer. They wait for the default stream; work
 * on another one has to be waited for first (tw_device_synchronize). */
TW_API tw_status tw_buffer_upload(tw_buffer* buffer, size_t offset, const void* from, size_t bytes);
TW_API tw_status tw_buffer_download(const tw_buffer* buffer, size_t offset, void* to, size_t bytes);
/* Every byte becomes `value`; 0xff makes a NaN of every number. */
TW_API tw_status tw_buffer_fill(tw_buffer* buffer, unsigned char value);

/* `count` numbers to elements of a tw_dtype and back, on the host; encode rounds to nearest. */
TW_API tw_status tw_encode(int32_t dtype, const float* numbers, size_t count, void* elements);
TW_API tw_status tw_decode(int32_t dtype, const void* elements, size_t count, float* numbers);

#ifdef __cplusplus
}
#endif

#endif /* TILEWRIGHT_TILEWRIGHT_BUFFER_H */
