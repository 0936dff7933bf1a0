// SPDX-License-Identifier: Apache-2.0
#include "tools/load/stage.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/commands.hpp"
#include "tools/load/file_limit.hpp"

namespace signalbox::tools {
namespace {

// A process of the script that ends so soon after start() has launched it is an error.
constexpr auto kFirstLook = std::chrono::milliseconds(300);
constexpr int kCannotRun = 127;  // As in shells: the command cannot be run.

int signal_of(Verb verb) {
  switch (verb) {
    case Verb::kTerm:
      return SIGTERM;
    case Verb::kStop:
      return SIGSTOP;
    case Verb::kCont:
      return SIGCONT;
    default:
      return SIGKILL;
  }
}

absl::StatusOr<pid_t> read_pid(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  pid_t pid = 0;
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot read a number"));
  if (!absl::SimpleAtoi(word, &pid) || pid <= 1 || pid == ::getpid() || pid == ::getppid())
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": '", word, "' is no process that may be signalled"));
  return pid;
}

// Looks for `program` where execvp() would.
absl::Status check_program(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::vector<std::string> candidates{program};
  if (!absl::StrContains(program, '/')) {
    candidates = absl::StrSplit(path == nullptr ? "/bin:/usr/bin" : path, ':');
    for (std::string& folder : candidates)
      folder = absl::StrCat(folder.empty() ? "." : folder, "/", program);
  }
  const bool is_found = std::ranges::any_of(candidates, [](const std::string& candidate) {
    return ::access(candidate.c_str(), X_OK) == 0;
  });
  if (is_found) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(program, " cannot be run: ", std::strerror(errno)));
}

absl::StatusOr<ChildProcess> start_command(const std::vector<std::string>& command, rlim_t files) {
  if (auto status = check_program(command.front()); !status.ok()) return status;
  std::vector<std::string> words{own_program(),
                                 "launch",
                                 "--parent",
                                 std::to_string(::getpid()),
                                 "--files",
                                 std::to_string(files),
                                 "--"};
  words.insert(words.end(), command.begin(), command.end());
  return ChildProcess::start(words, {});
}

}  // namespace

// A process, held by a pidfd. If the kernel gives the process's pid to another process later, that
// other process gets no signal.
class LoadStage::Pidfd {
 public:
  static absl::StatusOr<std::unique_ptr<Pidfd>> open(const std::string& path) {
    const auto pid = read_pid(path);
    if (!pid.ok()) return pid.status();
    // Not pidfd_open(): Debian's <sys/pidfd.h> declares it without C linkage.
    const int handle = static_cast<int>(::syscall(SYS_pidfd_open, *pid, 0));
    if (handle < 0)
      return absl::NotFoundError(
          absl::StrCat(path, ": process ", *pid, ": ", std::strerror(errno)));
    return std::unique_ptr<Pidfd>(new Pidfd(handle, absl::StrCat(path, ": process ", *pid)));
  }

  ~Pidfd() { ::close(handle_); }

  Pidfd(const Pidfd&) = delete;
  Pidfd& operator=(const Pidfd&) = delete;

  /// Signal 0 only asks whether the process may be signalled.
  absl::Status send(int signal) const {
    if (::syscall(SYS_pidfd_send_signal, handle_, signal, nullptr, 0) == 0) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(name_, ": ", std::strerror(errno)));
  }

 private:
  Pidfd(int handle, std::string name) : handle_(handle), name_(std::move(name)) {}

  int handle_;
  std::string name_;
};

// The proxies need two files for each connection.
LoadStage::LoadStage(const Script& script) : script_(script), files_(raise_file_limit()) {}

LoadStage::~LoadStage() {
  for (const auto& [name, process] : stopped_)
    process->send(SIGCONT).IgnoreError();  // It may have ended.
}

