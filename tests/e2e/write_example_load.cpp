// SPDX-License-Identifier: Apache-2.0
//
// Writes the report of an example to stdout, as `signalbox load --json` does. load_page_test.py
// and settings_test.cpp give it to `signalbox load merge`.
#include <iostream>

#include "tests/support/example_load.hpp"
#include "tools/load/report_json.hpp"

int main() {
  using namespace signalbox::tools;
  std::cout << load_report_json(example_load(/*is_compared=*/true)).dump() << "\n" << std::flush;
  return std::cout ? 0 : 1;
}
