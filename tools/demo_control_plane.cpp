// SPDX-License-Identifier: Apache-2.0
#include "tools/demo_control_plane.hpp"

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include <nlohmann/json.hpp>
#include <signal.h>
#include <unistd.h>

#include "tools/settings.hpp"

namespace signalbox::tools {
namespace {

constexpr auto kPlaneStartTime = std::chrono::seconds(20);
constexpr auto kPlaneEndTime = std::chrono::seconds(5);

constexpr absl::string_view kFolderPrefix = "signalbox-resources-";

// Not 127.0.0.1: other connections of this machine come from there, and one of them could take the
// port while the control plane is away.
constexpr const char* kFirstAddress = "127.0.0.10:0";

}  // namespace

DemoControlPlane::DemoControlPlane()
    : folder_(LockedFolder::make(kFolderPrefix)), address_(kFirstAddress) {}

DemoControlPlane::~DemoControlPlane() {
  if (process_) {
    process_->send_signal(SIGTERM);
    resume();  // A stopped process does not react to SIGTERM.
    process_->wait(kPlaneEndTime).IgnoreError();
  }
}

absl::Status DemoControlPlane::write_resources(const std::string& text) {
  if (!folder_.ok()) return folder_.status();
  const std::string path = folder_->path() + "/resources.json";
  // Renamed when complete: the process never reads half a file.
  const std::string next = path + ".next";
  std::ofstream file(next);
  file << text << std::flush;
  std::error_code error;
  if (file) std::filesystem::rename(next, path, error);
  if (!file || error) return absl::InternalError(absl::StrCat("cannot write ", path));
  return absl::OkStatus();
}

absl::Status DemoControlPlane::start() {
  if (!folder_.ok()) return folder_.status();
  auto process = ChildProcess::start({own_program(),
                                      "serve",
                                      "--resources",
                                      folder_->path() + "/resources.json",
                                      "--listen",
                                      address_,
                                      "--parent",
                                      std::to_string(::getpid())},
                                     {.without = settings_of("serve")});
  if (!process.ok()) return process.status();
  process_ = *std::move(process);
  const auto line = process_->read_line(kPlaneStartTime);
  if (!line.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the control plane did not start: ", line.status().message()));
  }
  const auto ready = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
  if (!ready.is_object()) return absl::InternalError("the control plane names no address");
  address_ = ready.value("address", "");
  return absl::OkStatus();
}

void DemoControlPlane::kill() {
  process_->send_signal(SIGKILL);
  process_.reset();  // Waits for the process's end.
}

void DemoControlPlane::stop() {
  process_->send_signal(SIGSTOP);
}

void DemoControlPlane::resume() {
  process_->send_signal(SIGCONT);
}

}  // namespace signalbox::tools