absl::Status LoadStage::serve(DrainedResources resources) {
  for (const Act& act : script_.acts) {
    if (act.verb != Verb::kDrain && act.verb != Verb::kUndrain && !needs_proxy(act.verb)) continue;
    for (const std::string& address : act.words) {
      if (auto status = resources.drain(address, false); !status.ok())
        return absl::InvalidArgumentError(absl::StrCat(act.name, ": ", status.message()));
    }
  }
  if (auto status = lead_through_proxies(resources); !status.ok()) return status;
  resources_ = std::move(resources);
  control_plane_ = std::make_unique<DemoControlPlane>();
  if (auto status = control_plane_->write_resources(resources_->text()); !status.ok())
    return status;
  if (auto status = control_plane_->start(); !status.ok()) return status;
  is_served_ = true;
  return absl::OkStatus();
}

absl::Status LoadStage::start() {
  for (const auto& [name, process] : script_.processes) {
    if (process.command.empty()) {
      const auto opened = Pidfd::open(process.pidfile);
      const absl::Status status = opened.ok() ? (*opened)->send(0) : opened.status();
      if (!status.ok())
        return absl::InvalidArgumentError(absl::StrCat("process ", name, ": ", status.message()));
    } else if (auto status = launch(name); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("process ", name, ": ", status.message()));
    }
  }
  const auto until = std::chrono::steady_clock::now() + kFirstLook;
  for (auto& [name, process] : processes_) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const auto ended = process->wait(std::max(left, std::chrono::milliseconds(0)));
    if (ended.ok())
      return absl::InvalidArgumentError(absl::StrCat(
          "process ",
          name,
          ": ",
          script_.processes.at(name).command.front(),
          *ended == kCannotRun ? " cannot be run" : absl::StrCat(" ended with ", *ended)));
  }
  return absl::OkStatus();
}

std::string LoadStage::bootstrap() const {
  if (control_plane_ == nullptr) return "";
  return nlohmann::json{{"xds_servers",
                         {{{"server_uri", control_plane_->address()},
                           {"channel_creds", {{{"type", "insecure"}}}},
                           {"server_features", {"xds_v3"}}}}},
                        {"node", {{"id", "signalbox-load"}}}}
      .dump();
}

absl::Status LoadStage::act(const Act& act) {
  switch (act.verb) {
    case Verb::kMark:
      return absl::OkStatus();
    case Verb::kExec:
      return run(act);
    case Verb::kDrain:
      return drain(act.words, true);
    case Verb::kUndrain:
      return drain(act.words, false);
    case Verb::kDelay:
    case Verb::kBandwidth:
    case Verb::kBlackhole:
    case Verb::kReset:
    case Verb::kClear:
      harm(act);
      return absl::OkStatus();
    default:
      for (const std::string& name : act.words) {
        if (auto status = act_on_process(act.verb, name); !status.ok()) return status;
      }
      return absl::OkStatus();
  }
}

absl::Status LoadStage::launch(const std::string& name) {
  auto started = start_command(script_.processes.at(name).command, files_);
  if (!started.ok()) return started.status();
  processes_.insert_or_assign(name, *std::move(started));
  return absl::OkStatus();
}

absl::Status LoadStage::act_on_process(Verb verb, const std::string& name) {
  if (name == kControlPlaneName) return act_on_control_plane(verb);
  const ScriptProcess& process = script_.processes.at(name);
  if (process.command.empty()) return signal_pidfile(name, process.pidfile, signal_of(verb));
  std::optional<ChildProcess>& child = processes_[name];
  if (verb == Verb::kRestart) {
    child.reset();  // Kills and reaps what runs.
    return launch(name);
  }
  if (!child || child->wait(std::chrono::milliseconds(0)).ok())
    return absl::FailedPreconditionError(absl::StrCat(name, " does not run"));
  child->send_signal(signal_of(verb));
  return absl::OkStatus();
}

