// SPDX-License-Identifier: Apache-2.0
//
// replay — the main() of a fuzz target that is built without libFuzzer: a test.
//
//   folders and files ─▶ every file once ─▶ N mutations of them, drawn from a seed
//
// Usage: TARGET [--mutations N] [--seed S] FILE|FOLDER...
//
// Budgets, so that the corpus also catches the costs that `./run fuzz` once found:
//
//   memory   the growth of the peak resident memory: by one input, and by all inputs
//   time     an input's CPU time, which does not depend on the load of the machine
//
// Mutations come from the target's own mutator, if there is one, and ignore coverage. They catch
// regressions and keep the targets working; `./run fuzz` searches for new failures. An input that
// ends the process by a signal of kSignals, such as SIGABRT, is written to the file `crash-TARGET`
// in the working directory.

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/fuzz/chance.hpp"
#include "tests/fuzz/fuzz_target.hpp"

extern "C" __attribute__((weak)) std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data,
                                                                     std::size_t size,
                                                                     std::size_t max_size,
                                                                     unsigned int seed);

namespace {

using signalbox::fuzz::Chance;
using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kMaxLength = 4096;
constexpr std::size_t kMaxPool = 4096;
constexpr int kSignals[] = {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGPROF};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long kSanitizerFactor = 8;  // Sanitizers add shadow memory, and keep freed memory.
#else
constexpr long kSanitizerFactor = 1;
#endif
// Without the factor, fuzz.py has the same numbers: 64 MB for one allocation, 512 MB for the
// process.
constexpr long kMostGrowthKiB = kSanitizerFactor * 64 * 1024;
constexpr long kMostResidentKiB = kSanitizerFactor * 512 * 1024;
// fuzz.py allows 1 s of wall-clock time. Slow builds need more.
constexpr int kMostSeconds = 20;

Chance byte_chance{0};
const Bytes* running = nullptr;
std::string crash_file;
long resident_at_start_kib = 0;

// Writes the running input to the crash file, with functions that a signal handler may call.
void keep_input(int signal) {
  const int file = ::open(crash_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file >= 0 && running != nullptr) {
    [[maybe_unused]] const auto kept = ::write(file, running->data(), running->size());
    ::close(file);
  }
  constexpr char kSlow[] = "replay: the time's budget is used up\n";
  constexpr char kSaid[] = "replay: the input is kept in ";
  [[maybe_unused]] ssize_t said = 0;
  if (signal == SIGPROF) said = ::write(STDERR_FILENO, kSlow, sizeof kSlow - 1);
  said = ::write(STDERR_FILENO, kSaid, sizeof kSaid - 1);
  said = ::write(STDERR_FILENO, crash_file.c_str(), crash_file.size());
  said = ::write(STDERR_FILENO, "\n", 1);
  std::signal(signal, SIG_DFL);
  ::raise(signal);
}

// The peak resident memory of this process, which never falls. It includes the peak of the program
// that ran in the process before exec.
long most_resident_kib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

// The kernel sends SIGPROF once this process has used `seconds` of CPU time; 0: never.
void limit_time(int seconds) {
  const itimerval most{{}, {seconds, 0}};
  ::setitimer(ITIMER_PROF, &most, nullptr);
}

void run(const Bytes& input) {
  const long before = most_resident_kib();
  running = &input;
  limit_time(kMostSeconds);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  limit_time(0);
  const long after = most_resident_kib();
  SIGNALBOX_FUZZ_EXPECT(
      after - before <= kMostGrowthKiB && after - resident_at_start_kib <= kMostResidentKiB,
      "the memory's budget",
      absl::StrCat(after - before,
                   " KiB by this input, ",
                   after - resident_at_start_kib,
                   " KiB by all so far"));
  running = nullptr;
}

std::vector<std::string> files_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

Bytes read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "replay: %s: %s\n", path.c_str(), std::strerror(errno));
    std::exit(2);
  }
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

Bytes mutated(Bytes input, Chance& chance) {
  const std::size_t size = std::min(input.size(), kMaxLength);
  input.resize(kMaxLength);
  const auto seed = static_cast<unsigned int>(chance.next());
  byte_chance = Chance(seed);
  input.resize(LLVMFuzzerCustomMutator != nullptr
                   ? LLVMFuzzerCustomMutator(input.data(), size, kMaxLength, seed)
                   : LLVMFuzzerMutate(input.data(), size, kMaxLength));
  return input;
}

// Mutated inputs are mutated again, so that inputs grow.
void run_mutations(std::vector<Bytes> pool, std::size_t count, std::uint64_t seed) {
  Chance chance(seed);
  pool.emplace_back();
  for (std::size_t i = 0; i < count; ++i) {
    Bytes input = mutated(chance.pick(pool), chance);
    run(input);
    if (pool.size() < kMaxPool)
      pool.push_back(std::move(input));
    else
      chance.pick(pool) = std::move(input);
  }
}

std::uint64_t number(const char* text) {
  char* end = nullptr;
  const std::uint64_t value = std::strtoull(text, &end, 10);
  if (*text == '\0' || *end != '\0') {
    std::fprintf(stderr, "replay: expected a number, found '%s'\n", text);
    std::exit(2);
  }
  return value;
}

}  // namespace

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size) {
  Chance& chance = byte_chance;
  const std::size_t place = chance.below(size + 1);
  const auto byte = static_cast<std::uint8_t>(chance.next());
  switch (chance.below(5)) {
    case 0:  // Insert a byte.
      if (size == max_size) return size;
      std::memmove(data + place + 1, data + place, size - place);
      data[place] = byte;
      return size + 1;
    case 1:  // Erase a byte.
      if (size < 2 || place == size) return size;
      std::memmove(data + place, data + place + 1, size - place - 1);
      return size - 1;
    case 2:  // Append a copy of a part.
      if (size == 0) return size;
      {
        const std::size_t length = std::min({size - std::min(place, size), max_size - size});
        std::memmove(data + size, data + place, length);
        return size + length;
      }
    case 3:  // Flip a bit.
      if (place < size) data[place] ^= static_cast<std::uint8_t>(1U << (byte % 8U));
      return size;
    default:  // Another byte.
      if (place < size) data[place] = byte;
      return size;
  }
}

int main(int argc, char** argv) {
  std::size_t mutations = 0;
  std::uint64_t seed = 1;
  std::vector<Bytes> inputs;
  const std::string name = std::filesystem::path(argv[0]).filename().string();
  crash_file = "crash-" + name;
  resident_at_start_kib = most_resident_kib();
  for (const int signal : kSignals)
    std::signal(signal, keep_input);

  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    const char* next = i + 1 < argc ? argv[i + 1] : "";
    if (argument == "--mutations") {
      mutations = number(next);
      ++i;
    } else if (argument == "--seed") {
      seed = number(next);
      ++i;
    } else {
      for (const std::string& file : files_of(argv[i])) {
        inputs.push_back(read(file));
        run(inputs.back());
      }
    }
  }
  const std::size_t files = inputs.size();
  run_mutations(std::move(inputs), mutations, seed);
  std::printf("%s: %zu files and %zu mutations of seed %llu\n",
              name.c_str(),
              files,
              mutations,
              static_cast<unsigned long long>(seed));
  return 0;
}
