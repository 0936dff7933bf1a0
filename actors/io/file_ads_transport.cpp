// SPDX-License-Identifier: Apache-2.0
#include "actors/io/file_ads_transport.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "actors/io/watched_file.hpp"
#include "xds/discovery_server.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::actors {
namespace {

using Clock = std::chrono::steady_clock;
using Resources = std::vector<xds::ResourceBytes>;

constexpr auto kSettling = std::chrono::milliseconds(200);

// One stream, shared by its handle and the thread. Callbacks run under the mutex: none runs any
// more once forget() has returned.
class FileStream {
 public:
  explicit FileStream(AdsTransport::Events events) : events_(std::move(events)) {}

  void opened() {
    const std::lock_guard lock(mutex_);
    if (events_) events_->opened();
  }

  void received(const std::string& bytes) {
    const std::lock_guard lock(mutex_);
    unread_.push_back(bytes);
    hand_over();
  }

  void read_next() {
    const std::lock_guard lock(mutex_);
    is_reading_ = true;
    hand_over();
  }

  void written() {
    const std::lock_guard lock(mutex_);
    if (events_ && events_->written) events_->written();
  }

  void closed(const absl::Status& why) {
    const std::lock_guard lock(mutex_);
    if (events_) events_->closed(why);
    events_.reset();
  }

  void forget() {
    const std::lock_guard lock(mutex_);
    events_.reset();
  }

 private:
  // T5.
  void hand_over() {
    if (!events_ || unread_.empty() || !std::exchange(is_reading_, false)) return;
    events_->received(std::move(unread_.front()));
    unread_.pop_front();
  }

  std::mutex mutex_;
  std::optional<AdsTransport::Events> events_;
  // The server is in this process. A file takes longer to read than its responses to decode.
  std::deque<std::string> unread_;
  bool is_reading_ = true;
};

using StreamPtr = std::shared_ptr<FileStream>;

struct Opened {};

struct Sent {
  std::string bytes;
};

struct Forgotten {};

struct Message {
  StreamPtr stream;
  std::variant<Opened, Sent, Forgotten> what;
};

// What the handles tell the thread. The descriptor is readable while there is something.
class Inbox {
 public:
  Inbox() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  ~Inbox() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  int descriptor() const { return descriptor_; }

  void post(Message message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    ::eventfd_write(descriptor_, 1);
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    ::eventfd_write(descriptor_, 1);
  }

  /// Nothing: it is the end.
  std::optional<std::vector<Message>> take() {
    const std::lock_guard lock(mutex_);
    eventfd_t ignored = 0;
    ::eventfd_read(descriptor_, &ignored);
    if (ended_) return std::nullopt;
    return std::exchange(messages_, {});
  }

 private:
  const int descriptor_;
  std::mutex mutex_;
  std::vector<Message> messages_;
  bool ended_ = false;
};

// The server, on its thread.
class FileServer {
 public:
  FileServer(FileAdsOptions options, WatchedFile file, const Resources& resources)
      : options_(std::move(options)),
        file_(std::move(file)),
        core_(absl::StrCat("it is not in ", file_.path())) {
    core_.replace(resources);
  }

  void run(Inbox& inbox);

 private:
  struct Trouble {
    FileTrouble kind;
    std::string text;
    Clock::time_point due;
  };

  void on(const StreamPtr& stream, const Opened&);
  void on(const StreamPtr& stream, const Sent& sent);
  void on(const StreamPtr& stream, const Forgotten&);

  void take_change();
  void refuse(FileTrouble kind, const absl::Status& why);
  void complain_when_due();
  int patience() const;
  void report_nack(const xds::Nack& nack);
  void deliver(const xds::OutgoingResponses& responses);

