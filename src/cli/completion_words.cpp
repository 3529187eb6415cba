#include "completion_words.h"
#include <CLI/CLI.hpp>

#include "lancet/core/strings.h"
#include "lancet/spec/schema.h"

namespace lancet::cli {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Returns the words between the braces of a type name: "{auto,f32}".
std::vector<std::string> choices_in(const std::string& type) {
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return split(std::string_view(type).substr(begin + 1, end - begin - 1), ',');
}

CompletedOption completed_option(const CLI::Option& option) {
  CompletedOption made;
  for (const std::string& name : option.get_snames()) made.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) made.names.push_back("--" + name);
  made.help = first_line(option.get_description());
  made.is_repeatable = option.get_items_expected_max() > 1;
  const std::string type = option.get_type_name();
  made.choices = choices_in(type);
  if (option.get_items_expected_max() == 0)
    made.takes = CompletedOption::Takes::kNothing;
  else if (!made.choices.empty())
    made.takes = CompletedOption::Takes::kChoice;
  else if (type.starts_with("FILE"))
    made.takes = CompletedOption::Takes::kFile;
  else if (type.starts_with("DIR"))
    made.takes = CompletedOption::Takes::kFolder;
  else if (type.starts_with("KEY=VALUE")) {
    made.takes = CompletedOption::Takes::kJobKey;
    for (const std::string& key : dotted_job_keys()) made.choices.push_back(key + "=");
  }
  return made;
}

CompletedCommand completed(const CLI::App& app, const std::string& path) {
  CompletedCommand made;
  made.path = path;
  made.name = app.get_name();
  made.help = first_line(app.get_description());
  made.group = app.get_group();
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // the option is hidden
    CompletedOption one = completed_option(*option);
    (one.names.empty() ? made.positionals : made.options).push_back(std::move(one));
  }
  for (const CLI::App* command : app.get_subcommands({}))
    made.commands.push_back(completed(*command, path.empty() ? command->get_name() : path + " " + command->get_name()));
  return made;
}

}  // namespace

CompletedCommand completed_command(const CLI::App& app) { return completed(app, ""); }

std::vector<const CompletedCommand*> all_commands(const CompletedCommand& root) {
  std::vector<const CompletedCommand*> all{&root};
  for (const CompletedCommand& command : root.commands) {
    const std::vector<const CompletedCommand*> below = all_commands(command);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

}  // namespace lancet::cli
