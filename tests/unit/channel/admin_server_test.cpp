// SPDX-License-Identifier: Apache-2.0
#include "channel/admin/admin_server.hpp"

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "channel/admin/admin_listener.hpp"
#include "tests/support/http_crowd.hpp"
#include "tests/support/http_peer.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tools/admin_client.hpp"

namespace signalbox::channel::admin_server_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::TemporaryFolder;

AdminSources sources() {
  return {.dump = [] { return ResourceDump{.node_id = "me"}; },
          .metrics = [] { return "signalbox_x 1\n"; },
          .status = [] { return RuntimeStatus{.ready = true}; },
          .ready = [](const std::string&) { return std::optional(true); }};
}

std::unique_ptr<AdminServer> start(const std::string& address) {
  auto server = AdminServer::start(address, sources());
  INFO(server.status().ToString());
  REQUIRE(server.ok());
  return *std::move(server);
}

std::string refusal(const std::string& address) {
  const auto server = AdminServer::start(address, sources());
  REQUIRE_FALSE(server.ok());
  CHECK(server.status().code() == absl::StatusCode::kUnavailable);
  return std::string(server.status().message());
}

int port_of(const std::string& address) {
  const auto parsed = parse_admin_address(address);
  REQUIRE(parsed.ok());
  return std::get<LoopbackAddress>(*parsed).port;
}

std::string ask(const std::string& address, const std::string& text) {
  return channel::ask(port_of(address), text);
}

sockaddr_un name_of(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  return name;
}

