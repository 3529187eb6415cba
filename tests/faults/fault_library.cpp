// Preloaded into the program under test (LD_PRELOAD): makes the N-th of chosen library calls fail, or ends the process
// there. What reaches libc through libstdc++ or torch counts too. By the environment:
//   LANCET_FAULTS_BELOW  calls that are about a path in this folder count, and allocations from the first of these on
//   LANCET_FAULTS_CALLS  names of the calls that count, comma separated; "malloc" is every allocation
//   LANCET_FAULTS_BYTES  the smallest allocation that counts
//   LANCET_FAULTS_LOG    a file that gets a line per counted call: "<number> <call> <path>"
//   LANCET_FAULTS_AT, LANCET_FAULTS_UNTIL  numbers (from 1) of the first and the last call that is changed
//   LANCET_FAULTS_DO     "kill": SIGKILL in place of the call; "tear": the same after half a write; "short": half of
//                        what was asked for; a number: the call fails with this errno
#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fault_settings.h"

extern "C" void* __libc_malloc(size_t size);
extern "C" void* __libc_calloc(size_t count, size_t size);
extern "C" void* __libc_realloc(void* old, size_t size);
extern "C" void* __libc_memalign(size_t alignment, size_t size);

namespace {

/// What a call does other than it would; a positive number is an errno.
enum Fault : int { kNone = 0, kShort = -1, kTear = -2 };

struct Settings {
  const char* below = nullptr;
  const char* calls = "";
  int log = -1;
  long first = 0, last = 0;
  bool kills = false;
  Fault fault = kNone;
  size_t smallest = 0;
};

Settings settings;
std::atomic<long> n_calls{0};
std::atomic<bool> is_armed{false};  // a path below the folder was seen

const char* variable(const char* name, const char* fallback) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

using Path = std::array<char, PATH_MAX + 32>;

/// What the descriptor is open on; "" when that cannot be told.
void path_of(int descriptor, Path& path) {
  std::array<char, 32> link{};
  if (descriptor == AT_FDCWD)
    std::snprintf(link.data(), link.size(), "/proc/self/cwd");
  else
    std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", descriptor);
  const long length = ::syscall(SYS_readlinkat, AT_FDCWD, link.data(), path.data(), path.size() - 1);
  path[length > 0 ? static_cast<size_t>(length) : 0] = '\0';
}

void path_of(int folder, const char* name, Path& path) {
  path[0] = '\0';
  if (name[0] != '/') path_of(folder, path);
  const size_t length = std::strlen(path.data());
  if (name[0] != '\0') std::snprintf(path.data() + length, path.size() - length, name[0] == '/' ? "%s" : "/%s", name);
}

bool is_below(const Path& path) {
  const size_t length = std::strlen(settings.below);
  return std::strncmp(path.data(), settings.below, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

bool is_chosen(const char* call) {
  const size_t length = std::strlen(call);
  for (const char* at = std::strstr(settings.calls, call); at != nullptr; at = std::strstr(at + 1, call))
    if ((at == settings.calls || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) return true;
  return false;
}

void end_process() {
  ::syscall(SYS_kill, ::syscall(SYS_getpid), SIGKILL);
  for (;;) ::pause();
}

/// Counts the call. Allocates nothing.
Fault count(const char* call, const Path& path) {
  if (!is_chosen(call)) return kNone;
  const long number = ++n_calls;
  if (settings.log >= 0) {
    std::array<char, PATH_MAX + 96> line{};
    const int length = std::snprintf(line.data(), line.size(), "%ld %s %s\n", number, call, path.data());
    static_cast<void>(::syscall(SYS_write, settings.log, line.data(), static_cast<size_t>(length)));
  }
  if (number < settings.first || number > settings.last) return kNone;
  if (settings.kills) end_process();
  return settings.fault;
}

/// Fault of a call about `name` in `folder`, about the open `descriptor`, or of an allocation. errno stays as it is.
Fault of_path(const char* call, int folder, const char* name) {
  if (settings.below == nullptr || name == nullptr) return kNone;
  const int before = errno;
  Path path;
  path_of(folder, name, path);
  const bool counts = is_below(path);
  if (counts) is_armed = true;
  errno = before;
  return counts ? count(call, path) : kNone;
}

Fault of_descriptor(const char* call, int descriptor) {
  if (settings.below == nullptr || descriptor < 0) return kNone;
  const int before = errno;
  Path path;
  path_of(descriptor, path);
  errno = before;
  return is_below(path) ? count(call, path) : kNone;
}

Fault of_allocation(size_t size) {
  if (settings.below == nullptr || !is_armed || size < settings.smallest) return kNone;
  Path text;
  std::snprintf(text.data(), text.size(), "%zu", size);
  return count("malloc", text);
}

/// Half of what was asked for, at least a byte; after a torn write the process ends.
template <typename Transfer>
auto partly(Fault fault, size_t length, Transfer transfer) {
  if (fault > 0) {
    errno = fault;
    return decltype(transfer(length)){-1};
  }
  const auto done = transfer(fault == kNone || length < 2 ? length : length / 2);
  if (fault == kTear) end_process();
  return done;
}

/// The call's failure, or the call itself: a fault that says nothing of it (half of what was asked for) passes.
template <typename Result, typename Call>
Result unless(Fault fault, Result failure, Call call) {
  if (fault == kTear) end_process();
  if (fault <= 0) return call();
  errno = fault;
  return failure;
}

bool may_change(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0; }

int open_in(int folder, const char* name, int flags, mode_t mode) {
  return unless(of_path(may_change(flags) ? "create" : "open", folder, name), -1,
                [&] { return static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode)); });
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

FILE* open_stream(const char* name, const char* mode, const char* symbol) {
  static const auto plain = next(&::fopen, "fopen");
  static const auto large = next(&::fopen64, "fopen64");
  return unless<FILE*>(of_path(mode[0] == 'r' && std::strchr(mode, '+') == nullptr ? "open" : "create", AT_FDCWD, name),
                       nullptr, [&] { return (std::strcmp(symbol, "fopen") == 0 ? plain : large)(name, mode); });
}

int status_of(int folder, const char* name, struct stat* status, int flags) {
  static const auto real = next(&::fstatat, "fstatat");
  return unless(of_path("stat", folder, name), -1, [&] { return real(folder, name, status, flags); });
}

}  // namespace

__attribute__((constructor)) void read_fault_settings() {
  settings = {};
  n_calls = 0;
  settings.calls = variable("LANCET_FAULTS_CALLS", "");
  settings.first = std::atol(variable("LANCET_FAULTS_AT", "0"));
  settings.last = std::atol(variable("LANCET_FAULTS_UNTIL", variable("LANCET_FAULTS_AT", "0")));
  settings.smallest = static_cast<size_t>(std::atol(variable("LANCET_FAULTS_BYTES", "0")));
  const char* const action = variable("LANCET_FAULTS_DO", "0");
  settings.kills = std::strcmp(action, "kill") == 0;
  settings.fault = std::strcmp(action, "short") == 0  ? kShort
                   : std::strcmp(action, "tear") == 0 ? kTear
                                                      : static_cast<Fault>(std::atoi(action));
  if (const char* const log = std::getenv("LANCET_FAULTS_LOG"))
    settings.log =
        static_cast<int>(::syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  settings.below = std::getenv("LANCET_FAULTS_BELOW");  // last: from now on calls count
}

extern "C" {

// ---- Files ----------------------------------------------------------------------------------------------------------

int open(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_in(AT_FDCWD, name, flags, mode);
}

int open64(const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_in(AT_FDCWD, name, flags, mode);
}

int openat(int folder, const char* name, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_in(folder, name, flags, mode);
}

FILE* fopen(const char* name, const char* mode) { return open_stream(name, mode, "fopen"); }
FILE* fopen64(const char* name, const char* mode) { return open_stream(name, mode, "fopen64"); }

ssize_t write(int to, const void* bytes, size_t size) {
  return partly(of_descriptor("write", to), size,
                [&](size_t length) { return ::syscall(SYS_write, to, bytes, length); });
}

ssize_t pwrite(int to, const void* bytes, size_t size, off_t offset) {
  return partly(of_descriptor("write", to), size,
                [&](size_t length) { return ::syscall(SYS_pwrite64, to, bytes, length, offset); });
}

ssize_t pwrite64(int to, const void* bytes, size_t size, off64_t offset) { return ::pwrite(to, bytes, size, offset); }

ssize_t writev(int to, const iovec* parts, int n_parts) {
  return unless<ssize_t>(of_descriptor("write", to), -1, [&] { return ::syscall(SYS_writev, to, parts, n_parts); });
}

ssize_t read(int from, void* bytes, size_t size) {
  return partly(of_descriptor("read", from), size,
                [&](size_t length) { return ::syscall(SYS_read, from, bytes, length); });
}

ssize_t pread(int from, void* bytes, size_t size, off_t offset) {
  return partly(of_descriptor("read", from), size,
                [&](size_t length) { return ::syscall(SYS_pread64, from, bytes, length, offset); });
}

ssize_t pread64(int from, void* bytes, size_t size, off64_t offset) { return ::pread(from, bytes, size, offset); }

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t size, unsigned flags) {
  return partly(of_descriptor("copy_file_range", to), size, [&](size_t length) {
    return ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, length, flags);
  });
}

int fsync(int file) {
  return unless(of_descriptor("fsync", file), -1, [&] { return static_cast<int>(::syscall(SYS_fsync, file)); });
}

int fdatasync(int file) {
  return unless(of_descriptor("fsync", file), -1, [&] { return static_cast<int>(::syscall(SYS_fdatasync, file)); });
}

int sync_file_range(int file, off64_t offset, off64_t size, unsigned flags) {
  return unless(of_descriptor("sync_file_range", file), -1,
                [&] { return static_cast<int>(::syscall(SYS_sync_file_range, file, offset, size, flags)); });
}

int ftruncate(int file, off_t size) noexcept {
  return unless(of_descriptor("ftruncate", file), -1,
                [&] { return static_cast<int>(::syscall(SYS_ftruncate, file, size)); });
}

int ftruncate64(int file, off64_t size) noexcept { return ::ftruncate(file, size); }

int ioctl(int file, unsigned long request, ...) noexcept {
  va_list arguments;
  va_start(arguments, request);
  const auto argument = va_arg(arguments, unsigned long);
  va_end(arguments);
  return unless(of_descriptor("ioctl", file), -1,
                [&] { return static_cast<int>(::syscall(SYS_ioctl, file, request, argument)); });
}

int flock(int file, int operation) noexcept {
  return unless(of_descriptor("flock", file), -1,
                [&] { return static_cast<int>(::syscall(SYS_flock, file, operation)); });
}

void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  return unless(of_descriptor("mmap", file), MAP_FAILED, [&] {
    return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, offset));
  });
}

