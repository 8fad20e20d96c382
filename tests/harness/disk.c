/* Operations on files below one folder: counted, failed on request, and recorded. Preloaded by disk.py.
 *
 * One lock for all processes that were forked from the first lets a record stand where its operation did.
 * A record is `KIND OFFSET SIZE PATH\0OTHER\0` and SIZE bytes, with both paths below the folder. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#undef open64 /* one body for each pair of names */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
enum { OPEN, READ, WRITE, SYNC, RENAME, KINDS };

static char below[PATH_MAX];
static int record = -1, fails = -1, error;
static long at, until;
static struct { /* of all processes: counts by kind, how many have failed, and the lock */
  long seen[KINDS], failed;
  pthread_mutex_t gate;
} *all;

__attribute__((constructor)) static void begin(void) {
  pthread_mutexattr_t kind;
  all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST); /* a process may end while one of its threads holds it */
  pthread_mutex_init(&all->gate, &kind);
}

static void enter(void) {
  if (pthread_mutex_lock(&all->gate) == EOWNERDEAD) pthread_mutex_consistent(&all->gate);
}

static void leave(void) { pthread_mutex_unlock(&all->gate); }

/* Watch a folder, given by its real path, and record into a file where `log` names one; nothing where it is empty. */
void disk_watch(const char *folder, const char *log) {
  strcpy(below, folder);
  if (record >= 0) close(record);
  record = *log ? REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
  fails = -1;
  memset(all->seen, 0, sizeof all->seen);
  all->failed = 0;
}

/* Let the `first`-th operation of a kind fail, and the `times - 1` after it. */
void disk_fail(int kind, long first, long times, int number) {
  fails = kind, at = first, until = first + times, error = number;
}

long disk_seen(int kind) { return all->seen[kind]; }
long disk_failed(void) { return all->failed; }

/* Write the absolute path of a name to `full`; returns what follows the watched folder's, NULL outside of it. */
static const char *inside(int folder, const char *name, char *full) {
  size_t length = strlen(below), used = 0;
  if (!length) return NULL;
  if (*name != '/') {
    char link[64];
    snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, full, PATH_MAX - 1);
    if (size < 0) return NULL;
    used = size;
    if (*name) full[used++] = '/';
  }
  snprintf(full + used, PATH_MAX - used, "%s", name);
  if (strncmp(full, below, length) || (full[length] && full[length] != '/') || strstr(full, " (deleted)")) return NULL;
  return full + length + (full[length] == '/');
}

static const char *of(int handle, char *full) { return inside(handle, "", full); }

/* Count an operation; whether it is to fail, with errno set. */
static int struck(int kind) {
  long now = __atomic_add_fetch(&all->seen[kind], 1, __ATOMIC_SEQ_CST);
  if (kind != fails || now < at || now >= until) return 0;
  __atomic_add_fetch(&all->failed, 1, __ATOMIC_SEQ_CST);
  errno = error;
  return 1;
}

static void note(char kind, const char *path, const char *other, long offset, const void *data, size_t size) {
  char head[64];
  if (record < 0 || !path) return;
  int before = errno, length = snprintf(head, sizeof head, "%c %ld %zu ", kind, offset, size);
  struct iovec parts[] = {{head, length}, {(void *)path, strlen(path) + 1}, {(void *)other, strlen(other) + 1},
                          {(void *)data, size}};
  if (writev(record, parts, 4) < 0) perror("disk.c: cannot record");
  errno = before;
}

/* A word from the program, such as that a run is stored, in its place among the operations. */
void disk_mark(const char *text) {
  enter();
  note('!', text, "", 0, "", 0);
  leave();
}

/* Do a watched operation and note it where it succeeded, as one step; elsewhere do it alone. */
#define STEP(type, path, call, failed, noted)        \
  if (!(path)) return call;                          \
  enter();                                           \
  type result = call;                                \
  if (result != (type)(failed)) noted;               \
  leave();                                           \
  return result

