// SPDX-License-Identifier: Apache-2.0
#include "actors/io/file_ads_transport.hpp"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

#include "signalbox/envoy/service/discovery/v3/discovery.pb.h"
#include "tests/support/happened.hpp"
#include "tests/support/process.hpp"
#include "tests/support/temporary_folder.hpp"
#include "xds/type_url.hpp"

namespace signalbox::actors {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using envoy::service::discovery::v3::DiscoveryRequest;
using envoy::service::discovery::v3::DiscoveryResponse;
using test::Happened;
using test::TemporaryFolder;
using Names = std::set<std::string>;

const std::string kCds(xds::kClusterTypeUrl);
const std::string kRds(xds::kRouteConfigurationTypeUrl);

std::string clusters(const Names& names) {
  std::string text = "resources:\n";
  for (const std::string& name : names)
    absl::StrAppend(&text, "- {\"@type\": ", kCds, ", name: ", name, ", type: EDS}\n");
  return names.empty() ? "resources: []" : text;
}

struct Complaint {
  FileTrouble trouble;
  std::string text;
};

// A client on one stream of a transport. `events` has a text for each opening and closing of the
// stream, and the bytes of each response.
struct Client {
  explicit Client(AdsTransport& transport) {
    AdsTransport::Events told;
    told.opened = [this] { events.add("opened"); };
    told.received = [this](std::string bytes) { events.add(std::move(bytes)); };
    told.closed = [this](const absl::Status& why) {
      events.add(absl::StrCat("closed: ", std::string(why.message())));
    };
    stream = transport.open(std::move(told));
  }

  void ask(const std::string& type_url,
           const Names& names,
           const DiscoveryResponse* last = nullptr,
           const std::string& nack = {}) {
    DiscoveryRequest request;
    request.set_type_url(type_url);
    for (const std::string& name : names)
      request.add_resource_names(name);
    if (last != nullptr) request.set_response_nonce(last->nonce());
    if (last != nullptr && nack.empty()) version = last->version_info();
    request.set_version_info(version);
    if (!nack.empty()) request.mutable_error_detail()->set_message(nack);
    stream->send(request.SerializeAsString());
  }

  DiscoveryResponse response() {
    DiscoveryResponse response;
    REQUIRE(response.ParseFromString(events.next()));
    stream->read_next();
    return response;
  }

  std::string version;  ///< The version of the last response that was accepted; empty: none was.
  Happened<std::string> events;
  std::unique_ptr<AdsTransport::Stream> stream;
};

// A resource file and a transport that follows it.
struct World {
  explicit World(const std::string& text) {
    auto made =
        make_file_ads_transport({.path = folder.write("resources.yaml", text),
                                 .complain = [this](FileTrouble trouble, const std::string& what) {
                                   complaints.add({trouble, what});
                                 }});
    INFO(made.status().ToString());
    REQUIRE(made.ok());
    transport = *std::move(made);
  }

  std::string write(const std::string& text) const { return folder.write("resources.yaml", text); }

  TemporaryFolder folder;
  Happened<Complaint> complaints;
  std::shared_ptr<AdsTransport> transport;
};

}  // namespace

TEST_CASE("file_ads_transport: answers a stream as a server does", "[actors][io][file]") {
  World world(clusters({"a", "b"}));
  CHECK(world.transport->server() == "file:" + world.folder.path("resources.yaml"));
  Client client(*world.transport);
  client.ask(kCds, {"a"});
  CHECK(client.events.next() == "opened");
  const DiscoveryResponse first = client.response();
  CHECK(first.type_url() == kCds);
  CHECK(first.resources_size() == 1);
  client.ask(kCds, {"a", "b"}, &first);
  CHECK(client.response().resources_size() == 2);
}

TEST_CASE("file_ads_transport: says at once what the file lacks, and which file",
          "[actors][io][file][A88]") {
  World world(clusters({"a"}));
  Client client(*world.transport);
  client.ask(kRds, {"routes"});
  CHECK(client.events.next() == "opened");
  const DiscoveryResponse response = client.response();
  CHECK(response.resources_size() == 0);
  REQUIRE(response.resource_errors_size() == 1);
  const auto& error = response.resource_errors(0);
  CHECK(error.resource_name().name() == "routes");
  CHECK(error.error_detail().code() == static_cast<int>(absl::StatusCode::kNotFound));
  const std::string text = "not in " + world.folder.path("resources.yaml");
  CHECK(error.error_detail().message() == text + ", which has no RDS resource");

  client.ask(kCds, {"b"});
  CHECK(client.response().resource_errors(0).error_detail().message() ==
        text + "; its CDS resources are: \"a\"");
}

