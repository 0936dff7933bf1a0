// SPDX-License-Identifier: Apache-2.0
#include "actors/io/file_ads_transport.hpp"

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <sys/epoll.h>

#include "actors/io/socket_loop.hpp"
#include "actors/io/watched_file.hpp"
#include "xds/client/resource_text.hpp"
#include "xds/discovery_server.hpp"
#include "xds/resource_file.hpp"
#include "xds/type_url.hpp"

namespace signalbox::actors {
namespace {

using Resources = std::vector<xds::ResourceBytes>;

// One stream. Its FileStreamHandle and the loop's thread share it. Callbacks run under the mutex,
// so none runs after forget().
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
  // Passes on the oldest unread message, if read_next() has permitted it (T5 of ads_transport.hpp).
  void hand_over() {
    if (!events_ || unread_.empty() || !std::exchange(is_reading_, false)) return;
    events_->received(std::move(unread_.front()));
    unread_.pop_front();
  }

  std::mutex mutex_;
  std::optional<AdsTransport::Events> events_;
  // The queue has no limit. The server is in this process, and reads a file more slowly than the
  // client decodes the responses.
  std::deque<std::string> unread_;
  bool is_reading_ = true;
};

using StreamPtr = std::shared_ptr<FileStream>;

constexpr SocketLoop::Id kFile = 1;

// The xDS server that serves the resources of the file. Only the loop's thread uses its data.
class FileServer final : public SocketLoop::Handler {
 public:
  FileServer(FileAdsOptions options, WatchedFile file, const Resources& resources, SocketLoop& loop)
      : options_(std::move(options)),
        file_(std::move(file)),
        loop_(loop),
        core_(absl::StrCat("not in ", file_.path())) {
    core_.replace(resources);
  }

  void follow();
  void open(const StreamPtr& stream);
  void receive(const StreamPtr& stream, const std::string& bytes);
  void forget(const StreamPtr& stream);
  void close_all();

  void happened(SocketLoop::Id file) override;
  void is_due(SocketLoop::Id file) override;

 private:
  struct Trouble {
    FileTrouble kind;
    std::string text;
    Instant due{};
  };

  void take_change();
  void refuse(FileTrouble kind, const absl::Status& why);
  void complain_when_due();
  void report_nack(const xds::Nack& nack);
  void deliver(const xds::OutgoingResponses& responses);

