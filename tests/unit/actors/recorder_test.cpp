// SPDX-License-Identifier: Apache-2.0
//
// The file of a recording: its ring of two segments, its mode, and files that cannot be written.
#include "actors/record/recorder.hpp"

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "xds/record/codec.hpp"

namespace signalbox::actors {
namespace {

using Catch::Matchers::Contains;

constexpr std::size_t kMiB = std::size_t{1} << 20U;

/// What a recorder has told.
struct Watched {
  template <typename Change>
  void tell(Change change) {
    {
      const std::lock_guard lock(mutex);
      change();
    }
    changed.notify_all();
  }

  template <typename Condition>
  void await(Condition condition) {
    std::unique_lock lock(mutex);
    REQUIRE(changed.wait_for(lock, std::chrono::minutes(1), condition));
  }

  std::uint64_t dropped = 0;
  std::uint64_t late = 0;
  std::vector<std::string> complaints;
  std::mutex mutex;
  std::condition_variable changed;
};

RecorderOptions options_for(const std::string& path, Watched& watched) {
  RecorderOptions options;
  options.path = path;
  options.max_bytes = kMiB;
  options.header.run = 7;
  options.complain = [&watched](const std::string& why) {
    watched.tell([&] { watched.complaints.push_back(why); });
  };
  options.count_dropped = [&watched](std::uint64_t events) {
    watched.tell([&] { watched.dropped += events; });
  };
  options.count_late = [&watched] { watched.tell([&] { ++watched.late; }); };
  return options;
}

/// A recording in a folder of its own, and what its recorder has told.
struct Recorded {
  RecorderOptions options() { return options_for(path, watched); }

  std::shared_ptr<Recorder> start() { return start(options()); }

  static std::shared_ptr<Recorder> start(RecorderOptions options) {
    auto recorder = Recorder::start(std::move(options));
    REQUIRE(recorder.ok());
    return *std::move(recorder);
  }

  const test::TemporaryFolder folder;
  const std::string path = folder.path("orders.rec");
  Watched watched;
};

/// While it lives, the process has no more of a resource than `most`.
class Limited {
 public:
  Limited(int resource, rlim_t most) : resource_(resource) {
    REQUIRE(::getrlimit(resource_, &before_) == 0);
    const rlimit limit{most, before_.rlim_max};
    REQUIRE(::setrlimit(resource_, &limit) == 0);
  }

  ~Limited() { ::setrlimit(resource_, &before_); }

  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  const int resource_;
  rlimit before_{};
};

/// Half a segment.
OutsideEvent long_event() {
  return StreamReceived{0, 0, std::string(kMiB / 4, 'x')};
}

xds::ReadRecording read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  auto result = xds::read_recording(bytes, path);
  INFO(result.status().message());
  REQUIRE(result.ok());
  return *std::move(result);
}

Recording read(const std::string& path) {
  xds::ReadRecording result = read_all(path);
  CHECK_FALSE(result.cut_at);
  return std::move(result.recording);
}

}  // namespace

TEST_CASE("recorder: events are in the file, in their order, and others cannot read it",
          "[recording]") {
  Recorded recorded;
  {
    const auto recorder = recorded.start();
    recorder->note(TargetOpened{"xds:///orders"});
    recorder->note(ConnectBegan{0, "10.0.0.1:80"});
    recorder->note(ConnectMade{0});
  }
  const Recording recording = read(recorded.path);
  CHECK(recording.header.run == 7);
  REQUIRE(recording.events.size() == 3);
  CHECK(recording.events[0].what == OutsideEvent(TargetOpened{"xds:///orders"}));
  CHECK(recording.events[2].what == OutsideEvent(ConnectMade{0}));
  CHECK(recording.events[0].at <= recording.events[2].at);
  struct stat file{};
  REQUIRE(::stat(recorded.path.c_str(), &file) == 0);
  CHECK((file.st_mode & 0777U) == 0600U);
  CHECK(recorded.watched.dropped == 0);
}