static int opened(__typeof__(&openat) real, int folder, const char *name, int flags, mode_t mode) {
  char full[PATH_MAX];
  const char *path = inside(folder, name, full);
  if (path && struck(OPEN)) return -1;
  if (path && ((flags & O_TMPFILE) == O_TMPFILE || !(flags & (O_CREAT | O_TRUNC)))) path = NULL; /* changes no name */
  STEP(int, path, real(folder, name, flags, mode), -1, note(flags & O_TRUNC ? 'T' : 'C', path, "", 0, "", 0));
}

#define OPENING(name, before, folder)                                       \
  int name(before const char *path, int flags, ...) {                       \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                           \
    return opened(REAL(openat), folder, path, flags, mode);                 \
  }
#define WITH_FOLDER int folder,
OPENING(open, , AT_FDCWD)
OPENING(open64, , AT_FDCWD)
OPENING(openat, WITH_FOLDER, folder)
OPENING(openat64, WITH_FOLDER, folder)

DIR *opendir(const char *name) {
  char full[PATH_MAX];
  return inside(AT_FDCWD, name, full) && struck(OPEN) ? NULL : REAL(opendir)(name);
}

ssize_t read(int handle, void *data, size_t size) {
  char full[PATH_MAX];
  return of(handle, full) && struck(READ) ? -1 : REAL(read)(handle, data, size);
}

ssize_t write(int handle, const void *data, size_t size) {
  char full[PATH_MAX];
  const char *path = of(handle, full);
  if (path && struck(WRITE)) return -1;
  off_t place = path ? lseek(handle, 0, fcntl(handle, F_GETFL) & O_APPEND ? SEEK_END : SEEK_CUR) : 0;
  STEP(ssize_t, path, REAL(write)(handle, data, size), -1, note('W', path, "", place, data, result));
}

int ftruncate64(int handle, off64_t size) {
  char full[PATH_MAX];
  const char *path = of(handle, full);
  STEP(int, path, REAL(ftruncate64)(handle, size), -1, note('L', path, "", size, "", 0));
}

#define SYNCING(name, kind)                                         \
  int name(int handle) {                                            \
    char full[PATH_MAX];                                            \
    const char *path = of(handle, full);                            \
    if (path && struck(SYNC)) return -1;                            \
    STEP(int, path, REAL(name)(handle), -1, note(kind, path, "", 0, "", 0)); \
  }
SYNCING(fsync, 'S')
SYNCING(fdatasync, 'S')
SYNCING(syncfs, 'A')

static int renamed(int from, const char *origin, int to, const char *target) {
  char one[PATH_MAX], two[PATH_MAX];
  const char *path = inside(from, origin, one), *other = inside(to, target, two);
  if (path && other && struck(RENAME)) return -1;
  STEP(int, path && other, REAL(renameat)(from, origin, to, target), -1, note('R', path, other, 0, "", 0));
}
int rename(const char *origin, const char *target) { return renamed(AT_FDCWD, origin, AT_FDCWD, target); }
int renameat(int from, const char *origin, int to, const char *target) { return renamed(from, origin, to, target); }

int linkat(int from, const char *origin, int to, const char *target, int flags) {
  char one[PATH_MAX], two[PATH_MAX];
  const char *path = inside(from, origin, one), *other = inside(to, target, two);
  STEP(int, path && other, REAL(linkat)(from, origin, to, target, flags), -1, note('H', path, other, 0, "", 0));
}
int link(const char *origin, const char *target) { return linkat(AT_FDCWD, origin, AT_FDCWD, target, 0); }

int mkdirat(int folder, const char *name, mode_t mode) {
  char full[PATH_MAX];
  const char *path = inside(folder, name, full);
  STEP(int, path, REAL(mkdirat)(folder, name, mode), -1, note('D', path, "", 0, "", 0));
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }

int unlinkat(int folder, const char *name, int flags) {
  char full[PATH_MAX];
  const char *path = inside(folder, name, full);
  STEP(int, path, REAL(unlinkat)(folder, name, flags), -1, note('U', path, "", 0, "", 0));
}
int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char *name) { return unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }
