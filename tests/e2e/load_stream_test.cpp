// SPDX-License-Identifier: Apache-2.0
//
// `signalbox load` of server-streaming methods.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include "tests/e2e/echo_server.hpp"
#include "tests/e2e/load_command.hpp"
#include "tests/support/process.hpp"

namespace signalbox::test {
namespace {

std::string echo_protoset() {
  google::protobuf::FileDescriptorSet set;
  EchoRequest::descriptor()->file()->CopyTo(set.add_file());
  return set.SerializeAsString();
}

}  // namespace

TEST_CASE("load: a stream needs a descriptor or --streaming", "[e2e][load]") {
  EchoServer server;
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
  const Finished finished = run_program(load.command(
      resources_of("127.0.0.1", server.service().port), options, "signalbox.test.Echo/Expand"));
  INFO(finished.output << finished.errors);
  CHECK(finished.status == 0);
  const auto side = load.report().at("sides").at(0);
  CHECK(side.at("ok") == 49);
  CHECK(side.at("stream_messages") == 3 * 49);
}

TEST_CASE("load: options that contradict each other are refused", "[e2e][load]") {
  struct Row {
    std::vector<std::string> options;
    const char* sentence;
  };

  const Row row = GENERATE(

      Row{{"--streaming", "--protoset", "a.pb"}, "excludes"},
      Row{{"--data", "{}"}, "--data requires --protoset"});
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
