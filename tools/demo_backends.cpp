// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_backends.hpp"

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "tools/settings.hpp"

namespace signalbox::tools {
namespace {

constexpr auto kStartTime = std::chrono::seconds(20);
constexpr auto kEndTime = std::chrono::seconds(5);

// The port in the line that a backend prints when it is ready; 0 if there is none.
int port_in(const std::string& line) {
  const auto ready = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!ready.is_object() || !ready.contains("address")) return 0;
  const std::string address = ready["address"];
  return std::atoi(address.c_str() + address.rfind(':') + 1);
}

}  // namespace

std::string backend_ip(const std::string& host) {
  return host.find_first_not_of("0123456789.") == std::string::npos ? host : "127.0.0.1";
}

DemoBackends::DemoBackends(const std::vector<BackendPlace>& places) {
  for (const auto& place : places) {
    backends_.push_back(
        {.place = place, .ip = backend_ip(place.host), .port = 0, .process = std::nullopt});
  }
}

DemoBackends::~DemoBackends() {
  for (Backend& backend : backends_) {
    if (backend.process) backend.process->send_signal(SIGTERM);
  }
  for (Backend& backend : backends_) {
    // The destructor of ChildProcess kills a backend that ignores SIGTERM.
    if (backend.process) backend.process->wait(kEndTime).IgnoreError();
  }
}

absl::Status DemoBackends::start(const std::string& cluster,
                                 const std::function<void()>& on_first) {
  for (Backend& backend : backends_) {
    if (backend.place.cluster != cluster) continue;
    if (auto status = launch(backend); !status.ok()) return status;
  }
  bool first = true;
  for (Backend& backend : backends_) {
    if (backend.place.cluster != cluster) continue;
    if (auto status = await(backend); !status.ok()) return status;
    if (std::exchange(first, false)) on_first();
  }
  return absl::OkStatus();
}

void DemoBackends::kill(const std::string& cluster) {
  for (Backend& backend : backends_) {
    if (backend.place.cluster == cluster && backend.process) backend.process->send_signal(SIGKILL);
  }
  for (Backend& backend : backends_) {
    if (backend.place.cluster == cluster) backend.process.reset();  // Waits for the process's end.
  }
}

void DemoBackends::kill_one(const std::string& name) {
  for (Backend& backend : backends_) {
    if (backend.place.name != name || !backend.process) continue;
    backend.process->send_signal(SIGKILL);
    backend.process.reset();  // Waits for the process's end.
  }
}

std::string DemoBackends::address_of(const std::string& name) const {
  for (const Backend& backend : backends_) {
    if (backend.place.name == name) return address_of(backend);
  }
  return "";
}

std::set<std::string> DemoBackends::addresses(const std::string& cluster) const {
  std::set<std::string> addresses;
  for (const Backend& backend : backends_) {
    if (backend.place.cluster == cluster) {
      addresses.insert(address_of(backend));
    }
  }
  return addresses;
}

std::map<std::string, int> DemoBackends::ports() const {
  std::map<std::string, int> ports;
  for (const Backend& backend : backends_)
    ports.emplace(backend.place.name, backend.port);
  return ports;
}

std::string DemoBackends::address_of(const Backend& backend) {
  return absl::StrCat(backend.ip, ":", backend.port);
}

absl::Status DemoBackends::launch(Backend& backend) {
  auto process = ChildProcess::start({own_program(),
                                      "backend",
                                      "--listen",
                                      absl::StrCat(backend.ip, ":", backend.port),
                                      "--name",
                                      backend.place.name,
                                      "--cluster",
                                      backend.place.cluster,
                                      "--parent",
                                      std::to_string(::getpid())},
                                     {.without = settings_of("backend")});
  if (!process.ok()) return process.status();
  backend.process = *std::move(process);
  return absl::OkStatus();
}

absl::Status DemoBackends::await(Backend& backend) {
  const auto line = backend.process->read_line(kStartTime);
  if (!line.ok()) {
    return absl::UnavailableError(
        absl::StrCat("backend ", backend.place.name, " did not start: ", line.status().message()));
  }
  backend.port = port_in(*line);
  if (backend.port == 0) {
    return absl::InternalError(
        absl::StrCat("backend ", backend.place.name, " names no port: ", *line));
  }
  return absl::OkStatus();
}

}  // namespace signalbox::tools
