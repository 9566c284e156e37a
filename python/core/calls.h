/* Of _core.Calls alone: what calls.c, calls_key.c and the files of torch's dispatcher share. */
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

/* A result that torch's C interface makes. */
typedef struct Made {
  int64_t ndim, shape[MAX_DIMS], strides[MAX_DIMS];
  int32_t dtype, device_type, device_index; /* as torch counts them */
} Made;

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
  PyObject* like; /* of calls by torch's dispatcher: a tensor there, */
  Made* made;     /* and the results */
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
  /* Functions; a call is direct if each gives 0 or None. Those of torch are asked for in C, where
   * torch_abi.c has found them: five calls of Python cost half a microsecond. */
  PyObject* guards[MAX_GUARDS];
  PyObject* grad_enabled;
  PyObject* is_capturing;
  PyObject* allocate; /* (bytes, like) */
  Workspace workspaces[MAX_WORKSPACES];
} Calls;

bool key_put(Key* key, const void* from, size_t size);
/* A text with its length before it, and zeros behind it up to a whole word. */
bool key_put_text(Key* key, const char* text, int64_t size);
void key_finish(Key* key);
/* The key, and the tensors' addresses; false, without an exception, for a call of another kind. */
bool calls_read(const Calls* self, PyObject* const* args, Py_ssize_t count, Key* key,
                void** addresses, const DLExchange** exchange);

extern PyTypeObject* calls_type;
Known* calls_find(const Calls* self, const Key* key);
/* Whether a mode, a transform or a tracer wants to see what torch does. */
bool calls_are_watched(const Calls* self);
/* Makes a call known; NULL, with an exception, if that cannot be. `results` may be NULL. */
Known* calls_insert(Calls* self, const Key* key, Operator* op, size_t workspace_bytes,
                    PyObject* names, PyObject* results, PyObject* members);
/* Where the named tensors go, of so many, and the struct but for them; false with an exception. */
bool calls_place(Known* known, PyObject* names, int num_tensors);
/* The struct of a call with its addresses, but for workspace and stream. */
void calls_fill(const Known* known, AnyArguments* arguments, void* const* addresses);
/* Behind a call, before which `users` was counted up. */
void calls_leave(Known* known);
/* Fills the struct and calls the library; false, perhaps without an exception, if that failed.
 * `like` is a tensor of the same device, for the workspace. */
bool calls_launch_on_gpu(Calls* self, const Known* known, void* const* addresses, PyObject* like,
                         const DLExchange* exchange);
/* By tilewright/_staging.py, which copies there and back. Takes the reference of the tensors. */
bool calls_launch_on_host(const Known* known, PyObject* tensors);

#endif /* TILEWRIGHT_PYTHON_CALLS_H */
