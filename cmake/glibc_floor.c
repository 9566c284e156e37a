/* What makes libraries that are linked with a new C library load on systems with glibc 2.28, the
 * floor of manylinux_2_28: functions whose newest version is younger are asked for in their oldest
 * one, and what older systems do not have is here. Everything is hidden: the linker takes it for
 * all objects of the same library, the C++ runtime in it included. For x86-64, where the oldest
 * version of everything is 2.2.5. */
#if defined(__x86_64__) && defined(__linux__)
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define OLD(name) __asm__(".symver old_" #name "," #name "@GLIBC_2.2.5")
#define HIDDEN __attribute__((visibility("hidden")))

/* ---- moved into libc.so.6 by 2.34; before, they are in libdl.so.2 and libpthread.so.0 */

#define FORWARD(result, name, parameters, arguments) \
  extern result old_##name parameters;               \
  OLD(name);                                         \
  HIDDEN result name parameters {                    \
    return old_##name arguments;                     \
  }

FORWARD(void*, dlopen, (const char* path, int mode), (path, mode))
FORWARD(int, dlclose, (void* handle), (handle))
FORWARD(void*, dlsym, (void* restrict handle, const char* restrict name), (handle, name))
FORWARD(char*, dlerror, (void), ())
FORWARD(int, dladdr, (const void* address, Dl_info* info), (address, info))
FORWARD(int, pthread_create,
        (pthread_t* restrict thread, const pthread_attr_t* restrict attributes,
         void* (*start)(void*), void* restrict argument),
        (thread, attributes, start, argument))
FORWARD(int, pthread_join, (pthread_t thread, void** result), (thread, result))
FORWARD(int, pthread_detach, (pthread_t thread), (thread))
FORWARD(int, pthread_once, (pthread_once_t * once, void (*start)(void)), (once, start))
FORWARD(int, pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end))
FORWARD(int, __pthread_key_create, (pthread_key_t * key, void (*end)(void*)), (key, end))
FORWARD(int, pthread_key_delete, (pthread_key_t key), (key))
FORWARD(void*, pthread_getspecific, (pthread_key_t key), (key))
FORWARD(int, pthread_setspecific, (pthread_key_t key, const void* value), (key, value))
FORWARD(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
FORWARD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
FORWARD(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))

/* dlinfo() is of 2.3.3. */
extern int old_dlinfo(void* restrict handle, int request, void* restrict found);
__asm__(".symver old_dlinfo,dlinfo@GLIBC_2.3.3");
HIDDEN int dlinfo(void* restrict handle, int request, void* restrict found) {
  return old_dlinfo(handle, request, found);
}

/* ---- mathematics: 2.29 dropped what the older ones do about errno of SVID programs */

#define FORWARD_MATH(name)          \
  extern double old_##name(double); \
  OLD(name);                        \
  HIDDEN double name(double x) {    \
    return old_##name(x);           \
  }

FORWARD_MATH(exp)
FORWARD_MATH(log)
FORWARD_MATH(log2)
extern double old_exp2(double x);
OLD(exp2);
HIDDEN double exp2(double x) {
  return old_exp2(x);
}
extern double old_pow(double x, double y);
OLD(pow);
HIDDEN double pow(double x, double y) {
  return old_pow(x, y);
}

/* ---- stat() became a function with 2.33 */

enum { STAT_VERSION = 1 };
extern int old___xstat(int version, const char* path, struct stat* found);
OLD(__xstat);
extern int old___fxstat(int version, int file, struct stat* found);
OLD(__fxstat);
extern int old___lxstat(int version, const char* path, struct stat* found);
OLD(__lxstat);
HIDDEN int stat(const char* restrict path, struct stat* restrict found) {
  return old___xstat(STAT_VERSION, path, found);
}
HIDDEN int fstat(int file, struct stat* found) {
  return old___fxstat(STAT_VERSION, file, found);
}
HIDDEN int lstat(const char* restrict path, struct stat* restrict found) {
  return old___lxstat(STAT_VERSION, path, found);
}

