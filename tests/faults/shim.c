/* Fails, tears or kills at the n-th system call that changes a file below a folder. Loaded with LD_PRELOAD.
 *
 * fault_arm(folder, n, action): counts calls on files below the folder from now on; at the n-th
 *   action > 0: the call fails with that errno; action 0: none, only counts; action -1: SIGKILL before the call;
 *   action -2: a write writes half of its bytes, then fails with ENOSPC; other calls fail with EIO.
 * fault_count(): calls so far. fault_names(): those among them that change a name.
 * fault_kinds(): a letter for each call, w where it writes and can be torn, o where not. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static atomic_long count, names, target;
static int action;
static char kinds[100000];

void fault_arm(const char *path, long n, int what) {
    strncpy(folder, path, sizeof folder - 1);
    action = what;
    target = n;
    count = names = 0;
    memset(kinds, 0, sizeof kinds);
}
long fault_count(void) { return count; }
long fault_names(void) { return names; }
const char *fault_kinds(void) { return kinds; }

static int below(const char *path) {
    char whole[PATH_MAX * 2];
    if (!folder[0] || !path) return 0;
    if (path[0] != '/') {
        char here[PATH_MAX];
        if (!getcwd(here, sizeof here)) return 0;
        snprintf(whole, sizeof whole, "%s/%s", here, path);
        path = whole;
    }
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}
static int below_fd(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}
/* 0: go on; 1: fail with errno set; 2: tear */
static int due_kind(char kind) {
    long n = ++count;
    if (n < (long)sizeof kinds) kinds[n - 1] = kind;
    if (n != target || action == 0) return 0;
    if (action == -1) { kill(getpid(), SIGKILL); pause(); }
    if (action == -2) { errno = EIO; return 2; }
    errno = action;
    return 1;
}
static int due(void) { return due_kind('o'); }
static int due_name(void) { ++names; return due(); }
#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)

#define WRITER(name, extra_types, extra_args) \
ssize_t name(int fd, const void *data, size_t size extra_types) { \
    REAL(ssize_t, #name, int, const void *, size_t extra_types); \
    if (size && below_fd(fd)) { int what = due_kind('w'); if (what == 1) return -1; \
        if (what == 2) { if (size > 1) real(fd, data, size / 2 extra_args); errno = ENOSPC; return -1; } } \
    return real(fd, data, size extra_args); }
#define COMMA_OFF , off_t where
#define COMMA_WHERE , where
WRITER(write, , )
WRITER(pwrite, COMMA_OFF, COMMA_WHERE)
WRITER(pwrite64, COMMA_OFF, COMMA_WHERE)
ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (below_fd(fd) && due()) { errno = ENOSPC; return -1; }
    return real(fd, parts, n);
}
ssize_t sendfile(int to, int from, off_t *where, size_t size) {
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    if (below_fd(to) && due()) return -1;
    return real(to, from, where, size);
}
ssize_t copy_file_range(int from, off64_t *a, int to, off64_t *b, size_t size, unsigned flags) {
    REAL(ssize_t, "copy_file_range", int, off64_t *, int, off64_t *, size_t, unsigned);
    if (below_fd(to) && due()) return -1;
    return real(from, a, to, b, size, flags);
}
int fsync(int fd) { REAL(int, "fsync", int); if (below_fd(fd) && due()) return -1; return real(fd); }
int fdatasync(int fd) { REAL(int, "fdatasync", int); if (below_fd(fd) && due()) return -1; return real(fd); }
int ftruncate64(int fd, off64_t size) { REAL(int, "ftruncate64", int, off64_t); if (below_fd(fd) && due()) return -1; return real(fd, size); }
int symlink(const char *a, const char *b) { REAL(int, "symlink", const char *, const char *); if (below(b) && due_name()) return -1; return real(a, b); }
int rmdir(const char *a) { REAL(int, "rmdir", const char *); if (below(a) && due_name()) return -1; return real(a); }
int ftruncate(int fd, off_t size) { REAL(int, "ftruncate", int, off_t); if (below_fd(fd) && due()) return -1; return real(fd, size); }
int rename(const char *a, const char *b) { REAL(int, "rename", const char *, const char *); if (below(b) && due_name()) return -1; return real(a, b); }
int renameat(int d, const char *a, int e, const char *b) { REAL(int, "renameat", int, const char *, int, const char *); if (below(b) && due_name()) return -1; return real(d, a, e, b); }
int renameat2(int d, const char *a, int e, const char *b, unsigned f) { REAL(int, "renameat2", int, const char *, int, const char *, unsigned); if (below(b) && due_name()) return -1; return real(d, a, e, b, f); }
int link(const char *a, const char *b) { REAL(int, "link", const char *, const char *); if (below(b) && due_name()) return -1; return real(a, b); }
int unlink(const char *a) { REAL(int, "unlink", const char *); if (below(a) && due_name()) return -1; return real(a); }
int unlinkat(int d, const char *a, int f) { REAL(int, "unlinkat", int, const char *, int); if (below(a) && due_name()) return -1; return real(d, a, f); }
int mkdir(const char *a, mode_t m) { REAL(int, "mkdir", const char *, mode_t); if (below(a) && due_name()) return -1; return real(a, m); }
int chmod(const char *a, mode_t m) { REAL(int, "chmod", const char *, mode_t); if (below(a) && due()) return -1; return real(a, m); }
#define OPENER(name) \
int name(const char *path, int flags, ...) { \
    REAL(int, #name, const char *, int, ...); mode_t mode = 0; \
    if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); \
        if (below(path) && due_name()) return -1; } \
    return real(path, flags, mode); }
OPENER(open)
OPENER(open64)
#define OPENER_AT(name) \
int name(int d, const char *path, int flags, ...) { \
    REAL(int, #name, int, const char *, int, ...); mode_t mode = 0; \
    if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); \
        if (below(path) && due_name()) return -1; } \
    return real(d, path, flags, mode); }
OPENER_AT(openat)
OPENER_AT(openat64)
