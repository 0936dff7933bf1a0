// SPDX-License-Identifier: Apache-2.0
#include "actors/load_watches.hpp"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>

namespace signalbox::actors {
namespace {

using namespace std::chrono_literals;
using Texts = std::vector<std::string>;

// Records the beginnings and ends of watches in their order.
class Notes final : public LoadStreams {
 public:
  std::unique_ptr<Watch> watch(const ConnectionPtr& connection,
                               Duration period,
                               LoadListenerPtr /*listener*/) override {
    return std::make_unique<Noted>(
        texts, absl::StrCat(connection->address().str(), " ", period / 1s, "s"));
  }

  Texts take() { return std::exchange(texts, {}); }

  Texts texts;

 private:
  struct Noted final : Watch {
    Noted(Texts& into, std::string of) : texts(into), name(std::move(of)) {
      texts.push_back("begin " + name);
    }

    ~Noted() override { texts.push_back("end " + name); }

    Texts& texts;
    const std::string name;
  };
};

class Listener final : public LoadListener {
 public:
  void reported(const LoadReport& /*report*/, Instant /*now*/) const noexcept override {}
};

WatchLoad::Entry entry(const std::string& address) {
  return {std::make_shared<const Connection>(Address(address)), std::make_shared<const Listener>()};
}

}  // namespace

TEST_CASE("load_watches: watches what the newest order has, and the new before the old ends",
          "[actors][A58]") {
  const auto a = entry("a");
  const auto b = entry("b");
  Notes streams;
  {
    LoadWatches watches;
    watches.set(&streams, {10s, {a}});
    CHECK(streams.take() == Texts{"begin a 10s"});
    watches.set(&streams, {10s, {a, b}});
    CHECK(streams.take() == Texts{"begin b 10s"});
    watches.set(&streams, {10s, {b}});
    CHECK(streams.take() == Texts{"end a 10s"});
    watches.set(&streams, {2s, {b}});
    CHECK(streams.take() == Texts{"begin b 2s", "end b 10s"});
    // Endpoint b has a new connection in place of the old one.
    const WatchLoad::Entry again{entry("b").connection, b.listener};
    watches.set(&streams, {2s, {again}});
    CHECK(streams.take() == Texts{"begin b 2s", "end b 2s"});
    watches.set(&streams, {});
    CHECK(streams.take() == Texts{"end b 2s"});
    watches.set(&streams, {2s, {a}});
    streams.take();
  }
  CHECK(streams.take() == Texts{"end a 2s"});
}

TEST_CASE("load_watches: without streams nothing is watched", "[actors][A58]") {
  LoadWatches watches;
  CHECK_NOTHROW(watches.set(nullptr, {10s, {entry("a")}}));
}

}  // namespace signalbox::actors