TEST_CASE("recorder: the ring keeps its size, and a segment begins with the state before it",
          "[recording]") {
  Recorded recorded;
  {
    const auto recorder = recorded.start();
    recorder->note(TargetOpened{"xds:///orders"});
    for (std::uint64_t i = 0; i < 60; ++i)
      recorder->note(StreamReceived{0, 0, std::string(kMiB / 16, 'x')});
  }
  const Recording newer = read(recorded.path);
  const Recording older = read(recorded.path + ".old");
  CHECK(newer.header.segment == older.header.segment + 1);
  CHECK(newer.header.segment > 2);
  REQUIRE_FALSE(newer.events.empty());
  CHECK(newer.events.front().carried);
  CHECK(newer.events.front().what == OutsideEvent(TargetOpened{"xds:///orders"}));
  CHECK(older.events.back().at <= newer.events.front().at);
  CHECK(std::filesystem::file_size(recorded.path) <= kMiB / 2);
  CHECK(std::filesystem::file_size(recorded.path + ".old") <= kMiB / 2);
  CHECK(recorded.watched.dropped == 0);
}

TEST_CASE("recorder: a segment has as many bytes of events as of state, also of a long one",
          "[recording]") {
  Recorded recorded;
  {
    RecorderOptions options = recorded.options();
    options.header.bootstrap = std::string(7 * kMiB / 8, 'x');
    const auto recorder = Recorded::start(std::move(options));
    for (int i = 0; i < 5; ++i)
      recorder->note(long_event());
  }
  const Recording older = read(recorded.path + ".old");
  CHECK(older.header.segment == 0);
  CHECK(older.events.size() == 3);
  const Recording newer = read(recorded.path);
  CHECK(newer.header.segment == 1);
  CHECK(newer.events.size() == 2);
}

TEST_CASE(
    "recorder: without a descriptor for the next segment the file goes on, and later it begins",
    "[recording]") {
  Recorded recorded;
  {
    const auto recorder = recorded.start();
    recorder->note(TargetOpened{"xds:///orders"});
    {
      const Limited descriptors(RLIMIT_NOFILE, 0);
      for (int i = 0; i < 2; ++i)
        recorder->note(long_event());
      recorded.watched.await([&] { return !recorded.watched.complaints.empty(); });
    }
    recorder->note(TargetOpened{"xds:///carts"});
  }
  const Recording older = read(recorded.path + ".old");
  CHECK(older.header.segment == 0);
  CHECK(older.events.size() == 3);
  const Recording newer = read(recorded.path);
  CHECK(newer.header.segment == 1);
  REQUIRE_FALSE(newer.events.empty());
  CHECK(newer.events.front().carried);
  CHECK(newer.events.back().what == OutsideEvent(TargetOpened{"xds:///carts"}));
  CHECK(recorded.watched.dropped == 0);
  CHECK(recorded.watched.late >= 1);
  REQUIRE(recorded.watched.complaints.size() == 1);
  CHECK_THAT(recorded.watched.complaints[0],
             Contains("orders.rec: cannot open the file: Too many open files: the next segment of "
                      "the recording cannot begin; the file goes on, and signalbox tries again"));
  CHECK_FALSE(std::filesystem::exists(recorded.path + ".new"));
}

TEST_CASE("recorder: a file that cannot be followed by another is at most twice as long",
          "[recording]") {
  Recorded recorded;
  {
    RecorderOptions options = recorded.options();
    options.max_waiting_bytes = 2 * kMiB;
    const auto recorder = Recorded::start(std::move(options));
    {
      const Limited descriptors(RLIMIT_NOFILE, 0);
      for (int i = 0; i < 6; ++i)
        recorder->note(long_event());
      recorder->note(ConnectBegan{7, "10.0.0.1:80"});
      recorded.watched.await([&] { return recorded.watched.dropped == 4; });
      // The mark of an event that was dropped before is no event.
      recorder->note(StreamReceived{0, 0, std::string(2 * kMiB, 'x')});
      recorder->note(TargetWoken{"xds:///orders"});
      recorded.watched.await([&] { return recorded.watched.dropped == 6; });
    }
    recorder->note(TargetOpened{"xds:///orders"});
  }
  CHECK(std::filesystem::file_size(recorded.path + ".old") <= kMiB);
  CHECK(recorded.watched.dropped == 6);
  CHECK(recorded.watched.complaints.size() == 1);
  const Recording newer = read(recorded.path);
  // What was dropped is in the state, and a replay of both files is told that it is missing.
  REQUIRE(newer.events.size() == 3);
  CHECK(newer.events[0].carried);
  CHECK(newer.events[0].what == OutsideEvent(ConnectBegan{7, "10.0.0.1:80"}));
  CHECK(newer.events[1].what == OutsideEvent(EventsDropped{6}));
  CHECK(newer.events[2].what == OutsideEvent(TargetOpened{"xds:///orders"}));
}

