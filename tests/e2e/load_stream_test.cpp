// SPDX-License-Identifier: Apache-2.0
//
// `signalbox load` of server-streaming methods, and with the types of server reflection.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "tests/e2e/echo.pb.h"
#include "tests/e2e/load_command.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {
namespace {

// A server process; `reflection` is v1, v1alpha, silent or none (reflecting_server.cpp).
struct ReflectingServer {
  explicit ReflectingServer(const std::string& reflection)
      : process(start_program(
            {absl::StrCat(SIGNALBOX_REFLECTING_SERVER, reflection == "v1alpha" ? "_v1alpha" : ""),
             reflection})) {
    const auto line = process.read_line(kPatience);
    REQUIRE(line.ok());
    REQUIRE(absl::SimpleAtoi(*line, &port));
  }

  std::string resources() const { return resources_of("127.0.0.1", port); }

  tools::ChildProcess process;
  int port = 0;
};

std::string echo_protoset() {
  ::google::protobuf::FileDescriptorSet set;
  EchoRequest::descriptor()->file()->CopyTo(set.add_file());
  return set.SerializeAsString();
}

}  // namespace

TEST_CASE("load: streams of a method that reflection describes are read to their ends",
          "[e2e][load]") {
  const std::string version = GENERATE("v1", "v1alpha");
  CAPTURE(version);
  const ReflectingServer server(version);
  const Load load;
  const Finished finished = run_program(load.command(server.resources(),
                                                     {"--reflection",
                                                      "--data",
                                                      R"({"text": "a", "times": 5})",
                                                      "--compare",
                                                      "grpc",
                                                      "--session",
                                                      "2",
                                                      "--rate",
                                                      "50",
                                                      "--arrivals",
                                                      "even",
                                                      "--duration",
                                                      "1s"},
                                                     "signalbox.test.Reflected/Expand"));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto report = load.report();
  CHECK(report.at("configuration").at("is_streaming") == true);
  CHECK(report.at("configuration").at("payload_bytes") == 5);
  REQUIRE(report.at("sides").size() == 2);
  for (const auto& side : report.at("sides")) {
    CAPTURE(side.at("name").get<std::string>());
    CHECK(side.at("ok") == 49);
    CHECK(side.at("failed") == 0);
    CHECK(side.at("stream_messages") == 5 * 49);
    CHECK(side.at("first_message").at("count") == 49);
    CHECK(side.at("first_message").at("max_ns") <= side.at("from_due").at("max_ns"));
  }
  CHECK_THAT(finished.output, Catch::Contains("messages received"));
}

TEST_CASE("load: a stream needs a descriptor or --streaming", "[e2e][load]") {
  const ReflectingServer server("none");
  const Load load;
  std::vector<std::string> options;
  if (GENERATE(true, false)) {
    options = {"--protoset", load.write("echo.pb", echo_protoset()), "--data", R"({"times": 3})"};
  } else {
    EchoRequest request;
    request.set_times(3);
    options = {
        "--data-file", load.write("request.bin", request.SerializeAsString()), "--streaming"};
  }
  CAPTURE(options);
  options.insert(options.end(), {"--rate", "50", "--arrivals", "even", "--duration", "1s"});
  const Finished finished =
      run_program(load.command(server.resources(), options, "signalbox.test.Echo/Expand"));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.report().at("sides").at(0);
  CHECK(side.at("ok") == 49);
  CHECK(side.at("stream_messages") == 3 * 49);
}

TEST_CASE("load: a unary method that reflection describes has no stream", "[e2e][load]") {
  const ReflectingServer server("v1");
  const Load load;
  const Finished finished = run_program(load.command(
      server.resources(), {"--reflection", "--duration", "1s"}, "signalbox.test.Reflected/Unary"));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto report = load.report();
  CHECK(report.at("configuration").at("is_streaming") == false);
  CHECK(report.at("sides").at(0).at("ok") > 0);
  CHECK(report.at("sides").at(0).at("stream_messages") == 0);
  CHECK_THAT(finished.output, !Catch::Contains("messages received"));
}

TEST_CASE("load: a stream that breaks in the middle is one lost call", "[e2e][load]") {
  const ReflectingServer server("v1");
  const Load load;
  const std::string script =
      load.write("drill.yaml",
                 absl::StrCat("processes: {server: {pidfile: ",
                              load.write("server.pid", std::to_string(server.process.pid())),
                              "}}\nacts: [{at: 600ms, kill: server}]\n"));
  // The server sends three messages of each stream, and then holds the stream open until it dies.
  const Finished finished = run_program(load.command(server.resources(),
                                                     {"--reflection",
                                                      "--data",
                                                      R"({"times": 3, "hold": true})",
                                                      "--timeout",
                                                      "50s",
                                                      "--rate",
                                                      "20",
                                                      "--arrivals",
                                                      "even",
                                                      "--duration",
                                                      "1s",
                                                      "--script",
                                                      script},
                                                     "signalbox.test.Reflected/Expand"));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.report().at("sides").at(0);
  CHECK(side.at("ok") == 0);
  CHECK(side.at("codes") == nlohmann::json{{"14", 19}});
  CHECK(side.at("faults").at(0).at("lost") == 19);
  CHECK(side.at("unanswered") == 0);
  CHECK(side.at("stream_messages") >= 3);
  CHECK(side.at("stream_messages") <= 3 * 19);
  CHECK(side.at("first_message").at("count") == 0);
}

