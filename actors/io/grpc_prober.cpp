// SPDX-License-Identifier: Apache-2.0
//
// Answers come from the poller's thread or from a thread of gRPC's executor, with no lock held, and
// never from a callback of the connector. The receiver of an answer may begin other probes, and
// begin() waits for running callbacks of the probes' attempts: two such callbacks could wait for
// each other.
#include "actors/io/grpc_prober.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include "actors/io/grpc_bytes.hpp"
#include "actors/io/grpc_connector.hpp"
#include "actors/io/grpc_poller.hpp"
#include "actors/io/lost_connection.hpp"
#include "messages/header_rules.hpp"
#include "xds/health_message.hpp"

namespace signalbox::actors {
namespace {

const char kCheckMethod[] = "/grpc.health.v1.Health/Check";

/// The request, its authority and its time limit.
struct Question {
  std::string request;
  std::string authority;  ///< The :authority of the call; empty: the connection's authority.
  Duration timeout{};
};

Question question_of(const HealthProber::Target& target, const HealthCheck& check) {
  const auto& grpc = std::get<HealthCheck::Grpc>(check.probe);
  Question question{xds::health_request(grpc.service_name),
                    grpc.authority,
                    std::min<Duration>(check.timeout, std::chrono::hours(24))};
  // The cluster's name is used only if it can be the value of a header: printable ASCII.
  if (question.authority.empty() && is_header_value("", target.cluster.str()))
    question.authority = target.cluster.str();
  return question;
}

ProbeAnswer answer_of(const grpc::Status& status, const grpc::ByteBuffer& response) {
  if (status.ok()) {
    if (xds::is_serving(to_bytes(response))) return {ProbeOutcome::kPassed, "", false};
    return {ProbeOutcome::kRefused, "the server does not say SERVING", false};
  }
  const bool is_no_answer = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                            status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                            status.error_code() == grpc::StatusCode::CANCELLED;
  return {
      is_no_answer ? ProbeOutcome::kFailed : ProbeOutcome::kRefused, status.error_message(), false};
}

/// The calls and the connection of one probe. A Conversation outlives its Probe while a call or an
/// alarm is in progress.
class Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  explicit Conversation(Question question) : question_(std::move(question)) {}

  /// Starts the call if there is a connection, and returns true. False: the caller must connect.
  bool ask(HealthProber::Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    if (connection_ != nullptr) call();
    return connection_ != nullptr;
  }

  void connected(ConnectionPtr connection) {
    const std::lock_guard lock(mutex_);
    if (is_given_up_) return;
    connection_ = std::move(connection);
    call();
  }

  void failed(const absl::Status& why) {
    // An alarm that is due now brings the answer to the poller's thread (see the top of this file).
    struct Later final : GrpcPoller::Tag {
      std::shared_ptr<Conversation> conversation;
      ProbeAnswer answer;
      grpc::Alarm alarm;

      void done(bool /*ok*/) override {
        const std::unique_ptr<Later> self(this);
        conversation->tell(std::move(answer));
      }
    };

    auto* const later = new Later;
    later->conversation = shared_from_this();
    later->answer = {ProbeOutcome::kFailed, std::string(why.message()), false};
    later->alarm.Set(&interest_.queue(), gpr_now(GPR_CLOCK_MONOTONIC), later);
  }

  /// The connection was closed. A call in progress ends by itself.
  void closed() {
    const std::lock_guard lock(mutex_);
    connection_ = nullptr;
  }

  void give_up() {
    const std::lock_guard lock(mutex_);
    is_given_up_ = true;
    answer_ = nullptr;
    connection_ = nullptr;
    if (call_ != nullptr) call_->context.TryCancel();
  }

 private:
  struct Call final : GrpcPoller::Tag {
    std::shared_ptr<Conversation> conversation;
    std::shared_ptr<const GrpcConnection> connection;
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
    grpc::ByteBuffer response;
    grpc::Status status;

    void done(bool /*ok*/) override {
      const std::unique_ptr<Call> self(this);
      conversation->ended(*this);
    }
  };