TEST_CASE("recorder: a write that fails ends the recording, and what is not in the file is counted",
          "[recording]") {
  constexpr std::size_t kRoom = kMiB / 8;
  Recorded recorded;
  {
    std::shared_ptr<Recorder> recorder;
    RecorderOptions options = recorded.options();
    options.max_waiting_bytes = 2 * kRoom + 1000;  // The third long event finds no room.
    options.complain = [&recorder, told = std::move(options.complain)](const std::string& why) {
      recorder->note(TargetOpened{"xds:///during the write"});
      told(why);
    };
    recorder = Recorded::start(std::move(options));
    recorder->note(TargetOpened{"xds:///orders"});
    REQUIRE(test::eventually([&] { return !read_all(recorded.path).recording.events.empty(); }));
    {
      const Limited limit(RLIMIT_FSIZE, kRoom);
      for (int i = 0; i < 3; ++i)
        recorder->note(StreamReceived{0, 0, std::string(kRoom, 'x')});
      recorder->note(TargetOpened{"xds:///after a mark"});
      recorded.watched.await([&] { return !recorded.watched.complaints.empty(); });
    }
    recorder->note(TargetOpened{"xds:///carts"});
  }
  CHECK(std::filesystem::file_size(recorded.path) == kRoom);
  const xds::ReadRecording file = read_all(recorded.path);
  CHECK(file.cut_at);
  REQUIRE(file.recording.events.size() == 1);
  CHECK(file.recording.events[0].what == OutsideEvent(TargetOpened{"xds:///orders"}));
  CHECK(recorded.watched.dropped == 6);  // Each event once, and marks of dropped events never.
  REQUIRE(recorded.watched.complaints.size() == 1);
  CHECK_THAT(recorded.watched.complaints[0],
             Contains("orders.rec: cannot write: File too large; recording has ended"));
}

TEST_CASE("recorder: a file that was removed meanwhile is followed by the next segment",
          "[recording]") {
  Recorded recorded;
  {
    const auto recorder = recorded.start();
    std::filesystem::remove(recorded.path);
    for (int i = 0; i < 2; ++i)
      recorder->note(long_event());
  }
  CHECK(read(recorded.path).header.segment == 1);
  CHECK(recorded.watched.complaints.empty());
  CHECK(recorded.watched.dropped == 0);
}

TEST_CASE("recorder: the recording of an earlier process is kept", "[recording]") {
  Recorded recorded;
  recorded.folder.write("orders.rec.lock", "");  // As a process leaves it that was killed.
  for (const char* target : {"xds:///first", "xds:///second"}) {
    const auto recorder = recorded.start();
    recorder->note(TargetOpened{target});
  }
  CHECK(read(recorded.path).events.front().what == OutsideEvent(TargetOpened{"xds:///second"}));
  CHECK(read(recorded.path + ".old").events.front().what ==
        OutsideEvent(TargetOpened{"xds:///first"}));
}

