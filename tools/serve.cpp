// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "actors/io/watched_file.hpp"
#include "tools/child_process.hpp"
#include "tools/commands.hpp"
#include "tools/control_plane.hpp"
#include "tools/stop_signals.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::tools {
namespace {

// Says nothing when another command, such as the demo, has started this process (--parent), because
// that command prints its own report.
void say_what_is_served(const ServeOptions& options, std::size_t resources) {
  if (options.parent > 0) return;
  say("serve", absl::StrCat(options.resources, ": ", resources, " resources"), LogLevel::kInfo);
}

void serve_text(const ServeOptions& options, const actors::WatchedFile& file, ControlPlane& plane) {
  const auto resources =
      xds::parse_resources_text(file.text(), xds::format_of(file.path()), file.path());
  if (!resources.ok()) {
    say("serve", absl::StrCat(resources.status().message(), "; the last good one is still served"));
    return;
  }
  plane.set_resources(*resources);
  say_what_is_served(options, resources->size());
}

void take_change(const ServeOptions& options, actors::WatchedFile& file, ControlPlane& plane) {
  const auto change = file.read_change();
  if (!change.ok()) {
    say("serve", absl::StrCat(change.status().message(), "; the last good one is still served"));
  } else if (change->has_value()) {
    serve_text(options, file, plane);
  }
}

// Reads and serves the file whether or not it has changed.
void read_again(const ServeOptions& options, actors::WatchedFile& file, ControlPlane& plane) {
  const absl::Status status = file.read_again();
  if (!status.ok())
    say("serve", absl::StrCat(status.message(), "; the last good one is still served"));
  else
    serve_text(options, file, plane);
}

// Whether the signal ends the command. SIGHUP ends it only when its terminal has closed.
bool ends(int signal, const Terminals& terminals) {
  return signal != SIGHUP || terminals.has_closed();
}

// Serves changes of the file until a signal comes that ends() the command. A file that could not be
// watched is tried again every second.
void follow(const ServeOptions& options, actors::WatchedFile& file, ControlPlane& plane, int stop) {
  constexpr int kForever = -1;
  constexpr int kRetryMs = 1'000;
  const Terminals terminals;
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{file.descriptor(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), file.is_watched() ? kForever : kRetryMs);
    if (ready < 0) continue;
    while (const auto signal = take_signal(stop)) {
      if (ends(*signal, terminals)) return;
      read_again(options, file, plane);
    }
    if (fds[0].revents != 0 || !file.is_watched()) take_change(options, file, plane);
  }
}

}  // namespace

int run_serve(const ServeOptions& options) {
  block_stop_signals();
  if (options.parent > 0) die_with_parent(options.parent);

  auto file = actors::WatchedFile::open(options.resources);
  if (!file.ok()) {
    say("serve", file.status().message());
    return kExitUsage;
  }
  const auto resources =
      xds::parse_resources_text(file->text(), xds::format_of(file->path()), file->path());
  if (!resources.ok()) {
    say("serve", resources.status().message());
    return kExitUsage;
  }
  const int stop = open_stop_descriptor();
  const auto plane = ControlPlane::start(options.listen);
  if (stop < 0 || !plane.ok()) {
    say("serve", stop < 0 ? "cannot wait for signals" : plane.status().message());
    return kExitUsage;
  }
  (*plane)->set_resources(*resources);
  say_what_is_served(options, resources->size());
  std::cout << nlohmann::json{{"address", (*plane)->address()}, {"pid", ::getpid()}}.dump()
            << std::endl;

  follow(options, *file, **plane, stop);
  ::close(stop);
  return kExitOk;
}

}  // namespace signalbox::tools
