// SPDX-License-Identifier: Apache-2.0
#include "tools/control_plane.hpp"

#include <charconv>
#include <deque>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include <grpc/grpc.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "messages/invariant.hpp"

namespace signalbox::tools {
namespace {

constexpr absl::string_view kMethod =
    "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
constexpr int kMaxRequestBytes = 64 * 1024 * 1024;  // More than ten thousand resource names fit.

grpc::ByteBuffer to_buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string to_bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const auto& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

// The answer to a call of a method that is neither kMethod nor one of OtherMethods.
class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const std::string& method) {
    Finish({grpc::StatusCode::UNIMPLEMENTED, absl::StrCat("no such method: ", method)});
  }

  void OnDone() override { delete this; }
};

std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

int port_of(const std::string& address) {
  const auto colon = address.rfind(':');
  int port = -1;
  if (colon == std::string::npos) return port;
  const char* const end = address.data() + address.size();
  const auto parsed = std::from_chars(address.data() + colon + 1, end, port);
  return parsed.ec == std::errc() && parsed.ptr == end ? port : -1;
}

}  // namespace

// One client's stream. The control plane's mutex guards its fields. Operations are started under
// that mutex. This is safe, because gRPC never calls back from within the function that starts an
// operation.
class AdsStream final : public grpc::ServerGenericBidiReactor {
 public:
  explicit AdsStream(ControlPlane& plane) : plane_(plane) {
    const std::lock_guard lock(plane_.mutex_);
    id_ = plane_.core_.open_stream();
    plane_.streams_.emplace(id_, this);
    plane_.changed_.notify_all();
    StartRead(&incoming_);
  }

  // Precondition: plane_.mutex_ is held.
  void send(const std::string& bytes) {
    if (end_) return;
    outgoing_.push_back(to_buffer(bytes));
    if (outgoing_.size() == 1) StartWrite(&outgoing_.front());
  }

  void OnReadDone(bool ok) override {
    const std::lock_guard lock(plane_.mutex_);
    if (!ok) return end(grpc::Status::OK);
    auto responses = plane_.core_.receive(id_, to_bytes(incoming_));
    plane_.changed_.notify_all();
    if (!responses.ok()) {
      return end({grpc::StatusCode::INVALID_ARGUMENT, std::string(responses.status().message())});
    }
    plane_.send(*responses);
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard lock(plane_.mutex_);
    outgoing_.pop_front();
    if (!ok) outgoing_.clear();
    if (!outgoing_.empty()) {
      StartWrite(&outgoing_.front());
    } else if (end_) {
      Finish(*end_);
    }
  }

  void OnDone() override {
    {
      const std::lock_guard lock(plane_.mutex_);
      plane_.core_.close_stream(id_);
      plane_.streams_.erase(id_);
      plane_.changed_.notify_all();
    }
    delete this;
  }

 private:
  // Called at most once. gRPC requires that the write in progress ends before Finish().
  void end(grpc::Status status) {
    end_ = std::move(status);
    if (outgoing_.empty()) Finish(*end_);
  }

  ControlPlane& plane_;
  xds::StreamId id_ = 0;
  grpc::ByteBuffer incoming_;
  std::deque<grpc::ByteBuffer> outgoing_;  // The first of them is being written.
  std::optional<grpc::Status> end_;
};

class AdsService final : public grpc::CallbackGenericService {
 public:
  explicit AdsService(ControlPlane& plane) : plane_(plane) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (context->method() == kMethod) return new AdsStream(plane_);
    if (plane_.others_) {
      if (auto* const other = plane_.others_(context->method())) return other;
    }
    return new Refusal(context->method());
  }

 private:
  ControlPlane& plane_;
};

absl::StatusOr<std::unique_ptr<ControlPlane>> ControlPlane::start(const std::string& address,
                                                                  OtherMethods others) {
  if (port_of(address) < 0 || port_of(address) > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", address, "\" is no address to listen on; expected host:port"));
  }
  std::unique_ptr<ControlPlane> plane(new ControlPlane(address, std::move(others)));
  if (absl::Status status = plane->listen(); !status.ok()) return status;
  return plane;
}

ControlPlane::ControlPlane(const std::string& address, OtherMethods others)
    : host_(host_of(address)), others_(std::move(others)), port_(port_of(address)) {}

ControlPlane::~ControlPlane() {
  stop();
}

std::string ControlPlane::address() const {
  const std::lock_guard lock(mutex_);
  return absl::StrCat(host_, ":", port_);
}

void ControlPlane::set_resources(const std::vector<xds::ResourceBytes>& resources) {
  const std::lock_guard lock(mutex_);
  send(core_.replace(resources));
}

void ControlPlane::update(const std::vector<xds::ResourceBytes>& resources) {
  const std::lock_guard lock(mutex_);
  send(core_.update(resources));
}

void ControlPlane::remove(absl::string_view type_url, absl::string_view name) {
  const std::lock_guard lock(mutex_);
  send(core_.remove(type_url, name));
}

void ControlPlane::stop() {
  if (server_ == nullptr) return;
  // A deadline in the past cuts calls instead of waiting for them.
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_.reset();
}

absl::Status ControlPlane::start_again() {
  SIGNALBOX_INVARIANT(server_ == nullptr, "a control plane starts again after it stopped");
  return listen();
}

DiscoveryRecord ControlPlane::record() const {
  const std::lock_guard lock(mutex_);
  return core_.record();
}

bool ControlPlane::wait_for(const std::function<bool(const DiscoveryRecord&)>& predicate,
                            std::chrono::milliseconds at_most) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, at_most, [&] { return predicate(core_.record()); });
}

absl::Status ControlPlane::listen() {
  const std::string wanted = absl::StrCat(host_, ":", port_);
  grpc::ServerBuilder builder;
  int bound = 0;
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.AddListeningPort(wanted, grpc::InsecureServerCredentials(), &bound);
  auto service = std::make_unique<AdsService>(*this);
  builder.RegisterCallbackGenericService(service.get());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || bound == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", wanted, ": is the address in use?"));
  }
  const std::lock_guard lock(mutex_);
  port_ = bound;
  service_ = std::move(service);
  server_ = std::move(server);
  return absl::OkStatus();
}

// Precondition: mutex_ is held.
void ControlPlane::send(const xds::OutgoingResponses& responses) {
  for (const auto& response : responses) {
    const auto stream = streams_.find(response.stream);
    if (stream != streams_.end()) stream->second->send(response.bytes);
  }
}

}  // namespace signalbox::tools
