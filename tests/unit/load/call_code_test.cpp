// SPDX-License-Identifier: Apache-2.0
#include "tools/load/call_code.hpp"

#include <catch2/catch.hpp>

namespace signalbox::tools {

TEST_CASE("call code: its name, its failure, and what a pick is told", "[load][call_code]") {
  struct Row {
    int code;
    const char* key;
    const char* text;
    bool is_failure;
    int grpc_code;
  };

  const Row row = GENERATE(Row{0, "0", "0 OK", false, 0},
                           Row{14, "14", "14 UNAVAILABLE", true, 14},
                           Row{200, "200", "200", false, 0},
                           Row{304, "304", "304", false, 0},
                           Row{404, "404", "404", false, 0},
                           Row{500, "500", "500", true, 2},
                           Row{502, "502", "502", true, 14},
                           Row{504, "504", "504", true, 14},
                           Row{599, "599", "599", true, 2},
                           Row{kCurlErrors + 7, "connect-failed", "connect-failed", true, 14},
                           Row{kCurlErrors + 28, "timeout", "timeout", true, 4},
                           Row{kCurlErrors + 35, "curl-35", "curl-35", true, 14},
                           Row{1900, "no-pick", "no-pick", true, 14},
                           Row{1901, "cancelled", "cancelled", true, 14});
  CHECK(code_key(row.code) == row.key);
  CHECK(code_text(row.code) == row.text);
  CHECK(code_of_key(row.key) == row.code);
  CHECK(is_failure(row.code) == row.is_failure);
  CHECK(grpc_code_of(row.code) == row.grpc_code);
}

TEST_CASE("call code: other texts are no codes", "[load][call_code]") {
  for (const char* key : {"", "curl-", "OK", "timeouts"})
    CHECK(code_of_key(key) == std::nullopt);
}

}  // namespace signalbox::tools
