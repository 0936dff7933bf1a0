// SPDX-License-Identifier: Apache-2.0
#include "tools/load/reflected_types.hpp"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include <catch2/catch.hpp>
#include <google/protobuf/descriptor.pb.h>

#include "tools/proto/reflection.pb.h"

namespace signalbox::tools {
namespace {

using Names = std::vector<std::string>;

google::protobuf::FileDescriptorProto file_of(const std::string& name, const Names& imports) {
  google::protobuf::FileDescriptorProto file;
  file.set_name(name);
  for (const std::string& import : imports)
    file.add_dependency(import);
  return file;
}

std::string answer_of(const std::vector<google::protobuf::FileDescriptorProto>& files) {
  reflection::ServerReflectionResponse response;
  auto& answer = *response.mutable_file_descriptor_response();
  for (const auto& file : files)
    answer.add_file_descriptor_proto(file.SerializeAsString());
  return response.SerializeAsString();
}

std::string error_of(int code, const std::string& message) {
  reflection::ServerReflectionResponse response;
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(message);
  return response.SerializeAsString();
}

// The next reflection request of `types`, in words: "symbol NAME" or "file NAME"; "": none.
std::string asked(const ReflectedTypes& types) {
  const auto question = types.question();
  if (!question) return "";
  reflection::ServerReflectionRequest request;
  REQUIRE(request.ParseFromString(*question));
  return request.file_containing_symbol().empty() ? "file " + request.file_by_filename()
                                                  : "symbol " + request.file_containing_symbol();
}

Names files_of(const ReflectedTypes& types) {
  google::protobuf::FileDescriptorSet set;
  REQUIRE(set.ParseFromString(types.protoset()));
  Names names;
  for (const auto& file : set.file())
    names.push_back(file.name());
  return names;
}

}  // namespace

TEST_CASE("reflected types: imported files that were not sent are asked for", "[load]") {
  ReflectedTypes types("a.v1.Orders");
  CHECK(asked(types) == "symbol a.v1.Orders");
  REQUIRE(types.take(answer_of({file_of("a", {"c", "b"})})).ok());
  CHECK(asked(types) == "file b");
  REQUIRE(types.take(answer_of({file_of("b", {"c", "d"})})).ok());
  CHECK(asked(types) == "file c");
  REQUIRE(types.take(answer_of({file_of("c", {"d"}), file_of("d", {})})).ok());
  CHECK(asked(types).empty());
  CHECK(files_of(types) == Names{"d", "c", "b", "a"});
}

TEST_CASE("reflected types: the server may send all files at once, in any order", "[load]") {
  ReflectedTypes types("a.v1.Orders");
  REQUIRE(types
              .take(answer_of({file_of("z", {}),
                               file_of("a", {"z", "m"}),
                               file_of("m", {"z"}),
                               file_of("z", {"ignored"})}))  // The first of a name counts.
              .ok());
  CHECK(asked(types).empty());
  CHECK(files_of(types) == Names{"z", "m", "a"});
}

TEST_CASE("reflected types: files that import each other end the questions, too", "[load]") {
  ReflectedTypes types("a.v1.Orders");
  REQUIRE(
      types.take(answer_of({file_of("a", {"b"}), file_of("b", {"a"}), file_of("c", {"c"})})).ok());
  CHECK(asked(types).empty());
  CHECK(files_of(types).size() == 3);
}

TEST_CASE("reflected types: a bad answer is a sentence about the server", "[load]") {
  struct Row {
    bool is_import;  // The answer is to the question for the file b.
    std::string answer;
    const char* sentence;
  };

  reflection::ServerReflectionResponse unreadable;
  unreadable.mutable_file_descriptor_response()->add_file_descriptor_proto("\xff");
  const Row row = GENERATE_COPY(
      Row{false, "\xff", "sent an answer that is no message, asked for the service 'a.v1.Orders'"},
      Row{false, "", "sent an answer without the service 'a.v1.Orders', which --call names"},
      Row{false, answer_of({}), "sent an answer without the service 'a.v1.Orders'"},
      Row{false, unreadable.SerializeAsString(), "sent a file descriptor that cannot be read"},
      Row{false, error_of(5, "x"), "does not know the service 'a.v1.Orders', which --call names"},
      Row{false,
          error_of(7, "not you"),
          "refused to send the service 'a.v1.Orders', which --call names: code 7, 'not you'"},
      Row{true, error_of(5, ""), "does not know the file 'b', which 'a' imports"},
      Row{true, answer_of({file_of("c", {})}), "sent an answer without the file 'b', which 'a' im"},
      Row{true, "", "sent an answer without the file 'b', which 'a' imports"});
  ReflectedTypes types("a.v1.Orders");
  if (row.is_import) REQUIRE(types.take(answer_of({file_of("a", {"b"})})).ok());
  const auto status = types.take(row.answer);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()),
             Catch::StartsWith("its server reflection ") && Catch::Contains(row.sentence));
}

TEST_CASE("reflected types: an import without a name is not asked for again and again", "[load]") {
  ReflectedTypes types("a.v1.Orders");
  REQUIRE(types.take(answer_of({file_of("a", {""})})).ok());
  CHECK(asked(types) == "file ");
  CHECK_THAT(std::string(types.take(answer_of({file_of("a", {})})).message()),
             Catch::Contains("sent an answer without the file '', which 'a' imports"));
}

TEST_CASE("reflected types: a server cannot send files without end", "[load]") {
  ReflectedTypes types("a.v1.Orders");
  absl::Status status = types.take(answer_of({file_of("0", {"1"})}));
  SECTION("each imports another one") {
    std::size_t sent = 1;
    for (; status.ok() && sent <= ReflectedTypes::kMostFiles; ++sent)
      status = types.take(answer_of({file_of(absl::StrCat(sent), {absl::StrCat(sent + 1)})}));
    CHECK(sent == ReflectedTypes::kMostFiles + 1);
    CHECK_THAT(std::string(status.message()), Catch::Contains("sent more than 10000 files"));
  }
  SECTION("and not files of any size") {
    const std::string large(std::size_t{16} << 20, 'x');
    for (int i = 1; i <= 4 && status.ok(); ++i)
      status = types.take(answer_of(
          {file_of(absl::StrCat(i), {absl::StrCat(i + 1)}), file_of(absl::StrCat(large, i), {})}));
    CHECK_THAT(std::string(status.message()),
               Catch::Contains("sent more than 67108864 bytes of files"));
  }
}

TEST_CASE("reflected types: ten thousand files in a row are put in order", "[load]") {
  ReflectedTypes types("a.v1.Orders");
  std::vector<google::protobuf::FileDescriptorProto> files;
  for (std::size_t i = 0; i + 1 < ReflectedTypes::kMostFiles; ++i)
    files.push_back(file_of(absl::StrCat(i), {absl::StrCat(i + 1)}));
  files.push_back(file_of(absl::StrCat(ReflectedTypes::kMostFiles - 1), {}));
  REQUIRE(types.take(answer_of(files)).ok());
  REQUIRE(asked(types).empty());
  CHECK(files_of(types).back() == "0");
}

}  // namespace signalbox::tools
