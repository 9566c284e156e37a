/* XLA's foreign functions, as far as one handler needs them: the layout of what XLA hands over, by
 * its C interface (xla/ffi/api/c_api.h, major version 0). Every struct begins with its size, by
 * which its maker says how much of it there is. */
#ifndef TILEWRIGHT_PYTHON_XLA_ABI_H
#define TILEWRIGHT_PYTHON_XLA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef struct XlaError XlaError;

typedef struct XlaExtension {
  size_t struct_size;
  int type;
  struct XlaExtension* next;
} XlaExtension;
enum { XLA_EXTENSION_METADATA = 1 };

typedef struct XlaVersion {
  size_t struct_size;
  XlaExtension* extensions;
  int major, minor;
} XlaVersion;
/* The interface that this is written against; major numbers are for what breaks. */
enum { XLA_MAJOR = 0, XLA_MINOR = 1 };

/* What XLA asks of a handler when it is registered. */
typedef struct XlaMetadata {
  size_t struct_size;
  XlaVersion version;
  uint32_t traits;
} XlaMetadata;
typedef struct XlaMetadataExtension {
  XlaExtension base;
  XlaMetadata* metadata;
} XlaMetadataExtension;

typedef struct XlaSpan {
  const char* text;
  size_t size;
} XlaSpan;

typedef struct XlaBuffer {
  size_t struct_size;
  XlaExtension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
} XlaBuffer;

/* Arguments and results; all are buffers. */
typedef struct XlaBuffers {
  size_t struct_size;
  XlaExtension* extensions;
  int64_t size;
  const int* types;
  void** items;
} XlaBuffers;
enum { XLA_BUFFER = 1 };

typedef struct XlaAttributes {
  size_t struct_size;
  XlaExtension* extensions;
  int64_t size;
  const int* types;
  XlaSpan** names;
  void** items;
} XlaAttributes;
enum { XLA_ATTRIBUTE_STRING = 4 };

/* Arguments of the functions of XlaApi that are called here. */
typedef struct XlaErrorCreate {
  size_t struct_size;
  XlaExtension* extensions;
  const char* message;
  int code;
} XlaErrorCreate;
enum { XLA_INVALID_ARGUMENT = 3, XLA_FAILED_PRECONDITION = 9, XLA_INTERNAL = 13 };

typedef struct XlaStreamGet {
  size_t struct_size;
  XlaExtension* extensions;
  void* context;
  void* stream; /* is written */
} XlaStreamGet;

typedef struct XlaOrdinalGet {
  size_t struct_size;
  XlaExtension* extensions;
  void* context;
  int32_t ordinal; /* is written */
} XlaOrdinalGet;

typedef struct XlaApi {
  size_t struct_size;
  XlaExtension* extensions;
  XlaVersion version;
  const void* internal;
  XlaError* (*error_create)(XlaErrorCreate* arguments);
  void* error_functions[2];
  void* handler_register;
  XlaError* (*stream_get)(XlaStreamGet* arguments);
  void* other_functions[12]; /* types, contexts, states, memory, threads, futures, runs */
  XlaError* (*ordinal_get)(XlaOrdinalGet* arguments);
} XlaApi;

typedef struct XlaFrame {
  size_t struct_size;
  XlaExtension* extensions;
  const XlaApi* api;
  void* context;
  int stage;
  XlaBuffers arguments, results;
  XlaAttributes attributes;
} XlaFrame;
enum { XLA_STAGE_EXECUTE = 3 };

#endif /* TILEWRIGHT_PYTHON_XLA_ABI_H */
