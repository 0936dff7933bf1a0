// SPDX-License-Identifier: Apache-2.0
//
// `signalbox serve` as a process: how it follows its file, and what ends it. Also a `signalbox
// backend` that ends with its parent.
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/e2e/raw_client.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/terminal.hpp"

namespace signalbox::test {
namespace {

std::string file_with(const Names& clusters) {
  std::string text = "resources:\n";
  for (const auto& name : clusters) {
    text += "  - {\"@type\": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: " + name +
            ", type: EDS, eds_cluster_config: {eds_config: {ads: {}}}}\n";
  }
  return text;
}

// A control plane in a process of its own.
struct Served {
  tools::ChildProcess process;
  std::string address;
};

Served serve(const std::string& file, const std::string& listen = "127.0.0.1:0") {
  Served served{
      start_program({SIGNALBOX_PROGRAM, "serve", "--resources", file, "--listen", listen}), ""};
  const auto line = served.process.read_line(kPatience);
  INFO(line.status().ToString() << " " << served.process.captured_errors());
  REQUIRE(line.ok());
  served.address = nlohmann::json::parse(*line)["address"];
  return served;
}

// Waits until the process has written `text` to stderr `times` times.
bool complains(Served& served, const std::string& text, int times = 1) {
  return eventually([&] {
    // Collects the process's output.
    served.process.wait(std::chrono::milliseconds(0)).IgnoreError();
    const std::string& errors = served.process.captured_errors();
    int found = 0;
    for (auto at = errors.find(text); at != std::string::npos; at = errors.find(text, at + 1))
      ++found;
    return found >= times;
  });
}

rlim_t lowest_free_descriptor(pid_t process) {
  const std::filesystem::path open = absl::StrCat("/proc/", process, "/fd");
  const auto look = [&] {
    rlim_t lowest = 0;
    while (std::filesystem::is_symlink(open / std::to_string(lowest)))
      ++lowest;
    return lowest;
  };
  // A descriptor that the process has only for a moment does not count.
  rlim_t lowest = look();
  int same = 0;
  REQUIRE(eventually([&] {
    const rlim_t before = std::exchange(lowest, look());
    same = lowest == before ? same + 1 : 0;
    return same == 20;
  }));
  return lowest;
}

}  // namespace

TEST_CASE("serve: what changes in the file is pushed, and what is wrong is not", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("resources.yaml", file_with({"a"}));
  Served served = serve(file);
  RawClient client(served.address);
  client.ask({"a", "b"});
  const auto first = received(client);
  CHECK(names_in(first) == Names{"a"});

  // The last good file is still served. If the wrong one were served, the next response would show
  // it.
  folder.write("resources.yaml", "resources: [{}]");
  REQUIRE(eventually([&] {
    // Collects the process's output.
    served.process.wait(std::chrono::milliseconds(0)).IgnoreError();
    return served.process.captured_errors().find("the last good one is still") != std::string::npos;
  }));
  folder.write("resources.yaml", file_with({"a", "b"}));
  const auto second = received(client);
  CHECK(names_in(second) == Names{"a", "b"});
  CHECK(second.version_info() != first.version_info());

  served.process.send_signal(SIGTERM);
  CHECK(finish(served.process).status == 0);
  CHECK_FALSE(client.receive().has_value());
}

TEST_CASE("serve: after a SIGKILL another one serves on the same port", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("resources.yaml", file_with({"a"}));
  Served first = serve(file, "127.0.0.41:0");
  RawClient client(first.address);
  client.ask({"a"});
  received(client);
  first.process.send_signal(SIGKILL);
  CHECK(finish(first.process).status == 128 + SIGKILL);
  CHECK_FALSE(client.receive().has_value());

  const Served second = serve(file, first.address);
  CHECK(second.address == first.address);
  RawClient again(second.address);
  again.ask({"a"});
  CHECK(names_in(received(again)) == Names{"a"});
}

TEST_CASE("serve: SIGHUP reads the file again and never stops it", "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("resources.yaml", file_with({"a"}));
  Served served = serve(file);
  RawClient client(served.address);
  client.ask({"a", "b"});
  CHECK(names_in(received(client)) == Names{"a"});
  REQUIRE(complains(served, "1 resources"));

  served.process.send_signal(SIGHUP);  // The file is unchanged, so nothing is sent.
  CHECK(complains(served, "1 resources", 2));

  folder.write("resources.yaml", "resources: [{}]");
  REQUIRE(complains(served, "the last good one is still served"));
  served.process.send_signal(SIGHUP);  // The file is still wrong, so the error is written again.
  CHECK(complains(served, "the last good one is still served", 2));

  std::filesystem::remove(file);
  REQUIRE(complains(served, "the last good one is still served", 3));
  served.process.send_signal(SIGHUP);
  CHECK(complains(served, "the last good one is still served", 4));

  folder.write("resources.yaml", file_with({"a", "b"}));
  served.process.send_signal(SIGHUP);
  CHECK(names_in(received(client)) == Names{"a", "b"});
  served.process.send_signal(SIGTERM);
  CHECK(finish(served.process).status == 0);
}

TEST_CASE("serve: a file that could not be watched is tried again without a signal",
          "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("resources.yaml", file_with({"a"}));
  Served served = serve(file);
  RawClient client(served.address);
  client.ask({"a", "b"});
  CHECK(names_in(received(client)) == Names{"a"});

  // The process can open nothing more, so it can neither watch nor read its file. A lower limit
  // would make its poll() fail, too, because poll() takes no more entries than the limit.
  rlimit before{};
  REQUIRE(::prlimit(served.process.pid(), RLIMIT_NOFILE, nullptr, &before) == 0);
  const rlimit none{lowest_free_descriptor(served.process.pid()), before.rlim_max};
  REQUIRE(::prlimit(served.process.pid(), RLIMIT_NOFILE, &none, nullptr) == 0);
  folder.write("resources.yaml", file_with({"a", "b"}));
  REQUIRE(complains(served, "cannot watch"));
  REQUIRE(::prlimit(served.process.pid(), RLIMIT_NOFILE, &before, nullptr) == 0);

  CHECK(names_in(received(client)) == Names{"a", "b"});
  served.process.send_signal(SIGTERM);
  CHECK(finish(served.process).status == 0);
}

TEST_CASE("serve: in a terminal SIGHUP reads again, and the end of the terminal stops it",
          "[e2e][tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("resources.yaml", file_with({"a"}));
  TerminalProgram served(
      {SIGNALBOX_PROGRAM, "serve", "--resources", file, "--listen", "127.0.0.1:0"});
  REQUIRE(served.eventually_shows(
      [](const std::string& shown) { return shown.find("\"address\"") != std::string::npos; }));
  ::kill(served.pid(), SIGHUP);
  REQUIRE(served.eventually_shows([](const std::string& shown) {
    const auto first = shown.find("1 resources");
    return first != std::string::npos && shown.find("1 resources", first + 1) != std::string::npos;
  }));
  served.hang_up();
  CHECK(served.finish() == 0);
}

TEST_CASE("serve: SIGINT ends it as SIGTERM does", "[e2e][tools]") {
  const TemporaryFolder folder;
  Served served = serve(folder.write("resources.yaml", file_with({"a"})));
  served.process.send_signal(SIGINT);
  CHECK(finish(served.process).status == 0);
}

TEST_CASE("serve: a backend ends with the process that started it", "[e2e][tools]") {
  // A shell between the test and the backend starts the backend, prints its process id, and is
  // killed.
  auto shell = start_program({"/bin/sh",
                              "-c",
                              std::string(SIGNALBOX_PROGRAM) +
                                  " backend --name b --cluster b --parent $$ & echo $!; wait"});
  const auto first = shell.read_line(kPatience);
  REQUIRE(first.ok());
  const auto second = shell.read_line(kPatience);
  REQUIRE(second.ok());
  // The shell's line and the backend's may come in either order.
  const std::string& number = (*first)[0] == '{' ? *second : *first;
  const pid_t backend = std::stoi(number);
  CHECK(is_alive(backend));
  shell.send_signal(SIGKILL);
  CHECK(finish(shell).status == 128 + SIGKILL);
  CHECK(eventually([&] { return !is_alive(backend); }));
}

}  // namespace signalbox::test
