/* What the C tests of the C interface need: their check, and functions of the device's driver. */
#ifndef TILEWRIGHT_TESTS_OPS_C_API_DEVICE_H
#define TILEWRIGHT_TESTS_OPS_C_API_DEVICE_H

#include "tilewright/tilewright.h"

#include <string.h>

typedef int (*set_context)(void*);
typedef int (*allocate)(uint64_t*, size_t);
typedef int (*copy_in)(uint64_t, const void*, size_t);
typedef int (*copy_out)(void*, uint64_t, size_t);

/* ISO C forbids the cast from object to function pointer. */
#define LOOK_UP(type, variable, name)                        \
  type variable;                                             \
  do {                                                       \
    void* address = tw_device_driver_function(device, name); \
    if (address == NULL) return __LINE__;                    \
    memcpy(&variable, &address, sizeof variable);            \
  } while (0)
#define CHECK(condition)               \
  do {                                 \
    if (!(condition)) return __LINE__; \
  } while (0)

#endif