void* mmap64(void* at, size_t size, int protection, int flags, int file, off64_t offset) noexcept {
  return ::mmap(at, size, protection, flags, file, offset);
}

// ---- Names ----------------------------------------------------------------------------------------------------------

int renameat2(int from_folder, const char* from, int to_folder, const char* to, unsigned flags) noexcept {
  return unless(of_path("rename", to_folder, to), -1,
                [&] { return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags)); });
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return ::renameat2(from_folder, from, to_folder, to, 0);
}

int rename(const char* from, const char* to) noexcept { return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }

int unlinkat(int folder, const char* name, int flags) noexcept {
  return unless(of_path((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", folder, name), -1,
                [&] { return static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags)); });
}

int unlink(const char* name) noexcept { return ::unlinkat(AT_FDCWD, name, 0); }
int rmdir(const char* name) noexcept { return ::unlinkat(AT_FDCWD, name, AT_REMOVEDIR); }

int remove(const char* name) noexcept {
  const int result = ::unlinkat(AT_FDCWD, name, 0);
  return result != 0 && errno == EISDIR ? ::unlinkat(AT_FDCWD, name, AT_REMOVEDIR) : result;
}

int mkdirat(int folder, const char* name, mode_t mode) noexcept {
  return unless(of_path("mkdir", folder, name), -1,
                [&] { return static_cast<int>(::syscall(SYS_mkdirat, folder, name, mode)); });
}

