// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a request to the admin server. Covers the parts that signalbox itself parses: the
// end of the headers, their flaws, the path, Host, and the queries of /explain and /stats.
//
//   H1  The end of the headers is just after the first empty line behind the request line, and more
//       bytes do not move it.
//   H2  Headers without a flaw have no NUL, no CR without LF, and at most one Host.
//   H3  A path has no space, no query and no end of line.
//   H4  A Host that passes begins with "localhost", "127." or "[".
//   H5  A query of /explain is refused as INVALID_ARGUMENT, or has a target, a method and headers
//       that gRPC takes. The text of an accepted admin address is parsed to the same address.
//   H6  The filter of /stats is refused as INVALID_ARGUMENT, or keeps only lines of the metrics.
//   H7  Text that was escaped for HTML has no markup and no control character but the newline.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

#include "channel/admin/admin_address.hpp"
#include "channel/admin/escape.hpp"
#include "channel/admin/explain_page.hpp"
#include "channel/admin/http_headers.hpp"
#include "channel/admin/stats_page.hpp"
#include "messages/header_rules.hpp"
#include "tests/fuzz/fuzz_target.hpp"

namespace signalbox::fuzz {
namespace {

// The end of the headers, found line by line: the slow way, for comparison.
std::optional<std::size_t> plain_end(absl::string_view bytes) {
  std::size_t begin = 0;
  for (std::size_t end = bytes.find('\n'); end != absl::string_view::npos;
       end = bytes.find('\n', begin)) {
    const absl::string_view line = bytes.substr(begin, end - begin);
    if (begin > 0 && (line.empty() || line == "\r")) return end + 1;
    begin = end + 1;
  }
  return std::nullopt;
}

void check_headers(absl::string_view headers) {
  const auto flaw = channel::flaw_of_headers(headers);
  int hosts = 0;
  bool has_lone_cr = false;
  for (std::size_t at = 0; at < headers.size(); ++at) {
    if (headers[at] == '\r' && (at + 1 == headers.size() || headers[at + 1] != '\n'))
      has_lone_cr = true;
  }
  for (const absl::string_view line : absl::StrSplit(headers, '\n')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 1));
    if (absl::AsciiStrToLower(absl::StripAsciiWhitespace(parts.first)) == "host") ++hosts;
  }
  const bool has_nul = headers.find('\0') != absl::string_view::npos;
  SIGNALBOX_FUZZ_EXPECT(
      flaw.has_value() == (has_nul || has_lone_cr || hosts > 1), "H2", flaw.value_or("no flaw"));
  const absl::string_view path = channel::path_of_request(headers);
  SIGNALBOX_FUZZ_EXPECT(
      path.find_first_of(" ?\r\n") == absl::string_view::npos, "H3", std::string(path));
}

void check_host(absl::string_view host) {
  if (channel::is_loopback_host(host)) {
    SIGNALBOX_FUZZ_EXPECT(absl::StartsWithIgnoreCase(host, "localhost") ||
                              absl::StartsWith(host, "127.") || absl::StartsWith(host, "["),
                          "H4",
                          std::string(host));
  }
  const auto address = channel::parse_admin_address(host);
  if (!address.ok()) return;
  const auto again = channel::parse_admin_address(channel::to_string(*address));
  SIGNALBOX_FUZZ_EXPECT(again.ok() && *again == *address, "H5: an address", std::string(host));
}

void check_query(absl::string_view query) {
  std::multimap<std::string, std::string> parameters;
  for (const absl::string_view parameter : absl::StrSplit(query, '&')) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(parameter, absl::MaxSplits('=', 1));
    parameters.insert(parts);
  }
  const auto question = channel::parse_explain_query(parameters);
  if (!question.ok()) {
    SIGNALBOX_FUZZ_EXPECT(
        absl::IsInvalidArgument(question.status()), "H5", question.status().ToString());
    return;
  }
  SIGNALBOX_FUZZ_EXPECT(
      !question->target.empty() && absl::StartsWith(question->method, "/"), "H5", question->method);
  for (const auto& [name, value] : question->headers) {
    SIGNALBOX_FUZZ_EXPECT(
        is_header_name(name) && is_header_value(name, value), "H5: a header", name);
  }
}

void check_filter(const std::string& filter) {
  static constexpr absl::string_view kMetrics =
      "# HELP a b c\na{cluster=\"x y\"} 1\nb 2\nodd\n\n c 3\n";
  const auto text = channel::stats_text(kMetrics, filter);
  if (!text.ok()) {
    SIGNALBOX_FUZZ_EXPECT(absl::IsInvalidArgument(text.status()), "H6", text.status().ToString());
    return;
  }
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const bool is_known =
        line.empty() || line == "a{cluster=\"x y\"}: 1" || line == "b: 2" || line == " c: 3";
    SIGNALBOX_FUZZ_EXPECT(is_known, "H6: a line", std::string(line));
  }
}

void check_escaped(absl::string_view text) {
  const std::string escaped = channel::escape(text);
  for (const char c : escaped) {
    const auto byte = static_cast<unsigned char>(c);
    SIGNALBOX_FUZZ_EXPECT(c != '<' && c != '>' && c != '"' && c != '\'' && byte != 0x7f &&
                              (byte >= 0x20 || c == '\n'),
                          "H7",
                          escaped);
  }
}

void check_request(absl::string_view bytes) {
  const auto end = channel::end_of_headers(bytes);
  SIGNALBOX_FUZZ_EXPECT(end == plain_end(bytes), "H1", absl::StrCat(end.value_or(0)));
  if (end) {
    SIGNALBOX_FUZZ_EXPECT(channel::end_of_headers(bytes.substr(0, *end)) == end &&
                              !channel::end_of_headers(bytes.substr(0, *end - 1)),
                          "H1: the same with fewer bytes",
                          absl::StrCat(*end));
  }
  check_headers(bytes.substr(0, end.value_or(bytes.size())));
  for (const absl::string_view line : absl::StrSplit(bytes, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon != absl::string_view::npos)
      check_host(absl::StripAsciiWhitespace(line.substr(colon + 1)));
    const std::size_t query = line.find('?');
    if (query != absl::string_view::npos) check_query(line.substr(query + 1));
  }
  check_filter(std::string(bytes));
  check_escaped(bytes);
}

}  // namespace
}  // namespace signalbox::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  signalbox::fuzz::check_request(signalbox::fuzz::text_of(data, size));
  return 0;
}
