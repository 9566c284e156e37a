/* DLPack 1.3 (https://dmlc.github.io/dlpack), as far as the extension uses it: how array libraries
 * tell each other where a tensor lies. Layouts and numbers are the standard's. */
#ifndef TILEWRIGHT_PYTHON_DLPACK_H
#define TILEWRIGHT_PYTHON_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

enum {
  DL_INT = 0,
  DL_UINT = 1,
  DL_FLOAT = 2,
  DL_BFLOAT = 4,
  DL_BOOL = 6,
  DL_E4M3FN = 10,
  DL_E5M2 = 12,
  DL_E8M0FNU = 14,
  DL_E2M1FN = 17
};

typedef struct DLDevice {
  int32_t type;
  int32_t id;
} DLDevice;

typedef struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: contiguous */
  uint64_t byte_offset;
} DLTensor;

typedef struct DLVersion {
  uint32_t major;
  uint32_t minor;
} DLVersion;

typedef struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;

#define DL_READ_ONLY 1u

typedef struct DLManagedTensorVersioned {
  DLVersion version;
  void* context;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor tensor;
} DLManagedTensorVersioned;

/* The table of functions behind type(x).__dlpack_c_exchange_api__. */
typedef struct DLExchange {
  DLVersion version;
  const struct DLExchange* older;
  void* allocate;
  void* managed_from_object;
  void* managed_to_object;
  int (*borrow)(void* object, DLTensor* tensor); /* may be NULL */
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
} DLExchange;

#endif /* TILEWRIGHT_PYTHON_DLPACK_H */
