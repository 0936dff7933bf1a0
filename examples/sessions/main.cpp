// SPDX-License-Identifier: Apache-2.0
//
// The calls of a session stay on one backend, also while that backend drains (gRFC A55).
//
//   call ─ cookie of the jar ─▶ xds:///orders ─▶ the session's backend
//   jar ◀─ set-cookie ─────────────────────────┘
//
// Each tenth of a second, the program makes a call of its session, and a call without a session.
// It prints the names of both backends whenever one of them changes. The first failed call ends the
// program.
#include <chrono>
#include <iostream>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "orders.grpc.pb.h"
#include <grpcpp/grpcpp.h>

#include "signalbox/cookie_jar.hpp"
#include "signalbox/runtime.hpp"

namespace demo = signalbox::demo::v1;

namespace {

// Makes a call of the session that has this jar. Returns the name of the backend.
absl::StatusOr<std::string> place(demo::Orders::StubInterface& stub,
                                  signalbox::CookieJar& jar,
                                  bool is_first) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  context.set_wait_for_ready(is_first);  // Backends may start a little later than this program.
  jar.send(context);
  demo::PlaceReply reply;
  const grpc::Status status = stub.Place(&context, {}, &reply);
  if (!status.ok()) {
    const auto code = static_cast<absl::StatusCode>(status.error_code());
    return absl::Status(code, status.error_message());
  }
  // A refused cookie fails no call: the jar sends what it sent before.
  if (const auto saved = jar.receive(context); !saved.ok())
    std::cerr << "session: " << saved << '\n';
  return reply.backend();
}

}  // namespace

int main() {
  const auto runtime = signalbox::Runtime::start();  // The bootstrap: from the environment.
  if (!runtime.ok()) {
    std::cerr << "session: " << runtime.status() << '\n';
    return 1;
  }
  const auto stub = demo::Orders::NewStub((*runtime)->channel("xds:///orders"));
  signalbox::CookieJar jar;
  for (std::string before;;) {
    signalbox::CookieJar empty;
    const auto own = place(*stub, jar, before.empty());
    const auto other = own.ok() ? place(*stub, empty, false) : own;
    if (!other.ok()) {
      std::cerr << "session: " << other.status() << '\n';
      return 1;
    }
    const auto now = absl::StrCat("the session is on ", *own, ", other calls go to ", *other);
    if (now != before) std::cout << now << std::endl;
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}