  FileAdsOptions options_;
  WatchedFile file_;
  SocketLoop& loop_;
  xds::DiscoveryServer core_;
  std::map<xds::StreamId, StreamPtr> streams_;
  std::map<StreamPtr, xds::StreamId> ids_;
  std::optional<Trouble> trouble_;  ///< The present file's fault, not reported yet.
  std::set<std::string> reported_;  ///< The NACKs of the present file that were reported.
};

void FileServer::happened(SocketLoop::Id /*file*/) {
  take_change();
  complain_when_due();
  follow();
}

void FileServer::is_due(SocketLoop::Id /*file*/) {
  if (!file_.is_watched()) take_change();
  complain_when_due();
  follow();
}

// Makes the loop wait for the file's next change, and for the time to complain or to retry. The
// loop gets the file's descriptor anew, because read_change() may have replaced it.
void FileServer::follow() {
  constexpr std::chrono::milliseconds kRetry(1000);
  loop_.listen_for(kFile, file_.descriptor(), EPOLLIN);
  const Instant idle = file_.is_watched() ? Instant::max() : SocketLoop::now() + kRetry;
  loop_.set_due(kFile, trouble_ ? trouble_->due : idle);
}

// --- streams ----------------------------------------------------------------

void FileServer::open(const StreamPtr& stream) {
  const xds::StreamId id = core_.open_stream();
  streams_.emplace(id, stream);
  ids_.emplace(stream, id);
  stream->opened();
}

void FileServer::receive(const StreamPtr& stream, const std::string& bytes) {
  const auto known = ids_.find(stream);
  if (known == ids_.end()) return;
  stream->written();
  const auto newest_nack = [this]() -> std::string {
    return core_.record().nacks.empty() ? "" : core_.record().nacks.back().nonce;
  };
  const std::string before = newest_nack();
  const auto responses = core_.receive(known->second, bytes);
  if (!responses.ok()) {
    stream->closed(responses.status());
    return forget(stream);
  }
  if (newest_nack() != before) report_nack(core_.record().nacks.back());
  deliver(*responses);
}

void FileServer::forget(const StreamPtr& stream) {
  const auto known = ids_.find(stream);
  if (known == ids_.end()) return;
  core_.close_stream(known->second);
  streams_.erase(known->second);
  ids_.erase(known);
}

void FileServer::close_all() {
  for (const auto& [id, stream] : streams_)
    stream->closed(absl::UnavailableError("the transport has ended"));
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

// Maps a resource, such as `CDS resource "orders"`, to its place, such as "line 7: resources[2]: ".
// Stored places would take much memory, and errors are rare, so the file is parsed again to find
// them.
std::map<std::string, std::string> places_in(const WatchedFile& file, const xds::Limits& limits) {
  std::map<std::string, std::string> places;
  const auto format = xds::format_of(file.path());
  const auto document = xds::parse_file_document(file.text(), format, file.path(), limits);
  if (!document.ok()) return places;
  const auto read = xds::read_resources(*document, file.path(), limits);
  if (!read.ok()) return places;
  const std::string path = absl::StrCat(file.path(), ": ");
  for (std::size_t i = 0; i < read->resources.size(); ++i) {
    const auto& resource = read->resources[i];
    const auto type = xds::resource_type_of(resource.type_url);
    if (!type) continue;
    places.emplace(xds::describe({*type, resource.name}), absl::StripPrefix(read->places[i], path));
  }
  return places;
}

// Splits `errors` at "; ", and puts before each error the place of the error's resource, if
// `places` has it.
std::string with_places(absl::string_view errors,
                        const std::map<std::string, std::string>& places) {
  std::string placed;
  for (const absl::string_view error : absl::StrSplit(errors, "; ")) {
    const auto place = places.find(std::string(error.substr(0, error.find("\": ") + 1)));
    absl::StrAppend(&placed, placed.empty() ? "" : "; ");
    absl::StrAppend(&placed, place == places.end() ? "" : place->second, error);
  }
  return placed;
}

void FileServer::take_change() {
  const auto change = file_.read_change();
  if (!change.ok()) return refuse(FileTrouble::kUnreadable, change.status());
  if (!change->has_value()) return;
  const auto resources = parse(file_, options_.limits);
  if (!resources.ok()) return refuse(FileTrouble::kUnparsable, resources.status());
  trouble_.reset();
  reported_.clear();
  deliver(core_.replace(*resources));
}

void FileServer::refuse(FileTrouble kind, const absl::Status& why) {
  trouble_ = Trouble{absl::IsResourceExhausted(why) ? FileTrouble::kBeyondLimit : kind,
                     absl::StrCat(why.message(), "; the last good one is still served"),
                     SocketLoop::now() + kFileSettling};
}

void FileServer::complain_when_due() {
  if (!trouble_ || SocketLoop::now() < trouble_->due) return;
  const Trouble trouble = *std::exchange(trouble_, std::nullopt);
  options_.complain(trouble.kind, trouble.text);
}

// A client repeats a NACK with every response. So equal NACKs are reported only once while the file
// stays the same.
void FileServer::report_nack(const xds::Nack& nack) {
  if (!reported_.insert(nack.detail).second) return;
  // A NACK without a version: the client has no accepted response of this type.
  const char* const meanwhile =
      nack.version.empty() ? "; it is not used" : "; the last good one is still served";
  options_.complain(FileTrouble::kInvalidResource,
                    absl::StrCat(file_.path(),
                                 ": ",
                                 with_places(nack.detail, places_in(file_, options_.limits)),
                                 meanwhile));
}

// --- the transport ----------------------------------------------------------

// The handle may outlive the transport. The loop then does not carry out the handle's orders.
class FileStreamHandle final : public AdsTransport::Stream {
 public:
  FileStreamHandle(StreamPtr stream, std::shared_ptr<SocketLoop> loop, FileServer& server)
      : stream_(std::move(stream)), loop_(std::move(loop)), server_(server) {}

  ~FileStreamHandle() override {
    stream_->forget();
    loop_->post([stream = stream_, &server = server_] { server.forget(stream); });
  }

  void send(std::string bytes) override {
    loop_->post([stream = stream_, &server = server_, bytes = std::move(bytes)] {
      server.receive(stream, bytes);
    });
  }

  void read_next() override { stream_->read_next(); }

 private:
  StreamPtr stream_;
  std::shared_ptr<SocketLoop> loop_;
  FileServer& server_;
};

class FileAdsTransport final : public AdsTransport {
 public:
  FileAdsTransport(FileAdsOptions options,
                   WatchedFile file,
                   const Resources& resources,
                   std::shared_ptr<SocketLoop> loop)
      : name_(file_server_name(options.path)),
        loop_(std::move(loop)),
        server_(std::move(options), std::move(file), resources, *loop_) {
    loop_->post([this] { server_.follow(); });
    loop_->begin(server_);
  }

  ~FileAdsTransport() override {
    loop_->post([this] { server_.close_all(); });
    loop_->stop();
  }

  std::unique_ptr<Stream> open(Events events) override {
    auto stream = std::make_shared<FileStream>(std::move(events));
    loop_->post([this, stream] { server_.open(stream); });
    return std::make_unique<FileStreamHandle>(std::move(stream), loop_, server_);
  }

  const std::string& server() const override { return name_; }

 private:
  const std::string name_;
  const std::shared_ptr<SocketLoop> loop_;
  FileServer server_;
};

}  // namespace

std::string file_server_name(absl::string_view path) {
  return absl::StrCat("file:", path);
}

absl::StatusOr<std::shared_ptr<AdsTransport>> make_file_ads_transport(FileAdsOptions options) {
  auto file = WatchedFile::open(options.path, options.limits.max_file_bytes);
  if (!file.ok()) return file.status();
  const auto resources = parse(*file, options.limits);
  if (!resources.ok()) return resources.status();
  auto loop = SocketLoop::make(absl::StrCat("cannot follow ", options.path));
  if (!loop.ok()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot follow ", options.path, ": no file descriptor is free"));
  }
  return std::make_shared<FileAdsTransport>(
      std::move(options), *std::move(file), *resources, *std::move(loop));
}

}  // namespace signalbox::actors
