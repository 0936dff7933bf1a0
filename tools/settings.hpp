// SPDX-License-Identifier: Apache-2.0
//
// settings — the options of every command from the environment and from a file.
//
//   argv                             first  ─┐
//   SIGNALBOX_SERVE_LISTEN=…         second ─┼▶ [add_settings] ─▶ CLI::App ─▶ the command's options
//   --config FILE, "serve: listen:"  third  ─┘
//
// An option is taken from the first of these places that has it, else it has its default. The file
// is YAML or JSON: an object for each command, with an option's name without its dashes as key. A
// part of a command, as merge is of load, has an object within the command's object. The names of
// its variables have the command's name, too. The keys of all commands are checked. Only the values
// of the chosen command or part, and of the options that all commands have, are read.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace signalbox::tools {

/// Adds --config, and a name in the environment for every option. Hidden commands and options,
/// --help and --version get none. Preconditions: all commands and options have been added, and
/// options that a command does not know fall through to `app`.
void add_settings(CLI::App& app);

/// The beginnings of "NAME=" of the environment variables that set the options of `command`, and of
/// the one that names the file of options.
std::vector<std::string> settings_of(const std::string& command);

/// The place of the value that `error` (of CLI11) complains of: " (from NAME in the environment)"
/// or " (from FILE)". Empty: the value is among the `arguments`, or `error` names no option.
std::string place_of(const CLI::App& app,
                     const std::vector<std::string>& arguments,
                     const std::string& error);

}  // namespace signalbox::tools
