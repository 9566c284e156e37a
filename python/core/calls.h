/* Of _core.Calls alone: what calls.c and calls_key.c share. */
#ifndef TILEWRIGHT_PYTHON_CALLS_H
#define TILEWRIGHT_PYTHON_CALLS_H

#include "core.h"

enum { MAX_TENSORS = 24, MAX_RESULTS = 4, MAX_GUARDS = 8, SLOTS = 256, KEY_BYTES = 2560 };

typedef struct Key {
  size_t size;
  uint64_t hash;
  char bytes[KEY_BYTES];
} Key;

/* Where an address goes. */
typedef struct Place {
  size_t offset;
  int position; /* of a tensor of the call; -1: the workspace */
} Place;

typedef struct Known {
  struct Known* next; /* with the same slot */
  int users;          /* calls that are under way */
  bool is_forgotten;  /* to be freed behind the last of them */
  uint64_t hash;
  size_t key_size;
  char* key;
  Operator* op;
  PyObject* names;   /* {member: position}; a simulated device is called by them */
  PyObject* members; /* and by those that are no tensors */
  AnyArguments arguments;
  Place places[MAX_TENSORS];
  int num_places;
  size_t workspace_bytes, workspace_offset, stream_offset;
  PyObject* makers[MAX_TENSORS]; /* of results that a call does not give */
  int results[MAX_RESULTS];
  int num_results;
} Known;

/* Memory that stays with a stream: calls there run one after the other, and one serves all. */
typedef struct Workspace {
  void* stream;
  int32_t ordinal;
  size_t bytes;
  void* address;
  PyObject* tensor;
} Workspace;

enum { MAX_WORKSPACES = 16, LARGEST_KEPT = 64 << 20 };

typedef struct Calls {
  PyObject_HEAD Known* slots[SLOTS];
  int count, limit, num_tensors, num_guards;
  bool is_dry;
  PyTypeObject* plain[2];
  PyObject* guards[MAX_GUARDS]; /* functions; a call is direct if each gives 0 or None */
  PyObject* grad_enabled;
  PyObject* is_capturing;
  PyObject* allocate; /* (bytes, like) */
  Workspace workspaces[MAX_WORKSPACES];
} Calls;

/* The key, and the tensors' addresses; false, without an exception, for a call of another kind. */
bool calls_read(const Calls* self, PyObject* const* args, Py_ssize_t count, Key* key,
                void** addresses, const DLExchange** exchange);

#endif /* TILEWRIGHT_PYTHON_CALLS_H */