TEST_CASE("file_ads_transport: pushes what changes to every stream", "[actors][io][file]") {
  World world(clusters({"a"}));
  Client one(*world.transport);
  Client other(*world.transport);
  for (Client* client : {&one, &other}) {
    client->ask(kCds, {"a", "b"});
    CHECK(client->events.next() == "opened");
    CHECK(client->response().resources_size() == 1);
  }
  world.write(clusters({"a", "b"}));
  CHECK(one.response().resources_size() == 2);
  CHECK(other.response().resources_size() == 2);
  world.write(clusters({}));
  CHECK(one.response().resources_size() == 0);
  CHECK(other.response().resource_errors_size() == 2);
}

TEST_CASE("file_ads_transport: a bad file changes nothing, and is complained of",
          "[actors][io][file]") {
  World world(clusters({"a"}));
  Client client(*world.transport);
  client.ask(kCds, {"a", "b"});
  CHECK(client.events.next() == "opened");
  client.response();
  const std::string path = world.folder.path("resources.yaml");

  SECTION("cut off") {
    world.write(clusters({"a", "b"}).substr(0, 40));
    const Complaint complaint = world.complaints.next();
    CHECK(complaint.trouble == FileTrouble::kUnparsable);
    CHECK_THAT(complaint.text, StartsWith(path + ": ") && Contains("line 2"));
    CHECK_THAT(complaint.text, EndsWith("; the last good one is still served"));
  }
  SECTION("empty") {
    world.write("");
    CHECK(world.complaints.next().text ==
          path +
              ": expected one YAML document, found 0; the last good one is still "
              "served");
  }
  SECTION("with one bad resource") {
    world.write(clusters({"a", "b"}) + "- {\"@type\": " + kCds + ", name: c, typo: 1}\n");
    const Complaint complaint = world.complaints.next();
    CHECK(complaint.trouble == FileTrouble::kUnparsable);
    CHECK_THAT(complaint.text, StartsWith(path + ": line 4: resources[2]: ") && Contains("typo"));
  }
  SECTION("gone") {
    std::filesystem::remove(path);
    const Complaint complaint = world.complaints.next();
    CHECK(complaint.trouble == FileTrouble::kUnreadable);
    CHECK(complaint.text == "cannot read " + path +
                                ": No such file or directory; the last good one is still "
                                "served");
  }
  CHECK(client.events.is_empty());
  world.write(clusters({"a", "b"}));
  CHECK(client.response().resources_size() == 2);
  CHECK(world.complaints.is_empty());
}

TEST_CASE("file_ads_transport: a file that is bad for a moment is not complained of",
          "[actors][io][file]") {
  World world(clusters({"a"}));
  Client client(*world.transport);
  client.ask(kCds, {"a", "b"});
  CHECK(client.events.next() == "opened");
  DiscoveryResponse last = client.response();
  // On a slow machine the file may be bad for 100 ms or more. The test then tries again.
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  Names wanted = {"a", "b"};
  for (bool was_a_moment = false; !was_a_moment;) {
    REQUIRE(Clock::now() - begin < test::kPatience);
    while (!world.complaints.is_empty())
      world.complaints.next();
    const auto bad_since = Clock::now();
    world.write("resources: [");
    // The transport has read the bad file before it sends the second response, because the file
    // was bad before the first response.
    for (int i = 0; i < 2; ++i) {
      wanted.insert(absl::StrCat("c", wanted.size()));
      client.ask(kCds, wanted, &last);
      last = client.response();
    }
    const bool is_untold = world.complaints.is_empty();
    world.write(clusters({"a", "b"}) + "# " + absl::StrCat(wanted.size()) + "\n");
    was_a_moment = Clock::now() - bad_since < std::chrono::milliseconds(100);
    if (was_a_moment) CHECK(is_untold);
    if (last.resources_size() == 1) last = client.response();
    // A late complaint about the bad file would arrive within 400 ms.
    while (was_a_moment && Clock::now() - bad_since < std::chrono::milliseconds(400)) {
      wanted.insert(absl::StrCat("c", wanted.size()));
      client.ask(kCds, wanted, &last);
      last = client.response();
    }
  }
  CHECK(world.complaints.is_empty());
}

