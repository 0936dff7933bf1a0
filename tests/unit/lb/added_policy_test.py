#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the example policy to signalbox by the lines of docs/develop.md, and compiles all sources
that depend on the set of policies.

  docs/develop.md: four lines   ─┐
  docs/custom_policy.md: quorum ─┴▶ copies of the files that change ─▶ the compiler, without linking

The changed copies are in a folder that is searched for headers before the project. If a place other
than the four must name each policy, that place does not compile, and the test fails. Without its
rule for plans (kSpread) the policy must not compile.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

MOST_LINES = 4
SPREAD = "lb/health/spread.cpp"
SPREAD_RULE = "  static constexpr CallSpread kSpread = CallSpread::kAlike;\n\n  std::size_t quorum"
NEIGHBOUR = (("quorum", "least_request"), ("Quorum", "LeastRequest"))

CONFIG = """
struct QuorumConfig {
  static constexpr absl::string_view kName = "quorum";
  static constexpr CallSpread kSpread = CallSpread::kAlike;

  std::size_t quorum = 1;

  friend bool operator==(const QuorumConfig&, const QuorumConfig&) = default;
};

struct LbConfig : """

HEADER = """
#pragma once

#include "lb/policy.hpp"

namespace signalbox::lb {

std::unique_ptr<Policy> make_leaf(const QuorumConfig& config, PolicyContext context);

}  // namespace signalbox::lb
"""

SOURCE = """
#include "lb/leaf/quorum.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "lb/config_of.hpp"
#include "lb/pick/pickers.hpp"

namespace signalbox::lb {
namespace {

namespace sb = signalbox;

%s
}  // namespace

std::unique_ptr<Policy> make_leaf(const QuorumConfig&, PolicyContext) {
  return std::make_unique<Quorum>();
}

}  // namespace signalbox::lb
"""

PARSER = "\nLbConfigPtr parse_quorum(const Extension& extension, const Field& field);\n"

PARSER_SOURCE = """
LbConfigPtr parse_quorum(const Extension& /*extension*/, const Field& /*field*/) {
  return make_lb_config(QuorumConfig{2});
}
"""

# Every function used in this source must compile for a policy that has only its struct and its row
# in the registry.
USE = """
#include "lb/policy_registry.hpp"

namespace signalbox {

static_assert(QuorumConfig{2} == QuorumConfig{2} && QuorumConfig{2} != QuorumConfig{3});

bool use() {
  const LbConfig config = QuorumConfig{2};
  return policy_name(config) == "quorum" && same_config(make_lb_config(config), make_lb_config(config)) &&
         lb::make_policy(config, {}) != nullptr;
}

}  // namespace signalbox
"""


def lines_of_a_policy(root):
    page = (root / "docs/develop.md").read_text()
    block = re.search(r"<!-- lines of a policy -->\n```text\n(.*?)```", page, re.DOTALL).group(1)
    return [tuple(part.strip() for part in line.split(": ", 1)) for line in block.splitlines()]


def insert_beside_neighbour(text, line, path):
    """Adds `line` after the line that does the same for least_request."""
    neighbour = line
    for own, other in NEIGHBOUR:
        neighbour = neighbour.replace(own, other)
    lines = text.splitlines()
    places = [at for at, each in enumerate(lines) if each.strip() == neighbour]
    if len(places) != 1:
        sys.exit(f"{path}: expected one line {neighbour!r}, found {len(places)}")
    lines.insert(places[0] + 1, line)
    return "\n".join(lines) + "\n"


def example_classes(root):
    """The picker and the policy of docs/custom_policy.md, with the names of types inside
    signalbox."""
    page = (root / "docs/custom_policy.md").read_text()
    source = re.search(r"<!-- file: quorum.cpp -->\n```cpp\n(.*?)```", page, re.DOTALL).group(1)
    classes = source[source.index("struct Connected {"):source.index("}  // namespace\n")]
    classes = classes.replace("sb::custom_config_of<QuorumConfig>(update)", "config_of<QuorumConfig>(update)")
    return re.sub(r"\bsb::(Policy\b|make_)", r"\1", classes)


def compile_only(command, source, overlay):
    """Compiles `source` without linking. Returns the compiler's errors; empty: none."""
    words = shlex.split(command["command"])
    kept = [words[0], "-I", str(overlay)]
    skip = 0
    for at, word in enumerate(words[1:], 1):
        if skip:
            skip -= 1
        elif word in ("-o", "-c"):
            skip = 1
        elif word in ("-include", "-Xclang"):
            skip = 1  # The precompiled header may not fit these options, and is not needed.
        elif word != "-Winvalid-pch":
            kept.append(word)
    run = subprocess.run(kept + ["-fsyntax-only", str(source)], cwd=command["directory"], capture_output=True, text=True)
    return run.stderr if run.returncode else ""


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--root", type=pathlib.Path, required=True)
    options.add_argument("--build", type=pathlib.Path, required=True)
    options = options.parse_args()
    root = options.root
    sys.path.insert(0, str(root / "tests/tidy"))
    from commands import read_commands
    commands = {entry["file"]: entry for entry in read_commands(options.build / "compile_commands.json")}

    lines = lines_of_a_policy(root)
    if len(lines) > MOST_LINES:
        sys.exit(f"docs/develop.md: a policy is at most {MOST_LINES} lines elsewhere, found {len(lines)}")

    changed = {path: insert_beside_neighbour((root / path).read_text(), line, path) for path, line in lines}
    parser = "xds/parse/lb_policy_config"
    changed["messages/lb_config.hpp"] = changed["messages/lb_config.hpp"].replace("\nstruct LbConfig : ", CONFIG)
    changed["lb/leaf/quorum.hpp"] = HEADER
    changed["lb/leaf/quorum.cpp"] = SOURCE % example_classes(root)
    changed[parser + ".hpp"] = (root / (parser + ".hpp")).read_text().replace(
        "\n}  // namespace signalbox::xds", PARSER + "\n}  // namespace signalbox::xds")
    changed[parser + ".cpp"] = (root / (parser + ".cpp")).read_text().replace(
        "\n}  // namespace signalbox::xds", PARSER_SOURCE + "\n}  // namespace signalbox::xds")
    changed["lb/use.cpp"] = USE

    # Sources that visit each policy must compile without further changes.
    like = {"lb/leaf/quorum.cpp": "lb/leaf/least_request.cpp", "lb/use.cpp": "lb/policy_registry.cpp"}
    sources = [path for path in changed if path.endswith(".cpp")]
    visits = re.compile(r"LbConfig::variant")
    for folder in ("messages", "lb", "xds", "actors", "channel", "tools"):
        for path in sorted((root / folder).rglob("*.cpp")):
            name = str(path.relative_to(root))
            if name not in sources and visits.search(path.read_text()):
                sources.append(name)

    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        overlay = pathlib.Path(folder)
        for path, text in changed.items():
            (overlay / path).parent.mkdir(parents=True, exist_ok=True)
            (overlay / path).write_text(text)
        for name in sources:
            own = overlay / name
            errors = compile_only(commands[str(root / like.get(name, name))], own if own.exists() else root / name, overlay)
            print(name, "does not compile:\n" + errors if errors else "compiles")
            failures += bool(errors)

        # A policy without a rule for plans must not compile.
        header = overlay / "messages/lb_config.hpp"
        header.write_text(header.read_text().replace(SPREAD_RULE, "  std::size_t quorum"))
        errors = compile_only(commands[str(root / SPREAD)], root / SPREAD, overlay)
        print(SPREAD, "does not compile without the rule" if "kSpread" in errors else "compiles without the rule")
        failures += "kSpread" not in errors
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