  FileAdsOptions options_;
  WatchedFile file_;
  xds::DiscoveryServer core_;
  std::map<xds::StreamId, StreamPtr> streams_;
  std::map<StreamPtr, xds::StreamId> ids_;
  std::optional<Trouble> trouble_;  ///< With the file as it is; not complained of yet.
  std::set<std::string> told_;      ///< NACKs of the file as it is.
};

void FileServer::run(Inbox& inbox) {
  for (;;) {
    std::array<pollfd, 2> fds{pollfd{inbox.descriptor(), POLLIN, 0},
                              pollfd{file_.descriptor(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), patience()) < 0) continue;  // A signal.
    const auto messages = inbox.take();
    if (!messages) break;
    for (const Message& message : *messages) {
      std::visit([&](const auto& what) { on(message.stream, what); }, message.what);
    }
    if (fds[1].revents != 0 || !file_.is_watched()) take_change();
    complain_when_due();
  }
  for (const auto& [id, stream] : streams_)
    stream->closed(absl::UnavailableError("the transport has ended"));
}

// --- streams ----------------------------------------------------------------

void FileServer::on(const StreamPtr& stream, const Opened&) {
  const xds::StreamId id = core_.open_stream();
  streams_.emplace(id, stream);
  ids_.emplace(stream, id);
  stream->opened();
}

void FileServer::on(const StreamPtr& stream, const Sent& sent) {
  const auto known = ids_.find(stream);
  if (known == ids_.end()) return;
  stream->written();
  const auto newest_nack = [this]() -> std::string {
    return core_.record().nacks.empty() ? "" : core_.record().nacks.back().nonce;
  };
  const std::string before = newest_nack();
  const auto responses = core_.receive(known->second, sent.bytes);
  if (!responses.ok()) {
    stream->closed(responses.status());
    return on(stream, Forgotten{});
  }
  if (newest_nack() != before) report_nack(core_.record().nacks.back());
  deliver(*responses);
}

void FileServer::on(const StreamPtr& stream, const Forgotten&) {
  const auto known = ids_.find(stream);
  if (known == ids_.end()) return;
  core_.close_stream(known->second);
  streams_.erase(known->second);
  ids_.erase(known);
}

void FileServer::deliver(const xds::OutgoingResponses& responses) {
  for (const auto& response : responses) {
    const auto stream = streams_.find(response.stream);
    if (stream != streams_.end()) stream->second->received(response.bytes);
  }
}

// --- the file ---------------------------------------------------------------

absl::StatusOr<Resources> parse(const WatchedFile& file, const xds::Limits& limits) {
  return xds::parse_resources_text(file.text(), xds::format_of(file.path()), file.path(), limits);
}

void FileServer::take_change() {
  const auto change = file_.read_change();
  if (!change.ok()) return refuse(FileTrouble::kUnreadable, change.status());
  if (!change->has_value()) return;
  const auto resources = parse(file_, options_.limits);
  if (!resources.ok()) return refuse(FileTrouble::kUnparsable, resources.status());
  trouble_.reset();
  told_.clear();
  deliver(core_.replace(*resources));
}

void FileServer::refuse(FileTrouble kind, const absl::Status& why) {
  trouble_ = Trouble{absl::IsResourceExhausted(why) ? FileTrouble::kBeyondLimit : kind,
                     absl::StrCat(why.message(), "; what was good before is still served"),
                     Clock::now() + kSettling};
}

void FileServer::complain_when_due() {
  if (!trouble_ || Clock::now() < trouble_->due) return;
  const Trouble trouble = *std::exchange(trouble_, std::nullopt);
  options_.complain(trouble.kind, trouble.text);
}

// For poll(): until there is something to complain of, or to try again.
int FileServer::patience() const {
  constexpr int kRetryMilliseconds = 1000;
  if (!trouble_) return file_.is_watched() ? -1 : kRetryMilliseconds;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(trouble_->due - Clock::now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

// A client says it again with every response.
void FileServer::report_nack(const xds::Nack& nack) {
  if (!told_.insert(nack.detail).second) return;
  // A client without a version of this type has taken nothing of it yet.
  const char* const meanwhile =
      nack.version.empty() ? "; it is not used" : "; what was good before is still served";
  options_.complain(FileTrouble::kInvalidResource,
                    absl::StrCat(file_.path(), ": ", nack.detail, meanwhile));
}

// --- the transport ----------------------------------------------------------

class StreamHandle final : public AdsTransport::Stream {
 public:
  StreamHandle(StreamPtr stream, std::shared_ptr<Inbox> inbox)
      : stream_(std::move(stream)), inbox_(std::move(inbox)) {}

  ~StreamHandle() override {
    stream_->forget();
    inbox_->post({stream_, Forgotten{}});
  }

  void send(std::string bytes) override { inbox_->post({stream_, Sent{std::move(bytes)}}); }

  void read_next() override { stream_->read_next(); }

 private:
  StreamPtr stream_;
  std::shared_ptr<Inbox> inbox_;
};

class FileAdsTransport final : public AdsTransport {
 public:
  FileAdsTransport(std::shared_ptr<Inbox> inbox, std::string name, FileServer server)
      : inbox_(std::move(inbox)),
        name_(std::move(name)),
        server_(std::move(server)),
        thread_([this] { server_.run(*inbox_); }) {}

  ~FileAdsTransport() override {
    inbox_->end();
    thread_.join();
  }

  std::unique_ptr<Stream> open(Events events) override {
    auto stream = std::make_shared<FileStream>(std::move(events));
    inbox_->post({stream, Opened{}});
    return std::make_unique<StreamHandle>(std::move(stream), inbox_);
  }

  const std::string& server() const override { return name_; }

 private:
  const std::shared_ptr<Inbox> inbox_;
  const std::string name_;
  FileServer server_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<AdsTransport>> make_file_ads_transport(FileAdsOptions options) {
  auto file = WatchedFile::open(options.path, options.limits.max_file_bytes);
  if (!file.ok()) return file.status();
  const auto resources = parse(*file, options.limits);
  if (!resources.ok()) return resources.status();
  auto inbox = std::make_shared<Inbox>();
  if (inbox->descriptor() < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot follow ", options.path, ": no file descriptor is free"));
  }
  std::string name = absl::StrCat("file:", options.path);
  return std::make_shared<FileAdsTransport>(
      std::move(inbox),
      std::move(name),
      FileServer(std::move(options), *std::move(file), *resources));
}

}  // namespace signalbox::actors