TEST_CASE("load: a signal cuts the run while streams are open", "[e2e][load]") {
  const ReflectingServer server("v1");
  const Load load;
  auto process = start_program(load.command(server.resources(),
                                            {"--reflection",
                                             "--data",
                                             R"({"times": 1, "hold": true})",
                                             "--timeout",
                                             "300s",
                                             "--rate",
                                             "20",
                                             "--duration",
                                             "600s"},
                                            "signalbox.test.Reflected/Expand"));
  await_first_second(process);
  process.send_signal(SIGINT);
  const Finished finished = finish(process);
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 128 + SIGINT);
  const auto report = load.report();
  CHECK(report.at("is_cut") == true);
  const auto& side = report.at("sides").at(0);
  CHECK(side.at("unanswered") > 0);
  CHECK(side.at("unanswered") == side.at("validity").at("sent"));
}

TEST_CASE("load: reflection that does not help is a sentence that says what to do", "[e2e][load]") {
  struct Row {
    const char* server;
    const char* call;
    const char* data;
    const char* sentence;
  };

  const Row row = GENERATE(
      Row{"none",
          "signalbox.test.Reflected/Unary",
          "{}",
          "xds:///orders: it has no gRPC server reflection, neither v1 nor v1alpha; give the types "
          "of /signalbox.test.Reflected/Unary with --protoset FILE"},
      Row{"silent",
          "signalbox.test.Reflected/Unary",
          "{}",
          "did not answer within 5 s, which --start-timeout sets; give the types of"},
      Row{"v1",
          "signalbox.test.Other/Unary",
          "{}",
          "does not know the service 'signalbox.test.Other', which --call names; give the types"},
      Row{"v1alpha",
          "signalbox.test.Other/Unary",
          "{}",
          "does not know the service 'signalbox.test.Other', which --call names; give the types"},
      Row{"v1",
          "signalbox.test.Reflected/Cancel",
          "{}",
          "has no method 'Cancel'; it has: Unary, Collect, Expand, Chat; correct --call, or give "
          "other types with --protoset FILE"},
      Row{"v1",
          "signalbox.test.EchoRequest/Unary",
          "{}",
          "there is no service 'signalbox.test.EchoRequest' in the descriptors; correct --call"},
      Row{"v1",
          "signalbox.test.Reflected/Collect",
          "{}",
          "/signalbox.test.Reflected/Collect is a client-streaming method"},
      Row{"v1",
          "signalbox.test.Reflected/Chat",
          "{}",
          "/signalbox.test.Reflected/Chat is a bidirectional-streaming method"},
      Row{"v1",
          "signalbox.test.Reflected/Unary",
          R"({"nr": 1})",
          "--reflection: the JSON is no signalbox.test.EchoRequest: "});
  CAPTURE(row.server, row.call);
  const ReflectingServer server(row.server);
  const Load load;
  const Finished finished = run_program(load.command(
      server.resources(), {"--reflection", "--data", row.data, "--start-timeout", "5s"}, row.call));
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors, Catch::Contains(row.sentence));
  CHECK(finished.output.empty());
}

TEST_CASE("load: options that contradict each other are refused", "[e2e][load]") {
  struct Row {
    std::vector<std::string> options;
    const char* sentence;
  };

  const Row row = GENERATE(Row{{"--reflection", "--protoset", "a.pb"}, "excludes"},
                           Row{{"--reflection", "--data-file", "a.bin"}, "excludes"},
                           Row{{"--reflection", "--streaming"}, "excludes"},
                           Row{{"--streaming", "--protoset", "a.pb"}, "excludes"},
                           Row{{"--data", "{}"}, "--data requires --protoset or --reflection"});
  CAPTURE(row.options);
  const Load load;
  const Finished finished = run_program(load.command(resources_of("127.0.0.1", 1), row.options));
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors, Catch::Contains(row.sentence));
}

TEST_CASE("load: a protoset shows that the client streams, and the method is refused",
          "[e2e][load]") {
  const auto [method, kind] = GENERATE(table<std::string, std::string>(
      {{"Collect", "a client-streaming"}, {"Chat", "a bidirectional-streaming"}}));
  const Load load;
  const Finished finished =
      run_program(load.command(resources_of("127.0.0.1", 1),
                               {"--protoset", load.write("echo.pb", echo_protoset())},
                               "signalbox.test.Echo/" + method));
  CHECK(finished.status == 2);
  CHECK_THAT(finished.errors,
             Catch::Contains(
                 absl::StrCat("/signalbox.test.Echo/",
                              method,
                              " is ",
                              kind,
                              " method; only unary and server-streaming methods can be called")));
}

}  // namespace signalbox::test