bool connect_to(int descriptor, const std::string& path) {
  const sockaddr_un name = name_of(path);
  return ::connect(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}

int listening_at(const std::string& path, int backlog) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(descriptor >= 0);
  const sockaddr_un name = name_of(path);
  REQUIRE(::bind(descriptor, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  REQUIRE(::listen(descriptor, backlog) == 0);
  return descriptor;
}

// Leaves the file of a unix socket behind, as a process that dies does.
void leave_socket(const std::string& path) {
  ::close(listening_at(path, 1));
}

// A server that reads one request, sends `text`, and closes the connection.
class OneAnswer {
 public:
  OneAnswer(const std::string& path, std::string text) : descriptor_(listening_at(path, 1)) {
    thread_ = std::thread([this, text = std::move(text)] {
      const int peer = ::accept(descriptor_, nullptr, nullptr);
      if (peer < 0) return;  // The test has ended.
      char request[1024];
      [[maybe_unused]] const auto heard = ::recv(peer, request, sizeof request, 0);
      [[maybe_unused]] const auto said = ::send(peer, text.data(), text.size(), MSG_NOSIGNAL);
      ::close(peer);
    });
  }

  ~OneAnswer() {
    ::shutdown(descriptor_, SHUT_RDWR);
    thread_.join();
    ::close(descriptor_);
  }

  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

 private:
  int descriptor_;
  std::thread thread_;
};

mode_t mode_of(const std::string& path) {
  struct stat file{};

  REQUIRE(::lstat(path.c_str(), &file) == 0);
  return file.st_mode;
}

}  // namespace

TEST_CASE("admin server: answers on either kind of address", "[channel][admin]") {
  const TemporaryFolder folder;
  const bool is_unix = GENERATE(true, false);
  const std::string wanted = is_unix ? "unix:" + folder.path("s") : "127.0.0.1:0";
  const auto server = start(wanted);
  const auto address = parse_admin_address(server->address());
  REQUIRE(address.ok());
  const auto metrics = tools::admin_get(*address, "/metrics");
  REQUIRE(metrics.ok());
  CHECK(*metrics == "signalbox_x 1\n");
  const auto nothing = tools::admin_get(*address, "/nothing");
  CHECK(nothing.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(nothing.status().message()), Contains("there is no '/nothing'"));
}

TEST_CASE("admin server: port 0 takes a free one, and an address in use is refused",
          "[channel][admin]") {
  const auto first = start("localhost:0");
  const auto second = start("localhost:0");
  CHECK(first->address() != second->address());
  CHECK_THAT(first->address(), StartsWith("127.0.0.1:"));
  CHECK_THAT(refusal(first->address()),
             Contains(first->address()) && Contains("cannot listen there"));
}

TEST_CASE("admin server: only GET, only from this machine's own hands", "[channel][admin]") {
  const auto server = start("127.0.0.1:0");

  struct Row {
    const char* request;
    const char* status;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {"GET /help HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200", "/config_dump"},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "HTTP/1.1 403", "evil.example"},
      {"GET / HTTP/1.0\r\n\r\n", "HTTP/1.", "403"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n",
       "HTTP/1.1 403",
       "Origin"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n",
       "HTTP/1.1 403",
       "web pages"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n\r\n",
       "HTTP/1.1 200",
       "Content-Security-Policy: default-src 'none'"},
      {"GET /style.css HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n\r\n",
       "HTTP/1.1 200",
       "Content-Type: text/css"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200", "X-Frame-Options: DENY"},
      {"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nquit",
       "HTTP/1.1 405",
       "Allow: GET"},
      {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400", ""},
      {"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 404", "'/nothing'"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200", "Cache-Control: no-store"},
      {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
       "HTTP/1.1 200",
       "X-Content-Type-Options: nosniff"},
      {"GET /config_dump?type=nothing HTTP/1.1\r\nHost: localhost\r\n\r\n",
       "HTTP/1.1 400",
       "got 'nothing'"},
      {"GET /config_dump?name=%2Fa%20b HTTP/1.1\r\nHost: localhost\r\n\r\n",
       "HTTP/1.1 200",
       "\"id\": \"me\""},
  }));
  const std::string answer = ask(server->address(), row.request);
  INFO(answer);
  CHECK_THAT(answer, StartsWith(row.status) && Contains(row.says));
  CHECK_THAT(answer, Contains("Connection: close", Catch::CaseSensitive::No));
}

TEST_CASE("admin server: a request larger than its limit is refused, and others are served",
          "[channel][admin]") {
  const auto server = start("127.0.0.1:0");
  const auto ask_with_header = [&](std::size_t size) {
    const std::string much(size, 'x');
    return ask(server->address(), "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + much + "\r\n\r\n");
  };
  CHECK_THAT(ask_with_header(HttpServer::kMaxConnectionBytes / 4), Contains("200"));
  const std::string answer = ask_with_header(HttpServer::kMaxConnectionBytes + 1000);
  INFO(answer);
  CHECK((answer.empty() || answer.find(" 431 ") != std::string::npos ||
         answer.find(" 413 ") != std::string::npos));
  CHECK_THAT(ask(server->address(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Contains("200"));
}

TEST_CASE("admin server: /ready is answered while a dump is made", "[channel][admin]") {
  std::promise<void> finish;
  std::promise<void> begun;
  AdminSources slow = sources();
  slow.dump = [&, finished = finish.get_future().share()]() -> absl::StatusOr<ResourceDump> {
    begun.set_value();
    finished.wait();
    return ResourceDump{.node_id = "me"};
  };
  auto server = AdminServer::start("127.0.0.1:0", std::move(slow));
  REQUIRE(server.ok());
  const std::string address = (*server)->address();
  auto dump = std::async(std::launch::async, [&] {
    return channel::ask(port_of(address), "GET /config_dump HTTP/1.1\r\nHost: localhost\r\n\r\n");
  });
  begun.get_future().wait();
  for (int i = 0; i < 100; ++i) {
    CHECK_THAT(ask(address, "GET /ready?target=a HTTP/1.1\r\nHost: localhost\r\n\r\n"),
               StartsWith("HTTP/1.1 200") && Contains("LIVE"));
  }
  // The thread for /ready checks Host and the method, as the thread for other pages does.
  CHECK_THAT(ask(address, "GET /ready HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
             StartsWith("HTTP/1.1 403"));
  CHECK_THAT(ask(address, "POST /ready HTTP/1.1\r\nHost: localhost\r\n\r\n"),
             StartsWith("HTTP/1.1 405"));
  CHECK(dump.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  finish.set_value();
  CHECK_THAT(dump.get(), StartsWith("HTTP/1.1 200"));
}

TEST_CASE("admin server: clients that never read hold a bounded number of bytes",
          "[channel][admin]") {
  constexpr std::size_t kPage = std::size_t{8} << 20U;
  AdminSources large = sources();
  large.metrics = [] { return std::string(kPage, 'x'); };
  std::atomic<int> hits{0};
  auto server = AdminServer::start("127.0.0.1:0", std::move(large), [&](AdminLimit limit) {
    hits += limit == AdminLimit::kHttpUnreadBytes ? 1 : 0;
  });
  REQUIRE(server.ok());
  const int port = port_of((*server)->address());
  std::vector<std::unique_ptr<HttpPeer>> deaf;
  for (std::size_t i = 0; i < HttpServer::kMaxWaitingBytes / kPage; ++i) {
    deaf.push_back(std::make_unique<HttpPeer>(port));
    REQUIRE(deaf.back()->send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }
  const auto asked = [&](const char* page) {
    return channel::ask(port, absl::StrCat("GET ", page, " HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  };
  // Soon the unread responses have kMaxWaitingBytes, and another response is refused.
  std::string answer;
  CHECK(test::eventually([&] {
    answer = asked("/metrics");
    return answer.starts_with("HTTP/1.1 503");
  }));
  CHECK_THAT(answer, Contains("bytes of other responses wait for their readers"));
  CHECK(hits >= 1);
  // A client that disconnects frees the bytes of its response.
  deaf.clear();
  CHECK(test::eventually([&] { return asked("/metrics").starts_with("HTTP/1.1 200"); }));
}

TEST_CASE("admin server: ten thousand clients at once are answered, refused or closed",
          "[channel][admin]") {
  const auto server = start("127.0.0.1:0");
  CrowdEnds ends;
  http_crowd(port_of(server->address()), "/metrics", ends);
  INFO(ends.served << " served, " << ends.busy << " busy, of " << ends.clients);
  CHECK(ends.other == 0);
  CHECK(ends.served >= ends.clients / 10);
  for (const char* page : {"/metrics", "/ready"}) {
    CHECK_THAT(
        ask(server->address(), absl::StrCat("GET ", page, " HTTP/1.1\r\nHost: localhost\r\n\r\n")),
        StartsWith("HTTP/1.1 200"));
  }
}

TEST_CASE("admin server: a request line of a mebibyte is refused, and costs no mebibyte",
          "[channel][admin]") {
  const auto server = start("127.0.0.1:0");
  const std::string line = "GET /" + std::string(std::size_t{1} << 20U, 'a') + " HTTP/1.1\r\n";
  for (int i = 0; i < 10; ++i) {
    const std::string answer = ask(server->address(), line + "Host: localhost\r\n\r\n");
    // The server may close the connection while the client writes; then the client gets no answer.
    CHECK((answer.empty() || answer.starts_with("HTTP/1.1 431 ")));
  }
  CHECK_THAT(ask(server->address(), "GET /" + std::string(20'000, 'a')),
             StartsWith("HTTP/1.1 431 ") && Contains("must not be longer than 16384 bytes"));
  CHECK_THAT(ask(server->address(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
             StartsWith("HTTP/1.1 200"));
}

TEST_CASE("admin server: silent connections stop no page", "[channel][admin]") {
  const auto server = start("127.0.0.1:0");
  std::vector<std::unique_ptr<HttpPeer>> silent;
  // One more than the number of connections that may wait.
  for (std::size_t i = 0; i <= HttpDoorLimits().most; ++i)
    silent.push_back(std::make_unique<HttpPeer>(port_of(server->address())));
  for (const char* page : {"/metrics", "/config_dump", "/"}) {
    const std::string request = absl::StrCat("GET ", page, " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    CHECK_THAT(ask(server->address(), request), StartsWith("HTTP/1.1 200"));
  }
  CHECK_THAT(ask(server->address(), "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n"),
             StartsWith("HTTP/1.1 400") && Contains("Host: expected one, found 2"));
}

TEST_CASE("admin server: ends while others are connected and silent", "[channel][admin]") {
  auto server = start("127.0.0.1:0");
  HttpPeer silent(port_of(server->address()));
  HttpPeer halfway(port_of(server->address()));
  CHECK(halfway.send("GET / HT"));
  CHECK_THAT(ask(server->address(), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), Contains("200"));
  server = nullptr;
  CHECK(silent.receive().empty());
  CHECK(halfway.receive().empty());
}

TEST_CASE("admin server: a unix socket is its owner's and group's, and goes with the server",
          "[channel][admin]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("admin.sock");
  const mode_t before = ::umask(GENERATE(0, 0077));
  auto server = start("unix:" + path);
  ::umask(before);
  CHECK(S_ISSOCK(mode_of(path)));
  CHECK((mode_of(path) & 07777) == 0660);
  CHECK(server->address() == "unix:" + path);
  server = nullptr;
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("admin server: a dead process's socket is replaced, a living one's is not",
          "[channel][admin]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("admin.sock");
  leave_socket(path);
  const auto server = start("unix:" + path);
  CHECK_THAT(refusal("unix:" + path), Contains(path) && Contains("another process listens there"));
  CHECK(tools::admin_get(UnixAddress{path}, "/").ok());
}

TEST_CASE("admin listener: of those who come for a dead process's socket at once, one has it",
          "[channel][admin]") {
  const TemporaryFolder folder;
  for (int round = 0; round < 200; ++round) {
    const std::string path = folder.path(absl::StrCat("admin", round));
    leave_socket(path);
    constexpr std::ptrdiff_t kComers = 4;
    std::barrier together(kComers);
    std::mutex mutex;
    std::vector<AdminListener> owners;
    std::vector<std::thread> comers;
    comers.reserve(kComers);
    for (std::ptrdiff_t i = 0; i < kComers; ++i) {
      comers.emplace_back([&] {
        together.arrive_and_wait();
        auto listener = AdminListener::open(UnixAddress{path});
        const std::lock_guard lock(mutex);
        if (listener.ok()) owners.push_back(*std::move(listener));
      });
    }
    for (std::thread& comer : comers)
      comer.join();
    REQUIRE(owners.size() == 1);
  }
}

TEST_CASE("admin server: no file of others is touched", "[channel][admin]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("precious", "text");
  CHECK_THAT(refusal("unix:" + file), Contains("no socket"));
  CHECK(std::filesystem::file_size(file) == 4);
  CHECK_THAT(refusal("unix:" + folder.path("no/such/folder")), Contains("No such file"));
  // The working folder is gone.
  const int before = ::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::filesystem::create_directory(folder.path("gone"));
  std::filesystem::current_path(folder.path("gone"));
  std::filesystem::remove(folder.path("gone"));
  CHECK_THAT(refusal("unix:a.sock"), Contains("No such file"));
  REQUIRE(::fchdir(before) == 0);
  ::close(before);

  // The listener does not remove a file that has replaced its socket.
  const std::string path = folder.path("admin.sock");
  auto server = start("unix:" + path);
  std::filesystem::remove(path);
  folder.write("admin.sock", "text");
  server = nullptr;
  CHECK(std::filesystem::exists(path));
}

TEST_CASE("admin client: nobody there is told with what to do", "[tools][admin]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("admin.sock");
  const auto none = tools::admin_get(UnixAddress{path}, "/");
  CHECK(none.status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(none.status().message()),
             Contains(path) && Contains("there is no such socket") && Contains("--admin"));
  leave_socket(path);
  const auto dead = tools::admin_get(UnixAddress{path}, "/");
  CHECK(dead.status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(dead.status().message()), Contains("no process listens there"));
}

TEST_CASE("admin client: what is no answer is told as what it is", "[tools][admin]") {
  struct Row {
    const char* answers;
    const char* says;
  };

  const auto row = GENERATE(values<Row>({
      {"", "what listens there does not speak HTTP"},
      {"220 mail.example ESMTP\r\n\r\n", "what listens there does not speak HTTP"},
      {"HTTP/1.1 OK\r\n\r\n", "what listens there does not speak HTTP"},
      {"HTTP/1.1\r\n\r\n", "what listens there does not speak HTTP"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n", "what listens there does not speak HTTP"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "the answer was cut off"},
      {"HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nbusy\r\n", ": busy"},
  }));
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  OneAnswer answer(path, row.answers);
  const auto got = tools::admin_get(UnixAddress{path}, "/");
  CHECK(got.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(got.status().message()), StartsWith("unix:" + path) && Contains(row.says));
}

TEST_CASE("admin client: who says nothing is not waited for longer than that", "[tools][admin]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  auto listener = std::make_optional(AdminListener::open(UnixAddress{path}));
  REQUIRE(listener->ok());
  // A timeout of 0 does not mean to wait for ever.
  const auto patience = std::chrono::milliseconds(GENERATE(100, 0));
  auto asked = std::async(std::launch::async,
                          [&] { return tools::admin_get(UnixAddress{path}, "/", patience); });
  CHECK(asked.wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  listener.reset();  // Ends the wait of a client that ignores its timeout.
  CHECK_THAT(
      std::string(asked.get().status().message()),
      Contains(absl::StrCat(" within ", patience.count() / 1000.0, " s; is the process stopped")));
}

TEST_CASE("admin client: who says little at a time has no more time", "[tools][admin]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  const int listener = listening_at(path, 1);
  std::thread server([listener] {
    const int peer = ::accept(listener, nullptr, nullptr);
    if (peer < 0) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (std::chrono::steady_clock::now() < end && ::send(peer, "x", 1, MSG_NOSIGNAL) == 1) {
    }
    ::close(peer);
  });
  const auto got = tools::admin_get(UnixAddress{path}, "/", std::chrono::milliseconds(200));
  server.join();
  ::close(listener);
  CHECK_THAT(std::string(got.status().message()), Contains("no answer within 0.2 s"));
}

TEST_CASE("admin client: who takes no connection is told as that", "[tools][admin]") {
  const TemporaryFolder folder;
  const std::string path = folder.path("s");
  const int listener = listening_at(path, 0);
  std::vector<int> waiting;  // Connections that fill the listener's backlog.
  do {
    waiting.push_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
  } while (waiting.size() < 64 && connect_to(waiting.back(), path));
  REQUIRE(waiting.size() < 64);
  const auto got = tools::admin_get(UnixAddress{path}, "/", std::chrono::milliseconds(100));
  CHECK(got.status().code() == absl::StatusCode::kUnavailable);
  CHECK_THAT(std::string(got.status().message()),
             Contains("no connection within 0.1 s; is the process stopped"));
  for (const int descriptor : waiting)
    ::close(descriptor);
  ::close(listener);
}

TEST_CASE("admin client: a query's value is encoded", "[tools][admin]") {
  CHECK(tools::query_value("xdstp://a/b?c=d&e f") == "xdstp%3A%2F%2Fa%2Fb%3Fc%3Dd%26e%20f");
  CHECK(tools::query_value("a-b.c_d~9\xff") == "a-b.c_d~9%FF");
}

}  // namespace signalbox::channel::admin_server_test
