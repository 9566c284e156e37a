/* What the extension knows of the C interface: every struct, operator and set of weights as rows of
 * a table, which tools/make_c_api.py writes from tools/c_api into table.c. */
#ifndef TILEWRIGHT_PYTHON_TABLE_H
#define TILEWRIGHT_PYTHON_TABLE_H

#include "tilewright/tilewright.h"

#include "python_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum Kind {
  KIND_FLAG,
  KIND_I32,
  KIND_I64,
  KIND_U64,
  KIND_F32,
  KIND_F64,
  KIND_SIZE,
  KIND_TEXT,
  KIND_WORD,   /* an enumerator, by its word */
  KIND_STRUCT, /* a struct inside of the struct */
  KIND_ARRAY,  /* the address of structs that lie one behind the other */
  KIND_INPUT,  /* the address of a tensor that is read */
  KIND_OUTPUT, /* of one that is written, and perhaps read */
  KIND_STREAM
} Kind;

typedef enum Element { ELEMENT_ANY, ELEMENT_F32, ELEMENT_I32 } Element;

typedef struct Word {
  const char* word; /* NULL behind the last */
  int32_t value;
} Word;

typedef struct Member {
  const char* name;
  Kind kind;
  size_t offset;
  const Word* words;          /* KIND_WORD: those that the member takes */
  const struct Struct* inner; /* KIND_STRUCT, KIND_ARRAY */
  const char* count;          /* KIND_ARRAY: the member with the number of structs; NULL: one */
  Element element;            /* KIND_INPUT, KIND_OUTPUT */
} Member;

typedef struct Struct {
  const char* name; /* "AttentionProblem" */
  size_t size;
  void (*init)(void* given);
  const Member* members;
  int num_members;
  PyObject** names; /* as Python has them; structs_init() makes them and the defaults */
  void* defaults;
} Struct;

enum { MAX_EXTENTS = 4, MAX_FLAGS = 2 };

typedef struct Extent {
  size_t offset; /* of the member of the problem; 0: the number (a problem begins with its size) */
  int64_t number;
  size_t otherwise; /* of the member that counts where that one is 0; 0: none */
} Extent;

/* What a tensor of a call is (tools/c_api/tensors.txt). */
typedef struct Rule {
  int member; /* of the arguments of the first call */
  int32_t dtype;
  size_t dtype_offset;    /* 0: dtype */
  size_t dtype_otherwise; /* of the member that counts where that one is TW_ABSENT */
  Extent extents[MAX_EXTENTS];
  int num_extents;
  enum { STRIDES_NONE, STRIDES_STRUCT, STRIDES_ROW } strides;
  size_t strides_offset;
  bool is_last_contiguous; /* the struct has no stride of the last extent */
  struct {
    enum { FLAG_NONE, FLAG_SET, FLAG_CLEAR } wanted;
    bool is_wide; /* 8 bytes */
    size_t offset;
  } flags[MAX_FLAGS]; /* members of the problem that are 0 or not */
  bool is_16_bit;
} Rule;

typedef struct Query {
  const char* name;
  const char* doc;
  const char* (*text)(const void* handle); /* one of these */
  size_t (*size)(const void* handle);
  double (*number)(const void* handle);
} Query;

typedef struct Call {
  const char* name; /* "run" */
  const char* what; /* "Attention.run" */
  const char* doc;  /* with the signature, as CPython reads it */
  const Struct* arguments;
  tw_status (*call)(const void* handle, const void* arguments);
} Call;

/* An operator, or prepared weights: what a class of the package is made of. */
typedef struct Class {
  const char* name; /* "Attention" */
  const char* doc;
  const char* on;            /* "Device", or the class of its weights */
  const Struct* problem;     /* NULL: none */
  const Struct* plan_inputs; /* of weights NULL: they have no plan */
  tw_status (*plan)(const tw_device* device, const void* inputs, tw_plan** plan);
  tw_status (*create)(const void* on, const void* problem, void** handle);
  void (*destroy)(void* handle);
  const Query* queries;
  int num_queries;
  const Rule* rules;
  int num_rules;
  const Call* calls; /* none: weights, whose tensors are read when they are made */
  int num_calls;
} Class;

extern const Class kClasses[];
extern const int kNumClasses;
extern const Struct* const kStructs[];
extern const int kNumStructs;

/* Room for the arguments of any call; table.c asserts that it suffices. */
typedef union AnyArguments {
  char bytes[512];
  max_align_t alignment;
} AnyArguments;

#endif /* TILEWRIGHT_PYTHON_TABLE_H */
