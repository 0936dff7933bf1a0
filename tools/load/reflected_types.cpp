// SPDX-License-Identifier: Apache-2.0
#include "tools/load/reflected_types.hpp"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "tools/proto/reflection.pb.h"

namespace signalbox::tools {
namespace {

namespace pb = google::protobuf;

constexpr int kNotFound = static_cast<int>(absl::StatusCode::kNotFound);

absl::Status bad_answer(absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("its server reflection ", why));
}

}  // namespace

std::optional<std::string> ReflectedTypes::question() const {
  reflection::ServerReflectionRequest request;
  if (files_.empty()) {
    request.set_file_containing_symbol(service_);
  } else if (!missing_.empty()) {
    request.set_file_by_filename(missing_.begin()->first);
  } else {
    return std::nullopt;
  }
  return request.SerializeAsString();
}

// What question() asks for, in words.
std::string ReflectedTypes::asked() const {
  if (files_.empty()) return absl::StrCat("the service '", service_, "', which --call names");
  const auto& [file, importer] = *missing_.begin();
  return absl::StrCat("the file '", file, "', which '", importer, "' imports");
}

absl::Status ReflectedTypes::take(const std::string& answer) {
  reflection::ServerReflectionResponse response;
  if (!response.ParseFromString(answer))
    return bad_answer(absl::StrCat("sent an answer that is no message, asked for ", asked()));
  if (response.has_error_response()) {
    const auto& error = response.error_response();
    if (error.error_code() == kNotFound) return bad_answer(absl::StrCat("does not know ", asked()));
    return bad_answer(absl::StrCat("refused to send ",
                                   asked(),
                                   ": code ",
                                   error.error_code(),
                                   ", '",
                                   error.error_message(),
                                   "'"));
  }
  const std::string asked_for = asked();
  std::optional<std::string> missing;
  if (!files_.empty()) missing = missing_.begin()->first;
  for (const std::string& file : response.file_descriptor_response().file_descriptor_proto()) {
    if (auto status = add(file); !status.ok()) return status;
  }
  // Without this error, question() would ask for the same file again, without end.
  if (files_.empty() || (missing && !files_.contains(*missing)))
    return bad_answer(absl::StrCat("sent an answer without ", asked_for));
  return absl::OkStatus();
}

absl::Status ReflectedTypes::add(const std::string& bytes) {
  pb::FileDescriptorProto file;
  if (!file.ParseFromString(bytes))
    return bad_answer(
        absl::StrCat("sent a file descriptor that cannot be read, asked for ", asked()));
  const std::string name = file.name();
  if (files_.contains(name)) return absl::OkStatus();
  bytes_ += bytes.size();
  if (files_.size() == kMostFiles || bytes_ > kMostBytes)
    return bad_answer(absl::StrCat("sent more than ",
                                   files_.size() == kMostFiles ? kMostFiles : kMostBytes,
                                   files_.size() == kMostFiles ? " files" : " bytes of files"));
  for (const std::string& import : file.dependency()) {
    if (!files_.contains(import)) missing_.try_emplace(import, name);
  }
  files_.emplace(name, std::move(file));
  missing_.erase(name);
  return absl::OkStatus();
}

std::string ReflectedTypes::protoset() const {
  struct Begun {
    const pb::FileDescriptorProto* file;
    int next_import = 0;
  };

  // A loop with the list `begun`, and no recursion: the endpoint decides how deep files import each
  // other, and a deep recursion would overflow the stack. Files that import each other in a circle
  // get any order.
  pb::FileDescriptorSet set;
  std::set<std::string> seen;
  std::vector<Begun> begun;
  for (const auto& [name, file] : files_) {
    if (seen.insert(name).second) begun.push_back({&file});
    while (!begun.empty()) {
      Begun& top = begun.back();
      if (top.next_import == top.file->dependency_size()) {
        *set.add_file() = *top.file;
        begun.pop_back();
        continue;
      }
      const auto& import = files_.at(top.file->dependency(top.next_import++));
      if (seen.insert(import.name()).second) begun.push_back({&import});
    }
  }
  return set.SerializeAsString();
}

}  // namespace signalbox::tools
