// SPDX-License-Identifier: Apache-2.0
//
// signalbox_nightly_shim: the faults of S18 that have no other switch. A library for LD_PRELOAD.
//
//   driver ─▶ the file of SIGNALBOX_NIGHTLY_FAULTS, mapped ─▶ [shim] ─┬▶ the wall clock
//                                                                     ├▶ malloc
//                                                                     └▶ getaddrinfo
//
// The driver changes the file while the process runs (world.py has the same fields). Without the
// variable the shim changes nothing.
//
// - Clock: a number of nanoseconds is added to CLOCK_REALTIME. Waits until a moment of that clock
//   are moved back, so that they last as long as on a machine with a stepped clock. A wait that has
//   begun before a step does not notice the step.
// - malloc: fails while the process would have more bytes than the limit. Bytes of mmap and of
//   stacks do not count.
// - getaddrinfo: names that end in ".test" have the address of the file, or none (EAI_AGAIN).
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT: glibc's name.
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT: glibc's name.
void* __libc_realloc(void* old, std::size_t size);               // NOLINT: glibc's name.
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT: glibc's name.
void __libc_free(void* old);                                     // NOLINT: glibc's name.
}

namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// A time in seconds below this is of the monotonic clock: pthread_cond_timedwait does not tell.
constexpr time_t kLeastWallSeconds = 1'000'000'000;

struct Faults {
  std::atomic<std::int64_t> clock_offset_ns;
  std::atomic<std::int64_t> most_bytes;  // 0: no limit.
  std::atomic<std::int64_t> live_bytes;
  std::atomic<std::int64_t> refused;  // Allocations that failed.
  std::atomic<std::int64_t> lookups;  // Look-ups of names that end in ".test".
  char address[64];                   // Their address; empty: they fail.
};

static_assert(sizeof(Faults) == 5 * 8 + 64, "world.py maps the same fields");

Faults unchanged{};
std::atomic<Faults*> faults{&unchanged};

[[gnu::constructor]] void map_faults() {
  const char* const path = std::getenv("SIGNALBOX_NIGHTLY_FAULTS");
  if (path == nullptr) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) std::abort();
  void* const mapped = ::mmap(nullptr, sizeof(Faults), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) std::abort();
  ::close(file);
  static_cast<Faults*>(mapped)->live_bytes += unchanged.live_bytes;
  faults = static_cast<Faults*>(mapped);
}

// The function that the shim replaces. There is no static local variable, because its guard could
// call a function of the shim.
template <typename Function>
class Original {
 public:
  explicit constexpr Original(const char* name) : name_(name) {}

  Function get() {
    Function found = found_;
    if (found == nullptr) found_ = found = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name_));
    return found;
  }

 private:
  const char* name_;
  std::atomic<Function> found_{nullptr};
};

Original<long (*)(long, ...)> original_syscall("syscall");
Original<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)> original_wait(
    "pthread_cond_timedwait");
Original<int (*)(const char*, const char*, const addrinfo*, addrinfo**)> original_lookup(
    "getaddrinfo");

timespec moved(const timespec& time, std::int64_t by_ns) {
  std::int64_t ns = time.tv_sec * kNsPerSecond + time.tv_nsec + by_ns;
  if (ns < 0) ns = 0;
  return {.tv_sec = ns / kNsPerSecond, .tv_nsec = ns % kNsPerSecond};
}

// The moment of the real clock at which the stepped clock shows `until`.
timespec real(const timespec& until) {
  return moved(until, -faults.load()->clock_offset_ns);
}

timespec wall_clock(clockid_t clock) {
  timespec now{};
  ::syscall(SYS_clock_gettime, clock, &now);
  return moved(now, faults.load()->clock_offset_ns);
}

std::int64_t usable(void* memory) {
  return static_cast<std::int64_t>(::malloc_usable_size(memory));
}

// Whether `size` more bytes are below the limit. Counts an allocation that is not.
bool has_room(std::size_t size) {
  Faults& now = *faults;
  const std::int64_t most = now.most_bytes;
  if (most == 0 || now.live_bytes + static_cast<std::int64_t>(size) <= most) return true;
  ++now.refused;
  errno = ENOMEM;
  return false;
}

void* counted(void* memory) {
  if (memory != nullptr) faults.load()->live_bytes += usable(memory);
  return memory;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) {
  if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
  *now = wall_clock(clock);
  return 0;
}

int gettimeofday(timeval* now, void* /*zone*/) {
  const timespec wall = wall_clock(CLOCK_REALTIME);
  *now = {.tv_sec = wall.tv_sec, .tv_usec = wall.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* now) {
  const time_t seconds = wall_clock(CLOCK_REALTIME_COARSE).tv_sec;
  if (now != nullptr) *now = seconds;
  return seconds;
}

// Abseil waits by this function.
long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long words[6];
  for (long& word : words)
    word = va_arg(list, long);
  va_end(list);
  timespec until{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface has the pointer as a number.
  const auto* const given = reinterpret_cast<const timespec*>(words[3]);
  if (number == SYS_futex && (words[1] & FUTEX_CLOCK_REALTIME) != 0 && given != nullptr) {
    until = real(*given);
    words[3] = reinterpret_cast<long>(&until);
  }
  return original_syscall.get()(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

int pthread_cond_timedwait(pthread_cond_t* condition,
                           pthread_mutex_t* mutex,
                           const timespec* until) {
  if (until->tv_sec < kLeastWallSeconds) return original_wait.get()(condition, mutex, until);
  const timespec moment = real(*until);
  return original_wait.get()(condition, mutex, &moment);
}

void* malloc(std::size_t size) {
  return has_room(size) ? counted(__libc_malloc(size)) : nullptr;
}

void* calloc(std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || !has_room(bytes)) return nullptr;
  return counted(__libc_calloc(count, size));
}

void* realloc(void* old, std::size_t size) {
  const std::int64_t before = old == nullptr ? 0 : usable(old);
  if (static_cast<std::int64_t>(size) > before &&
      !has_room(size - static_cast<std::size_t>(before)))
    return nullptr;
  void* const memory = __libc_realloc(old, size);
  if (memory != nullptr || size == 0) faults.load()->live_bytes -= before;
  return counted(memory);
}

void* memalign(std::size_t alignment, std::size_t size) {
  return has_room(size) ? counted(__libc_memalign(alignment, size)) : nullptr;
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  return memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}

void free(void* old) {
  if (old == nullptr) return;
  faults.load()->live_bytes -= usable(old);
  __libc_free(old);
}

int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** found) {
  constexpr char kEnding[] = ".test";
  const std::size_t length = host == nullptr ? 0 : std::strlen(host);
  if (length < sizeof kEnding || std::strcmp(host + length - (sizeof kEnding - 1), kEnding) != 0)
    return original_lookup.get()(host, service, hints, found);
  Faults& now = *faults;
  ++now.lookups;
  if (now.address[0] == '\0') return EAI_AGAIN;
  return original_lookup.get()(now.address, service, hints, found);
}

}  // extern "C"