absl::Status LoadStage::signal_pidfile(const std::string& name,
                                       const std::string& path,
                                       int signal) {
  auto opened = Pidfd::open(path);
  if (!opened.ok()) return opened.status();
  if (auto status = (*opened)->send(signal); !status.ok()) return status;
  if (signal == SIGSTOP)
    stopped_[name] = *std::move(opened);
  else if (signal == SIGCONT)
    stopped_.erase(name);
  return absl::OkStatus();
}

absl::Status LoadStage::act_on_control_plane(Verb verb) {
  if (verb == Verb::kRestart) {
    if (is_served_) control_plane_->kill();
    is_served_ = false;
    if (auto status = control_plane_->start(); !status.ok()) return status;
    is_served_ = true;
    return absl::OkStatus();
  }
  if (!is_served_) return absl::FailedPreconditionError("the control plane does not run");
  if (verb == Verb::kStop) {
    control_plane_->stop();
  } else if (verb == Verb::kCont) {
    control_plane_->resume();
  } else {
    control_plane_->kill();
    is_served_ = false;
  }
  return absl::OkStatus();
}

absl::Status LoadStage::drain(const std::vector<std::string>& addresses, bool is_draining) {
  for (const std::string& address : addresses) {
    if (auto status = resources_->drain(address, is_draining); !status.ok()) return status;
  }
  return control_plane_->write_resources(resources_->text());
}

absl::Status LoadStage::lead_through_proxies(DrainedResources& resources) {
  for (const Act& act : script_.acts) {
    if (!needs_proxy(act.verb)) continue;
    for (const std::string& endpoint : act.words) {
      if (proxies_.contains(endpoint)) continue;
      auto proxy = FaultProxy::start(endpoint);
      if (!proxy.ok()) return proxy.status();
      resources.lead(endpoint, (*proxy)->address());
      proxies_[endpoint].proxy = *std::move(proxy);
    }
  }
  return absl::OkStatus();
}

void LoadStage::harm(const Act& act) {
  for (const std::string& endpoint : act.words) {
    Proxied& proxied = proxies_.at(endpoint);
    if (act.verb == Verb::kDelay)
      proxied.harm.delay = std::chrono::nanoseconds(static_cast<std::int64_t>(act.amount));
    else if (act.verb == Verb::kBandwidth)
      proxied.harm.bytes_per_second = act.amount;
    else if (act.verb == Verb::kBlackhole)
      proxied.harm.is_blackhole = true;
    else if (act.verb == Verb::kReset)
      proxied.harm.is_reset = true;
    else
      proxied.harm = {};
    proxied.proxy->set(proxied.harm);
  }
}

std::map<std::string, std::string> LoadStage::proxied() const {
  std::map<std::string, std::string> endpoints;
  for (const auto& [endpoint, proxied] : proxies_)
    endpoints[proxied.proxy->address()] = endpoint;
  return endpoints;
}

absl::Status LoadStage::run(const Act& act) {
  auto started = start_command(act.words, files_);
  if (!started.ok()) return started.status();
  runs_.insert_or_assign(act.name, *std::move(started));
  return absl::OkStatus();
}

std::map<std::string, std::string> LoadStage::failed_runs() {
  std::map<std::string, std::string> failed;
  for (auto& [name, process] : runs_) {
    const auto ended = process.wait(std::chrono::milliseconds(0));
    if (!ended.ok())
      failed[name] = "still ran at the end, and was killed";
    else if (*ended != 0)
      failed[name] = absl::StrCat("ended with ", *ended);
  }
  return failed;
}

int launch_command(pid_t parent, rlim_t files, const std::vector<std::string>& command) {
  die_with_parent(parent);
  set_file_limit(files);
  ::signal(SIGXFSZ, SIG_DFL);  // This program ignores it, and exec keeps that.
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) ::dup2(nowhere, STDOUT_FILENO);
  std::vector<std::string> words = command;
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  ::execvp(pointers[0], pointers.data());
  say("load", absl::StrCat("cannot run ", command.front(), ": ", std::strerror(errno)));
  return kCannotRun;
}

}  // namespace signalbox::tools
