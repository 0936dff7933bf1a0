// SPDX-License-Identifier: Apache-2.0
//
// signalbox_bench_client: makes one measurement of one side (signalbox or gRPC), and prints the
// result as one line of JSON. Exit status: 0 success, 1 the measurement failed, 2 wrong arguments.
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "tests/bench/measures.hpp"
#include "tools/child_process.hpp"

namespace {

using namespace signalbox::bench;  // NOLINT(google-build-using-namespace): the file is about it.

using Measure = Measured (*)(const MeasureOptions&, Side&);

const std::map<std::string, Measure> kMeasures = {
    {"pick", measure_pick},
    {"closed_loop", measure_closed_loop},
    {"cpu", measure_cpu},
    {"failover", measure_failover},
    {"outage", measure_outage},
    {"overload", measure_overload},
    {"tail", measure_tail},
    {"queued", measure_queued},
    {"eds_update", measure_eds_update},
    {"cold_start", measure_cold_start},
    {"refused", measure_refused},
    {"growth", measure_growth},
    {"many_targets", measure_many_targets},
    {"response", measure_response},
    {"scrape", measure_scrape},
    {"ready", measure_ready},
};

int run(int argc, char** argv) {
  signalbox::tools::die_with_parent(::getppid());
  ::setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  CLI::App app{"One measurement of one side; ./run bench starts it.", "signalbox_bench_client"};
  std::string side_name, measure, target = "xds:///bench";
  MeasureOptions options;
  double seconds = 1;
  SideOptions side_options;
  app.add_option("--side", side_name)->required()->check(CLI::IsMember({"ours", "peer"}));
  app.add_option("--measure", measure)->required()->check(CLI::IsMember(kMeasures));
  app.add_option("--target", target)->capture_default_str();
  app.add_option("--endpoints", options.endpoints)->capture_default_str();
  app.add_option("--port", options.port)->capture_default_str();
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seconds", seconds)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rate", options.rate)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--routes", options.routes)->capture_default_str();
  app.add_option("--sessions", options.sessions)->capture_default_str();
  app.add_option("--weights", options.weights)->capture_default_str();
  app.add_option("--call-metrics", side_options.counts_calls)->capture_default_str();
  app.add_option("--assumed", side_options.assumes_connections)->capture_default_str();
  app.add_option("--scheduler-threads", side_options.scheduler_threads)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--standby-priorities", side_options.standby_priorities)->capture_default_str();
  app.add_option("--max-routes", side_options.max_routes)->capture_default_str();
  app.add_option("--record", side_options.record);
  app.add_option("--addresses", options.addresses)->delimiter(',');
  app.add_option("--updates", options.updates)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--work-ms", options.work_ms)
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--calls", options.calls)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--targets", options.targets)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--changed-targets", options.changed_targets)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--response", options.response)
      ->check(CLI::IsMember({"empty_resources", "patterns"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  options.length = std::chrono::duration<double>(seconds);

  auto side = make_side(side_name == "ours", target, side_options);
  const Measured measured =
      side.ok() ? kMeasures.at(measure)(options, *side) : Measured(side.status());
  if (!measured.ok()) {
    std::cerr << "signalbox_bench_client: " << side_name << ", " << measure << ": "
              << measured.status().message() << "\n";
    return 1;
  }
  std::cout << measured->dump() << "\n" << std::flush;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "signalbox_bench_client: " << error.what() << "\n";
    return 1;
  }
}