  // Starts the health check's call. Precondition: the mutex is held, and there is a connection.
  void call() {
    call_ = new Call;
    call_->conversation = shared_from_this();
    call_->connection = std::static_pointer_cast<const GrpcConnection>(connection_);
    const GrpcConnection& connection = *call_->connection;
    call_->context.set_deadline(std::chrono::system_clock::now() + question_.timeout);
    call_->context.set_authority(question_.authority.empty() ? std::string(connection.authority())
                                                             : question_.authority);
    call_->reader =
        grpc::GenericStub(connection.channel())
            .PrepareUnaryCall(
                &call_->context, kCheckMethod, to_buffer(question_.request), &interest_.queue());
    call_->reader->StartCall();
    call_->reader->Finish(&call_->response, &call_->status, call_);
  }

  void ended(Call& call) {
    {
      const std::lock_guard lock(mutex_);
      call_ = nullptr;
    }
    ProbeAnswer answer = answer_of(call.status, call.response);
    if (call.status.error_code() != grpc::StatusCode::UNAVAILABLE) return tell(std::move(answer));
    // A probe changes nothing at the server. So it does not matter whether a transport had the call
    // before the connection was lost: `was_taken` is false, and the server counts as not reached.
    find_reach(call.context,
               call.connection,
               /*was_taken=*/false,
               [self = shared_from_this(), answer = std::move(answer)](Reach reach) mutable {
                 if (reach != Reach::kServer) answer.outcome = ProbeOutcome::kUndone;
                 self->tell(std::move(answer));
               });
  }

  void tell(ProbeAnswer answer) {
    HealthProber::Answer to;
    {
      const std::lock_guard lock(mutex_);
      const bool is_undone = answer.outcome == ProbeOutcome::kUndone;
      if (is_undone && was_undone_) answer.outcome = ProbeOutcome::kFailed;
      was_undone_ = is_undone || (was_undone_ && answer.outcome == ProbeOutcome::kFailed);
      to = std::exchange(answer_, nullptr);
    }
    if (to) to(std::move(answer));
  }

  // Keeps the poller running for calls in progress, which may outlive the connector.
  const GrpcPoller::Interest interest_;
  const Question question_;
  std::mutex mutex_;  ///< Guards the members below. Never held while an answer is reported.
  bool is_given_up_ = false;
  /// A probe did not reach the server's application, and no later one has passed or was refused.
  bool was_undone_ = false;
  HealthProber::Answer answer_;  ///< Called with the answer to the probe in progress.
  ConnectionPtr connection_;
  Call* call_ = nullptr;  ///< The call in progress; owns itself.
};

class GrpcProbe final : public HealthProber::Probe {
 public:
  GrpcProbe(std::shared_ptr<Connector> connector, Peer peer, Question question)
      : connector_(std::move(connector)),
        peer_(std::move(peer)),
        timeout_(question.timeout),
        conversation_(std::make_shared<Conversation>(std::move(question))) {}

  ~GrpcProbe() override { conversation_->give_up(); }

  void begin(HealthProber::Answer answer) override {
    if (conversation_->ask(std::move(answer))) return;
    Connector::Events events;
    events.connected = [to = conversation_](ConnectionPtr made) { to->connected(std::move(made)); };
    events.failed = [to = conversation_](const absl::Status& why) { to->failed(why); };
    events.closed = [to = conversation_](const absl::Status& /*why*/) { to->closed(); };
    attempt_ = nullptr;
    attempt_ = connector_->connect(peer_, timeout_, std::move(events));
  }

 private:
  const std::shared_ptr<Connector> connector_;
  const Peer peer_;
  const Duration timeout_;
  const std::shared_ptr<Conversation> conversation_;
  std::unique_ptr<Connector::Attempt> attempt_;  ///< Holds the connection.
};

}  // namespace

std::unique_ptr<HealthProber::Probe> GrpcProber::prepare(const Target& target,
                                                         const HealthCheck& check) {
  return std::make_unique<GrpcProbe>(connector_, target.peer, question_of(target, check));
}

}  // namespace signalbox::actors
