// SPDX-License-Identifier: Apache-2.0
#include "channel/target.hpp"

#include <catch2/catch.hpp>

#include "actors/io/ads_transport.hpp"
#include "metrics/instruments.hpp"
#include "tests/support/decode_at_once.hpp"
#include "tests/support/printed.hpp"

namespace signalbox::channel {
namespace {

class NoTransport final : public actors::AdsTransport {
 public:
  std::unique_ptr<Stream> open(Events) override { return nullptr; }

  const std::string& server() const override { return name_; }

 private:
  const std::string name_ = "server";
};

actors::EnvironmentPtr environment(const actors::ReclaimerThread& reclaimer) {
  actors::Environment made;
  made.ads_transports = {std::make_shared<NoTransport>()};
  made.instruments = std::make_shared<metrics::Instruments>();
  made.reclaimer = reclaimer.handle();
  made.make_decoder = [](ServerId) -> xds::ResponseDecoder {
    return xds::decode_at_once(
        [](absl::string_view) { return absl::UnimplementedError("nothing is received"); });
  };
  return std::make_shared<const actors::Environment>(std::move(made));
}

}  // namespace

TEST_CASE("target: the watchers of channels that are gone are forgotten", "[channel][target]") {
  const auto target = std::make_shared<Target>();
  auto channel = std::make_shared<int>(0);
  const auto held = std::make_shared<int>(0);
  target->watch(channel, [held] {});
  CHECK(held.use_count() == 2);
  channel.reset();
  channel = std::make_shared<int>(0);
  target->watch(channel, [] {});
  CHECK(held.use_count() == 1);
}

TEST_CASE("target: one that ends after the host has nothing to do with it", "[channel][target]") {
  const actors::ReclaimerThread reclaimer;
  auto host = std::make_unique<actors::Host>(environment(reclaimer), 1);
  const auto link = std::make_shared<HostLink>(*host);
  bool used = false;
  link->with([&](actors::Host& there) { used = &there == host.get(); });
  CHECK(used);

  auto target = std::make_shared<Target>();
  actors::ChannelPort port;
  port.target = "xds:///orders";
  target->open(link, std::move(port));
  link->cut();
  host.reset();
  link->with([&](actors::Host&) { used = false; });
  CHECK(used);
  CHECK(target->state(true) == ConnectivityState::kConnecting);
  target->published(ConnectivityState::kReady);
  CHECK(target->state(false) == ConnectivityState::kReady);
  target.reset();
}

}  // namespace signalbox::channel