int mkdir(const char* name, mode_t mode) noexcept { return ::mkdirat(AT_FDCWD, name, mode); }

int fstatat(int folder, const char* name, struct stat* status, int flags) noexcept {
  return status_of(folder, name, status, flags);
}

int stat(const char* name, struct stat* status) noexcept { return status_of(AT_FDCWD, name, status, 0); }
int lstat(const char* name, struct stat* status) noexcept {
  return status_of(AT_FDCWD, name, status, AT_SYMLINK_NOFOLLOW);
}

int faccessat(int folder, const char* name, int mode, int flags) noexcept {
  static const auto real = next(&::faccessat, "faccessat");
  return unless(of_path("stat", folder, name), -1, [&] { return real(folder, name, mode, flags); });
}

DIR* fdopendir(int folder) {
  static const auto real = next(&::fdopendir, "fdopendir");
  return unless<DIR*>(of_descriptor("opendir", folder), nullptr, [&] { return real(folder); });
}

struct dirent* readdir(DIR* folder) {
  static const auto real = next(&::readdir, "readdir");
  return unless<struct dirent*>(of_descriptor("readdir", ::dirfd(folder)), nullptr, [&] { return real(folder); });
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

void* malloc(size_t size) {
  return unless<void*>(of_allocation(size), nullptr, [&] { return __libc_malloc(size); });
}

void* calloc(size_t count, size_t size) {
  return unless<void*>(of_allocation(count * size), nullptr, [&] { return __libc_calloc(count, size); });
}

void* realloc(void* old, size_t size) {
  return unless<void*>(of_allocation(size), nullptr, [&] { return __libc_realloc(old, size); });
}

void* aligned_alloc(size_t alignment, size_t size) {
  return unless<void*>(of_allocation(size), nullptr, [&] { return __libc_memalign(alignment, size); });
}

void* memalign(size_t alignment, size_t size) {
  return unless<void*>(of_allocation(size), nullptr, [&] { return __libc_memalign(alignment, size); });
}

int posix_memalign(void** to, size_t alignment, size_t size) {
  if (const Fault fault = of_allocation(size); fault > 0) return fault;
  *to = __libc_memalign(alignment, size);
  return *to != nullptr ? 0 : ENOMEM;
}

}  // extern "C"
