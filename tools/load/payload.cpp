// SPDX-License-Identifier: Apache-2.0
#include "tools/load/payload.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>

namespace signalbox::tools {
namespace {

namespace pb = google::protobuf;

absl::Status wrong(absl::string_view why) {
  return absl::InvalidArgumentError(why);
}

// Keeps the first of the descriptor pool's errors, which protobuf would otherwise log.
class Complaints final : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file,
                const std::string& element,
                const pb::Message*,
                ErrorLocation,
                const std::string& message) override {
    if (first.empty()) first = absl::StrCat(file, ": ", element, ": ", message);
  }

  std::string first;
};

absl::StatusOr<const pb::MethodDescriptor*> find_method(const pb::DescriptorPool& pool,
                                                        const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string service_name = path.substr(1, slash - 1);
  const std::string method_name = path.substr(slash + 1);
  const pb::ServiceDescriptor* const service = pool.FindServiceByName(service_name);
  if (service == nullptr)
    return absl::NotFoundError(
        absl::StrCat("there is no service '", service_name, "' in the descriptors"));
  const pb::MethodDescriptor* const method = service->FindMethodByName(method_name);
  if (method == nullptr) {
    std::vector<std::string> names;
    names.reserve(static_cast<std::size_t>(service->method_count()));
    for (int i = 0; i < service->method_count(); ++i)
      names.push_back(service->method(i)->name());
    return absl::NotFoundError(absl::StrCat("service '",
                                            service_name,
                                            "' has no method '",
                                            method_name,
                                            "'; it has: ",
                                            absl::StrJoin(names, ", ")));
  }
  if (method->client_streaming())
    return wrong(absl::StrCat(path,
                              " is a ",
                              method->server_streaming() ? "bidirectional" : "client",
                              "-streaming method; only unary and server-streaming methods can be "
                              "called"));
  return method;
}

// protobuf adds two lines to its message: a piece of the JSON, and a ^ below the error. Returns one
// line: the message, the error's byte if the piece occurs once in the JSON, and the text there.
std::string json_error(absl::string_view message, absl::string_view json) {
  const std::vector<absl::string_view> lines = absl::StrSplit(message, '\n');
  const auto caret = lines.back().find('^');
  if (lines.size() < 3 || caret == absl::string_view::npos) return absl::StrJoin(lines, " ");
  const absl::string_view around = lines[lines.size() - 2];
  const absl::string_view rest = around.substr(std::min(caret, around.size()));
  std::string text(lines.front());
  const auto at = json.find(around);
  const bool is_only = at != absl::string_view::npos && json.find(around, at + 1) == json.npos;
  if (is_only) absl::StrAppend(&text, " At byte ", at + caret + 1);
  absl::StrAppend(&text, is_only ? ": " : " At: ", rest.empty() ? "the end" : rest);
  return text;
}

}  // namespace

absl::StatusOr<std::string> method_path_of(absl::string_view text) {
  absl::string_view name = text;
  absl::ConsumePrefix(&name, "/");
  const bool has_slash = name.find('/') != absl::string_view::npos;
  const auto split = has_slash ? name.find('/') : name.rfind('.');
  if (split == absl::string_view::npos || split == 0 || split + 1 == name.size() ||
      name.find('/', split + 1) != absl::string_view::npos)
    return wrong(absl::StrCat("expected package.Service/Method, got '", text, "'"));
  return absl::StrCat("/", name.substr(0, split), "/", name.substr(split + 1));
}

absl::StatusOr<Payload> payload_of_json(const std::string& protoset,
                                        const std::string& method_path,
                                        const std::string& json) {
  pb::FileDescriptorSet files;
  if (!files.ParseFromString(protoset) || files.file_size() == 0)
    return wrong(
        "no descriptor set; make one by protoc --include_imports --descriptor_set_out=FILE");
  pb::DescriptorPool pool;
  Complaints complaints;
  for (const auto& file : files.file()) {
    if (pool.BuildFileCollectingErrors(file, &complaints) == nullptr)
      return wrong(absl::StrCat(complaints.first, "; was protoc given --include_imports?"));
  }
  const auto method = find_method(pool, method_path);
  if (!method.ok()) return method.status();
  pb::DynamicMessageFactory factory(&pool);
  const std::unique_ptr<pb::Message> message(factory.GetPrototype((*method)->input_type())->New());
  const auto status = pb::util::JsonStringToMessage(json, message.get());
  if (!status.ok())
    return wrong(
        absl::StrCat("the JSON is no ",
                     (*method)->input_type()->full_name(),
                     ": ",
                     json_error({status.message().data(), status.message().size()}, json)));
  return Payload{.bytes = message->SerializeAsString(),
                 .is_streaming = (*method)->server_streaming()};
}

}  // namespace signalbox::tools