TEST_CASE("file_ads_transport: what the client refuses is complained of, once for each file",
          "[actors][io][file][A46]") {
  World world(clusters({"a"}));
  Client client(*world.transport);
  client.ask(kCds, {"a"});
  CHECK(client.events.next() == "opened");
  const DiscoveryResponse first = client.response();
  client.ask(kCds, {"a"}, &first, "CDS resource \"a\": bad");
  const Complaint complaint = world.complaints.next();
  CHECK(complaint.trouble == FileTrouble::kInvalidResource);
  CHECK(complaint.text == world.folder.path("resources.yaml") +
                              ": line 2: resources[0]: CDS resource \"a\": bad; it is not used");

  // The same refusal in a request for another name causes no second complaint.
  client.ask(kCds, {"a", "b"}, &first, "CDS resource \"a\": bad");
  const DiscoveryResponse second = client.response();
  CHECK(world.complaints.is_empty());
  // The client refuses the next response, made of the same file, for the same reason: no complaint.
  client.ask(kCds, {"a", "b"}, &second, "CDS resource \"a\": bad");
  world.write(clusters({"a", "b"}));
  const DiscoveryResponse third = client.response();
  CHECK(world.complaints.is_empty());
  client.ask(kCds, {"a", "b"}, &third, "CDS resource \"a\": bad");
  CHECK(world.complaints.next().trouble == FileTrouble::kInvalidResource);

  // Once the client has accepted a version, a complaint says that the last good one is served.
  world.write(clusters({"a"}));
  const DiscoveryResponse fourth = client.response();
  client.ask(kCds, {"a", "b"}, &fourth);
  world.write(clusters({"a", "b"}));
  const DiscoveryResponse fifth = client.response();
  client.ask(kCds, {"a", "b"}, &fifth, "CDS resource \"b\": bad");
  CHECK(world.complaints.next().text ==
        world.folder.path("resources.yaml") +
            ": line 3: resources[1]: CDS resource \"b\": bad; the last good one is still "
            "served");
}

TEST_CASE("file_ads_transport: streams end as the interface says", "[actors][io][file]") {
  World world(clusters({"a"}));
  Client client(*world.transport);
  CHECK(client.events.next() == "opened");
  SECTION("with what is no request, once") {
    client.stream->send("\xff");
    CHECK(client.events.next() == "closed: the bytes are no DiscoveryRequest");
    client.ask(kCds, {"a"});
    world.transport = nullptr;
  }
  SECTION("with the transport") {
    world.transport = nullptr;
    CHECK(client.events.next() == "closed: the transport has ended");
    client.ask(kCds, {"a"});
  }
  SECTION("with the handle, silently") {
    client.stream = nullptr;
    world.write(clusters({"b"}));
    world.transport = nullptr;
  }
  CHECK(client.events.is_empty());
}

TEST_CASE("file_ads_transport: ends while the file changes", "[actors][io][file]") {
  for (int round = 0; round < 30; ++round) {
    World world(clusters({"a"}));
    Client client(*world.transport);
    client.ask(kCds, {"a", "b"});
    for (int i = 0; i <= round % 5; ++i)
      world.write(i % 2 == 0 ? "nonsense" : clusters({"a", "b"}));
    if (round % 2 == 0) client.stream = nullptr;
    world.transport = nullptr;
    world.write(clusters({}));
  }
}

TEST_CASE("file_ads_transport: a bad file is no beginning", "[actors][io][file]") {
  struct Row {
    const char* what;
    std::string text;
    std::string error;  // The error text after the file's path.
  };

  const std::string a = "- {\"@type\": " + kCds + ", name: a}\n";
  const Row rows[] = {
      {"empty", "", ": expected one YAML document, found 0"},
      {"a list", "- 1", ": expected an object with the list \"resources\""},
      {"not YAML", "resources:\n- {", ": line "},
      {"no type", "resources:\n- {name: a}", ": line 2: resources[0]: @type: "},
      {"unknown type",
       "resources:\n- {\"@type\": type.googleapis.com/signalbox.Nothing}",
       ": line 2: resources[0]: @type: \"type.googleapis.com/signalbox.Nothing\" is no resource"},
      {"unknown field",
       "resources:\n" + a + "- {\"@type\": " + kCds + ", name: b, colour: red}",
       ": line 3: resources[1]: "},
      {"no name",
       "resources:\n- {\"@type\": " + kCds + "}",
       ": line 2: resources[0]: envoy.config.cluster.v3.Cluster: name: must not be empty"},
      {"twice the same name",
       "resources:\n" + a + a,
       ": line 3: resources[1]: envoy.config.cluster.v3.Cluster \"a\" occurs twice"},
  };
  const TemporaryFolder folder;
  for (const Row& row : rows) {
    INFO(row.what);
    const std::string path = folder.write("resources.yaml", row.text);
    const auto made = make_file_ads_transport({.path = path, .complain = {}});
    CHECK(absl::IsInvalidArgument(made.status()));
    CHECK_THAT(std::string(made.status().message()), StartsWith(path + row.error));
  }
  const auto none = make_file_ads_transport({.path = folder.path("none"), .complain = {}});
  CHECK(none.status().message() ==
        "cannot read " + folder.path("none") + ": No such file or directory");
}

}  // namespace signalbox::actors
