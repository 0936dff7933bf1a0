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

// The names of the command and of the commands that it is a part of: "load", "merge" for `load
// merge`. None for the options of all commands.
std::vector<std::string> path_of(const CLI::App& command) {
  if (command.get_parent() == nullptr) return {};
  std::vector<std::string> path = path_of(*command.get_parent());
  path.push_back(command.get_name());
  return path;
}

std::string name_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? command.get_name()
                                         : absl::StrJoin(path_of(command), " ");
}

// SIGNALBOX_SERVE_LISTEN for "listen" of the path "serve".
std::string variable_of(std::vector<std::string> path, const std::string& option) {
  path.insert(path.begin(), "SIGNALBOX");
  path.push_back(option);
  return absl::AsciiStrToUpper(absl::StrReplaceAll(absl::StrJoin(path, "_"), {{"-", "_"}}));
}

// SIGNALBOX_SERVE_LISTEN for --listen of serve, SIGNALBOX_LOAD_MERGE_HTML for --html of load merge,
// SIGNALBOX_LOG_FORMAT for an option of all commands.
std::string environment_name(const CLI::App& command, const CLI::Option& option) {
  return variable_of(path_of(command), option.get_lnames().front());
}

// Empty: the variable is unset, or empty, which counts as unset for CLI11, too.
std::string value_of(const std::string& variable) {
  const char* const value = std::getenv(variable.c_str());
  return value == nullptr ? "" : value;
}

bool is_set(const std::string& variable) {
  return !value_of(variable).empty();
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

// The commands of `app`, or the parts of a command.
std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !is_hidden(*command); });
}

// `app`, the chosen command, and its chosen part.
std::vector<const CLI::App*> chosen_of(const CLI::App& app) {
  std::vector<const CLI::App*> chosen{&app};
  while (!chosen.back()->get_subcommands().empty())
    chosen.push_back(chosen.back()->get_subcommands().front());
  return chosen;
}

std::string file_of(const CLI::App& app) {
  return app.get_config_ptr()->as<std::string>();
}

bool asks_for_help(const CLI::App& app) {
  const auto chosen = chosen_of(app);
  return std::any_of(chosen.begin(), chosen.end(), [](const CLI::App* command) {
    return command->count("--help") > 0;
  });
}

// Reads the file of --config. from_config() returns the file's values for the chosen command or
// part and for all commands, without those that a variable of the environment replaces.
class ConfigFile final : public CLI::ConfigTOML {
 public:
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  // The stream is not used: the file is read within the limits of every file of signalbox.
  std::vector<CLI::ConfigItem> from_config(std::istream& /*opened*/) const override {
    if (asks_for_help(app_)) return {};
    const Json root = read();
    if (!root.is_object()) refuse("expected an object with a key for each command");
    std::vector<CLI::ConfigItem> kept;
    add_section(app_, root, kept);
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

  // Adds the values of a command's object. A part of the command has an object in it.
  void add_section(const CLI::App& command,
                   const Json& section,
                   std::vector<CLI::ConfigItem>& kept) const {
    if (!section.is_object())
      refuse(absl::StrCat(name_of(command), ": expected an object with the command's options"));
    const auto parts = commands_of(command);
    for (const auto& [key, value] : section.items()) {
      const auto part =
          std::find_if(parts.begin(), parts.end(), [&name = key](const CLI::App* one) {
            return one->get_name() == name;
          });
      if (part != parts.end())
        add_section(**part, value, kept);
      else
        add(command, key, value, kept);
    }
  }

  void add(const CLI::App& command,
           const std::string& name,
           const Json& value,
           std::vector<CLI::ConfigItem>& kept) const {
    const CLI::Option* const option = command.get_option_no_throw("--" + name);
    if (option == nullptr || !is_setting(command, *option)) refuse_name(command, name);
    const bool is_chosen = &command == &app_ || &command == chosen_of(app_).back();
    if (!is_chosen || is_set(environment_name(command, *option))) return;
    CLI::ConfigItem item;
    item.parents = path_of(command);
    item.name = name;
    item.inputs = texts_of(command, name, value);
    kept.push_back(std::move(item));
  }

  [[noreturn]] void refuse_name(const CLI::App& command, const std::string& name) const {
    if (&command != &app_)
      refuse(absl::StrCat(name_of(command), ": there is no option '--", name, "'"));
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
        refuse(absl::StrCat(name_of(command),
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

// Since version 2.4 CLI11 leaves out a value of the environment that is not valid. Setting it again
// throws the error that an option of the command line would give.
void refuse_bad_environment(CLI::App& app) {
  std::vector<CLI::Option*> options = app.get_options();
  for (CLI::App* command = &app; !command->get_subcommands().empty();) {
    command = command->get_subcommands().front();
    const auto more = command->get_options();
    options.insert(options.end(), more.begin(), more.end());
  }
  for (CLI::Option* option : options) {
    if (option->count() > 0 || !is_set(option->get_envname())) continue;
    option->add_result(value_of(option->get_envname()));
    option->run_callback();
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
  CLI::Option* const config =
      app.set_config("--config",
                     value_of(kConfigName),
                     "Options from this file, YAML or JSON: for each\ncommand an object with "
                     "options as keys",
                     is_set(kConfigName));
  config->type_name("FILE");
  app.config_formatter(std::make_shared<ConfigFile>(app));
  app.formatter(std::make_shared<HelpFormatter>());
  name_in_environment(app);
  app.parse_complete_callback([&app] { refuse_bad_environment(app); });
  const auto any = [](const CLI::App*) { return true; };
  for (CLI::App* command : app.get_subcommands(any)) {
    command->formatter(app.get_formatter());
    // Variables are named for the chosen command or part only: CLI11 would also check the values of
    // named variables of other commands.
    command->preparse_callback([command](std::size_t) { name_in_environment(*command); });
    for (CLI::App* part : command->get_subcommands(any)) {
      part->formatter(app.get_formatter());
      part->preparse_callback([command, part](std::size_t) {
        for (CLI::Option* option : command->get_options())
          option->envname("");
        name_in_environment(*part);
      });
    }
  }
}

std::vector<std::string> settings_of(const std::string& command) {
  return {variable_of({command}, ""), absl::StrCat(kConfigName, "=")};
}

std::string place_of(const CLI::App& app,
                     const std::vector<std::string>& arguments,
                     const std::string& error) {
  for (const CLI::App* command : chosen_of(app)) {
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