struct stat64; /* the same struct on this machine */
HIDDEN int stat64(const char* path, struct stat64* found) {
  return old___xstat(STAT_VERSION, path, (struct stat*)found);
}
HIDDEN int fstat64(int file, struct stat64* found) {
  return old___fxstat(STAT_VERSION, file, (struct stat*)found);
}
HIDDEN int lstat64(const char* path, struct stat64* found) {
  return old___lxstat(STAT_VERSION, path, (struct stat*)found);
}

/* ---- what older systems do not have, for the C++ runtime */

HIDDEN char __libc_single_threaded = 0; /* 2.32: whether locks can be left out */

/* 2.30: a wait until a time of any clock. Here by the clock that every version can wait for: where
 * that is set meanwhile, the wait ends early or late, and callers look at their own clock again. */
HIDDEN int pthread_cond_clockwait(pthread_cond_t* restrict condition,
                                  pthread_mutex_t* restrict mutex, clockid_t clock,
                                  const struct timespec* restrict end) {
  enum { kNanoseconds = 1000000000 };
  struct timespec now, until;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += end->tv_sec - now.tv_sec;
  until.tv_nsec += end->tv_nsec - now.tv_nsec;
  if (until.tv_nsec < 0) {
    until.tv_nsec += kNanoseconds;
    --until.tv_sec;
  } else if (until.tv_nsec >= kNanoseconds) {
    until.tv_nsec -= kNanoseconds;
    ++until.tv_sec;
  }
  return pthread_cond_timedwait(condition, mutex, &until);
}

/* 2.35: where the unwinder finds the frames of a piece of code. As its struct dl_find_object. */
typedef struct Frames {
  unsigned long long flags;
  void *begin, *end;
  struct link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
} Frames;

/* begin: the address that is looked for, until an object has it. */
static int find_frames(struct dl_phdr_info* info, size_t size, void* given) {
  (void)size;
  Frames* const found = given;
  const uintptr_t address = (uintptr_t)found->begin;
  uintptr_t begin = 0, end = 0, frames = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* const part = &info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = at;
    if (part->p_type != PT_LOAD || address < at || address >= at + part->p_memsz) continue;
    begin = at;
    end = at + part->p_memsz;
  }
  if (begin == 0 || frames == 0) return 0;
  found->begin = (void*)begin;
  found->end = (void*)end;
  found->eh_frame = (void*)frames;
  return 1;
}

struct dl_find_object;
HIDDEN int _dl_find_object(void* address, struct dl_find_object* result) {
  Frames found = {.begin = address};
  if (dl_iterate_phdr(find_frames, &found) == 0) return -1;
  *(Frames*)(void*)result = found;
  return 0;
}

/* 2.36: of std::random_device. */
HIDDEN uint32_t arc4random(void) {
  uint32_t word = 0;
  while (getrandom(&word, sizeof word, 0) != (ssize_t)sizeof word) {
  }
  return word;
}

#ifdef TILEWRIGHT_FLOOR_OF_PROGRAM
/* 2.34: who starts a program runs its constructors. Before, the program hands over a function. */
typedef void (*Constructor)(int, char**, char**);
extern Constructor __preinit_array_start[] HIDDEN, __preinit_array_end[] HIDDEN;
extern Constructor __init_array_start[] HIDDEN, __init_array_end[] HIDDEN;
extern void _init(void);

static void construct(int argc, char** argv, char** environment) {
  for (Constructor* at = __preinit_array_start; at != __preinit_array_end; ++at)
    (*at)(argc, argv, environment);
  _init();
  for (Constructor* at = __init_array_start; at != __init_array_end; ++at)
    (*at)(argc, argv, environment);
}

typedef int (*Main)(int, char**, char**);
extern int old___libc_start_main(Main main, int argc, char** argv, Constructor init,
                                 void (*fini)(void), void (*end_of_loader)(void), void* stack);
OLD(__libc_start_main);
HIDDEN int __libc_start_main(Main main, int argc, char** argv, Constructor init, void (*fini)(void),
                             void (*end_of_loader)(void), void* stack) {
  return old___libc_start_main(main, argc, argv, init != NULL ? init : construct, fini,
                               end_of_loader, stack);
}
#endif
#endif /* x86-64, Linux */
