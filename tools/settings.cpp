// SPDX-License-Identifier: Apache-2.0
#include "tools/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <istream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include <nlohmann/json.hpp>

#include "actors/io/watched_file.hpp"
#include "xds/resource_file.hpp"

namespace signalbox::tools {
namespace {

using Json = nlohmann::json;

constexpr const char* kConfigName = "SIGNALBOX_CONFIG";

// SIGNALBOX_SERVE_LISTEN for --listen of serve, SIGNALBOX_LOG_FORMAT for an option of all commands.
std::string environment_name(const CLI::App& command, const CLI::Option& option) {
  const std::string of_command =
      command.get_parent() == nullptr ? "" : absl::StrCat(command.get_name(), "_");
  const std::string name = absl::StrCat("SIGNALBOX_", of_command, option.get_lnames().front());
  return absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}}));
}

// An empty variable counts as unset, as it does for CLI11.
bool is_set(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value != nullptr && *value != '\0';
}

bool is_hidden(const CLI::App& command) {
  return command.get_parent() != nullptr && command.get_group().empty();
}

// Whether the option may come from the environment and from a file.
bool is_setting(const CLI::App& command, const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return !names.empty() && !option.get_group().empty() && !is_hidden(command) &&
         names.front() != "help" && names.front() != "version" && names.front() != "config";
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !is_hidden(*command); });
}

std::string file_of(const CLI::App& app) {
  return app.get_config_ptr()->as<std::string>();
}

bool asks_for_help(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return app.count("--help") > 0 ||
         std::any_of(chosen.begin(), chosen.end(), [](const CLI::App* command) {
           return command->count("--help") > 0;
         });
}

// Reads the file of --config. from_config() returns the file's values for the chosen command,
// without those that a variable of the environment replaces.
class ConfigFile final : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // The stream is not used: the file is read within the limits of every file of signalbox.
  std::vector<CLI::ConfigItem> from_config(std::istream& /*opened*/) const override {
    if (asks_for_help(app_)) return {};
    const Json root = read();
    if (!root.is_object()) refuse("expected an object with a key for each command");
    std::vector<CLI::ConfigItem> kept;
    for (const auto& [key, value] : root.items()) {
      if (const CLI::App* const command = command_named(key))
        add_section(*command, value, kept);
      else
        add(app_, key, value, kept);
    }
    return kept;
  }

 private:
  [[noreturn]] void refuse(absl::string_view why) const {
    throw CLI::ConfigError(absl::StrCat("--config ", file_of(app_), ": ", why));
  }

  Json read() const {
    const std::string path = file_of(app_);
    const auto text = actors::read_file(path);
    if (!text.ok()) throw CLI::ConfigError(absl::StrCat("--config ", text.status().message()));
    auto document = xds::parse_file_document(*text, xds::format_of(path), path, xds::Limits{});
    if (!document.ok())
      throw CLI::ConfigError(absl::StrCat("--config ", document.status().message()));
    return std::move(document->root);
  }

  const CLI::App* command_named(const std::string& name) const {
    for (const CLI::App* command : commands_of(app_)) {
      if (command->get_name() == name) return command;
    }
    return nullptr;
  }

  void add_section(const CLI::App& command,
                   const Json& section,
                   std::vector<CLI::ConfigItem>& kept) const {
    if (!section.is_object())
      refuse(absl::StrCat(command.get_name(), ": expected an object with the command's options"));
    for (const auto& [name, value] : section.items())
      add(command, name, value, kept);
  }

  void add(const CLI::App& command,
           const std::string& name,
           const Json& value,
           std::vector<CLI::ConfigItem>& kept) const {
    const CLI::Option* const option = command.get_option_no_throw("--" + name);
    if (option == nullptr || !is_setting(command, *option)) refuse_name(command, name);
    const bool is_chosen = &command == &app_ || app_.got_subcommand(command.get_name());
    if (!is_chosen || is_set(environment_name(command, *option))) return;
    CLI::ConfigItem item;
    if (&command != &app_) item.parents = {command.get_name()};
    item.name = name;
    item.inputs = texts_of(command, name, value);
    kept.push_back(std::move(item));
  }

  [[noreturn]] void refuse_name(const CLI::App& command, const std::string& name) const {
    if (&command != &app_)
      refuse(absl::StrCat(command.get_name(), ": there is no option '--", name, "'"));
    const auto commands = commands_of(app_);
    refuse(absl::StrCat("there is no command '",
                        name,
                        "'; there are: ",
                        absl::StrJoin(commands, ", ", [](std::string* out, const CLI::App* known) {
                          out->append(known->get_name());
                        })));
  }

  std::vector<std::string> texts_of(const CLI::App& command,
                                    const std::string& name,
                                    const Json& value) const {
    std::vector<std::string> texts;
    for (const Json& one : value.is_array() ? value : Json::array({value})) {
      if (one.is_null() || one.is_structured())
        refuse(absl::StrCat(command.get_name(),
                            ": ",
                            name,
                            ": expected a text, a number, true or false, or a list of them"));
      texts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    }
    return texts;
  }

  const CLI::App& app_;
};

// Help has one line for all names in the environment, not a name for each option.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    const std::string text = CLI::Formatter::make_option_opts(option);
    const std::string& name = option->get_envname();
    return name.empty() ? text
                        : absl::StrReplaceAll(text, {{absl::StrCat(" (Env:", name, ")"), ""}});
  }
};

void name_in_environment(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (is_setting(command, *option)) option->envname(environment_name(command, *option));
  }
}

bool is_among(const std::vector<std::string>& arguments, const std::string& option) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return argument == option || absl::StartsWith(argument, option + "=");
  });
}

}  // namespace

void add_settings(CLI::App& app) {
  // CLI11 reads the environment after the file. ConfigFile keeps the environment's priority.
  const bool is_named = is_set(kConfigName);
  CLI::Option* const config =
      app.set_config("--config",
                     is_named ? std::getenv(kConfigName) : "",
                     "Options from this file, YAML or JSON: for each\ncommand an object with "
                     "options as keys",
                     is_named);
  config->type_name("FILE");
  app.config_formatter(std::make_shared<ConfigFile>(app));
  app.formatter(std::make_shared<HelpFormatter>());
  name_in_environment(app);
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    command->formatter(app.get_formatter());
    for (CLI::App* part : command->get_subcommands([](const CLI::App*) { return true; }))
      part->formatter(app.get_formatter());
    // Variables are named for the chosen command only: CLI11 would also check the values of named
    // variables of other commands.
    command->preparse_callback([command](std::size_t) { name_in_environment(*command); });
  }
}

std::string place_of(const CLI::App& app,
                     const std::vector<std::string>& arguments,
                     const std::string& error) {
  std::vector<const CLI::App*> commands{&app};
  for (const CLI::App* chosen : app.get_subcommands())
    commands.push_back(chosen);
  for (const CLI::App* command : commands) {
    for (const CLI::Option* option : command->get_options()) {
      if (!is_setting(*command, *option)) continue;
      const std::string name = "--" + option->get_lnames().front();
      if (!absl::StartsWith(error, name + ":") || option->count() == 0 || is_among(arguments, name))
        continue;
      const std::string variable = environment_name(*command, *option);
      return is_set(variable) ? absl::StrCat(" (from ", variable, " in the environment)")
                              : absl::StrCat(" (from ", file_of(app), ")");
    }
  }
  return "";
}

}  // namespace signalbox::tools