TEST_CASE("recorder: a second one is refused while the first has the path", "[recording]") {
  Recorded recorded;
  const std::string older = recorded.path + ".old";
  const auto refused = [&] {
    return std::string(Recorder::start(recorded.options()).status().message());
  };
  const std::string why = "recording " + recorded.path +
                          ": another runtime records to this path; give each a path of its own";
  const auto first = recorded.start();
  CHECK(refused() == why);
  for (int i = 0; i < 2; ++i)
    first->note(long_event());
  REQUIRE(test::eventually([&] { return std::filesystem::exists(older); }));
  CHECK(refused() == why);
  first->finish();
  CHECK(read(older).header.segment == 0);
  CHECK(read(recorded.path).header.segment == 1);
  CHECK_FALSE(std::filesystem::exists(recorded.path + ".lock"));
  CHECK(Recorder::start(recorded.options()).ok());
}

TEST_CASE("recorder: the lock of a file that was removed meanwhile is no lock of the path",
          "[recording]") {
  Recorded recorded;
  const std::string lock = recorded.folder.write("orders.rec.lock", "");
  // Because of the lease, open() waits after it has found the file.
  const Descriptor lease(::open(lock.c_str(), O_RDONLY | O_CLOEXEC));
  REQUIRE(::fcntl(*lease, F_SETSIG, SIGURG) == 0);  // A signal that is ignored.
  if (::fcntl(*lease, F_SETLEASE, F_RDLCK) != 0) {
    WARN("not tested: the file system of " << lock << " has no leases");
    return;
  }
  std::thread other([&] {
    test::eventually([&] { return ::fcntl(*lease, F_GETLEASE) == F_UNLCK; });
    ::unlink(lock.c_str());
    ::fcntl(*lease, F_SETLEASE, F_UNLCK);
  });
  const absl::Status status = Recorder::start(recorded.options()).status();
  other.join();
  CHECK_THAT(std::string(status.message()), Contains("another runtime records to this path"));
  CHECK(Recorder::start(recorded.options()).ok());
}

TEST_CASE("recorder: events that come too fast are counted, and the file says where they miss",
          "[recording]") {
  Recorded recorded;
  {
    RecorderOptions options = recorded.options();
    options.max_waiting_bytes = 300;
    const auto recorder = Recorded::start(std::move(options));
    recorder->note(StreamReceived{0, 0, std::string(1000, 'x')});
    recorder->note(TargetOpened{"xds:///orders"});
  }
  CHECK(recorded.watched.dropped == 1);
  const Recording recording = read(recorded.path);
  REQUIRE(recording.events.size() == 2);
  CHECK(recording.events[0].what == OutsideEvent(EventsDropped{1}));
}

TEST_CASE("recorder: the file says that events are missing at its end", "[recording]") {
  Recorded recorded;
  {
    RecorderOptions options = recorded.options();
    options.max_waiting_bytes = 300;
    const auto recorder = Recorded::start(std::move(options));
    recorder->note(TargetOpened{"xds:///orders"});
    for (int i = 0; i < 2; ++i)
      recorder->note(StreamReceived{0, 0, std::string(1000, 'x')});
  }
  CHECK(recorded.watched.dropped == 2);
  const Recording recording = read(recorded.path);
  REQUIRE(recording.events.size() == 2);
  CHECK(recording.events[1].what == OutsideEvent(EventsDropped{2}));
}

TEST_CASE("recorder: a path that cannot be written is an error", "[recording]") {
  struct Row {
    const char* file;
    const char* error;
  };

  const auto row = GENERATE(values<Row>({
      {"no/orders.rec", "cannot open the file PATH.lock: No such file or directory"},
      {"linked.rec", "cannot open the file PATH.lock: Too many levels of symbolic links"},
      {"", "is no regular file"},
  }));
  Watched watched;
  const test::TemporaryFolder folder;
  const std::string path = folder.path(row.file);
  std::filesystem::create_symlink(folder.path("elsewhere"), folder.path("linked.rec.lock"));
  const absl::Status status = Recorder::start(options_for(path, watched)).status();
  CHECK(absl::StrReplaceAll(status.message(), {{path, "PATH"}}) ==
        absl::StrCat("recording PATH: ", row.error));
  CHECK_FALSE(std::filesystem::exists(folder.path("elsewhere")));
}

}  // namespace signalbox::actors
