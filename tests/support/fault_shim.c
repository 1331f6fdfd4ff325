// Preloaded into a program, lets one chosen call fail as a full disk, an exhausted memory or a
// missing right would make it fail:
//   MJPOLICY_FAULT=<kind> <n>    the n-th call since main began; kinds: open, write, thread,
//   allocate MJPOLICY_FAULT_MARK=<path>   a file that is created when it did
// With MJPOLICY_NO_PROC set, nothing is found in /proc, as where it is not mounted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum Kind { kOpen, kWrite, kThread, kAllocate };
static const char* const kNames[] = {"open", "write", "thread", "allocate"};

static int armed = -1;    // the Kind that is to fail, once main has begun
static atomic_long left;  // calls until it does
static const char* mark;

// Whether this call is the one that fails; errno is set then.
static int Fails(enum Kind kind, int error) {
  if (armed != (int)kind || atomic_fetch_sub(&left, 1) != 1) return 0;
  syscall(SYS_close, syscall(SYS_openat, AT_FDCWD, mark, O_CREAT | O_WRONLY, 0600));
  errno = error;
  return 1;
}

// Whether `path` is of a /proc that is not there; errno is set then.
static int Unmounted(const char* path) {
  if (strncmp(path, "/proc/", 6) != 0 || !getenv("MJPOLICY_NO_PROC")) return 0;
  errno = ENOENT;
  return 1;
}

#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

static int (*program_main)(int, char**, char**);

static int Main(int argc, char** argv, char** environment) {
  const char* wish = getenv("MJPOLICY_FAULT");
  char name[16] = "";
  long n = 0;
  mark = getenv("MJPOLICY_FAULT_MARK");
  if (mark && wish && sscanf(wish, "%15s %ld", name, &n) == 2) {
    atomic_store(&left, n);
    for (int kind = kOpen; kind <= kAllocate; ++kind) {
      if (strcmp(name, kNames[kind]) == 0) armed = kind;
    }
  }
  const int code = program_main(argc, argv, environment);
  armed = -1;
  return code;
}

int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void* stack_end) {
  program_main = main;
  return REAL(__libc_start_main)(Main, argc, argv, init, fini, rtld_fini, stack_end);
}

static mode_t ModeOf(int flags, va_list* rest) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(*rest, mode_t) : 0;
}

#define OPEN(function)                                            \
  int function(const char* path, int flags, ...) {                \
    va_list rest;                                                 \
    va_start(rest, flags);                                        \
    const mode_t mode = ModeOf(flags, &rest);                     \
    va_end(rest);                                                 \
    if (Unmounted(path) || Fails(kOpen, EACCES)) return -1;       \
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); \
  }
OPEN(open)
OPEN(open64)

FILE* fopen(const char* path, const char* mode) {
  return Unmounted(path) || Fails(kOpen, EMFILE) ? NULL : REAL(fopen)(path, mode);
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }
ssize_t readlink(const char* path, char* target, size_t size) {
  return Unmounted(path) ? -1 : syscall(SYS_readlinkat, AT_FDCWD, path, target, size);
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return Fails(kWrite, ENOSPC) ? -1 : syscall(SYS_write, fd, bytes, size);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  return Fails(kWrite, ENOSPC) ? -1 : syscall(SYS_writev, fd, parts, count);
}
int fsync(int fd) { return Fails(kWrite, EIO) ? -1 : (int)syscall(SYS_fsync, fd); }
int rename(const char* from, const char* to) {
  return Fails(kWrite, EACCES) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int mkdir(const char* path, mode_t mode) {
  return Fails(kWrite, ENOSPC) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

// a mapping that fails: this project maps no files, the system maps the stacks of threads
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) {
  if (Fails(kThread, EAGAIN)) return EAGAIN;
  return REAL(pthread_create)(thread, attributes, start, argument);
}

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

// The engine does not survive a lack of memory, whoever uses it: its own allocations are left out.
static int Exhausted(const void* caller) {
  Dl_info library;
  if (armed != (int)kAllocate) return 0;
  if (dladdr(caller, &library) && strstr(library.dli_fname, "libmujoco")) return 0;
  return Fails(kAllocate, ENOMEM);
}
#define EXHAUSTED() Exhausted(__builtin_return_address(0))

void* malloc(size_t size) { return EXHAUSTED() ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return EXHAUSTED() ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return EXHAUSTED() ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return EXHAUSTED() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (EXHAUSTED()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
