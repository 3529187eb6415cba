#include "parse_problem.h"

#include <algorithm>
#include <vector>

#include "lancet/core/strings.h"

namespace lancet::cli {
namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string with_nearest(const std::string& what, const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest(word, known);
  return near.empty() ? what : cat(what, "; did you mean ", near, "?");
}

/// Describes a word that no command or option accepts. It is reported first, because it can be the reason why something
/// else is missing.
std::string unexpected(const CLI::App& command, const std::string& word) {
  if (word.starts_with('-')) {
    const std::string name = word.substr(0, word.find('='));
    return with_nearest(cat(name, ": unknown option"), name, option_names(command));
  }
  const std::vector<std::string> commands = command_names(command);
  if (commands.empty()) return cat("'", word, "': one argument too many");
  return with_nearest(cat("'", word, "': unknown command"), word, commands);
}

/// Returns the words that were not accepted, in their order.
std::vector<std::string> words_left(const CLI::App& app) {
  std::vector<std::string> extras = app.remaining(true);
  std::erase(extras, "--");
  return extras;
}

}  // namespace

bool has_unknown_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> extras = words_left(app);
  return !command_names(*command).empty() && !extras.empty() && !extras.front().starts_with('-');
}

std::string parse_problem(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  const std::vector<std::string> extras = words_left(app);
  std::string what = error.what();
  if (!extras.empty())
    what = unexpected(*command, extras.front());
  else if (const std::vector<std::string> commands = command_names(*command); !commands.empty())
    what = "expected a command: " + join(commands);
  return cat(name, ": ", what, "\nWhat there is: ", name, " --help");
}

}  // namespace lancet::cli
