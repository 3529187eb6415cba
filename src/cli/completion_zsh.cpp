#include <algorithm>

#include "completion.h"
#include "completion_words.h"
#include "lancet/core/strings.h"

namespace lancet::cli {
namespace {

using Takes = CompletedOption::Takes;

/// Quotes `text` for single quotes inside arguments of _arguments and _describe, in which colons and brackets have a
/// meaning.
std::string quoted_part(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '\'')
      made += "'\\''";
    else if (c == ':' || c == '[' || c == ']' || c == '\\')
      made += cat('\\', c);
    else
      made += c;
  }
  return made;
}

std::string function_of(const CompletedCommand& command) {
  std::string name = command.path.empty() ? "_lancet" : "_lancet_" + command.path;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// Returns the action that completes a value.
std::string action_of(const CompletedOption& option) {
  switch (option.takes) {
    case Takes::kNothing:
      return "";
    case Takes::kFile:
      return ":file:_files";
    case Takes::kFolder:
      return ":folder:_files -/";
    case Takes::kChoice:
      return cat(":choice:(", join(option.choices, " "), ")");
    case Takes::kJobKey:
      return cat(":key:compadd -S \"\" -- ", join(option.choices, " "));
    case Takes::kText:
      break;
  }
  return ":value: ";
}

std::string option_line(const CompletedOption& option, const std::string& name) {
  const std::string others = option.is_repeatable ? "*" : cat("(", join(option.names, " "), ")");
  return cat("    '", others, name, "[", quoted_part(option.help), "]", action_of(option), "' \\\n");
}

/// Returns the commands under their headings, as in --help.
std::string described_commands(const std::vector<CompletedCommand>& commands) {
  std::string text;
  for (size_t i = 0; i < commands.size();) {
    const std::string& group = commands[i].group;
    text += "      commands=(\n";
    for (; i < commands.size() && commands[i].group == group; ++i)
      text += cat("        '", quoted_part(commands[i].name), ":", quoted_part(commands[i].help), "'\n");
    text += cat("      )\n      _describe -t 'commands-", i, "' '", quoted_part(group), "' commands\n");
  }
  return text;
}

std::string commands_function(const CompletedCommand& command) {
  std::string cases;
  for (const CompletedCommand& below : command.commands)
    cases += cat("        ", below.name, ") ", function_of(below), " ;;\n");
  return cat("    '1: :->command' '*:: :->rest' && return\n  case $state in\n    command)\n",
             described_commands(command.commands), "      ;;\n    rest)\n      case $words[1] in\n", cases,
             "      esac ;;\n  esac\n");
}

std::string function_text(const CompletedCommand& command) {
  std::string text = cat(function_of(command), "() {\n  local curcontext=\"$curcontext\" state line commands\n",
                         "  typeset -A opt_args\n  _arguments -C \\\n");
  for (const CompletedOption& option : command.options)
    for (const std::string& name : option.names) text += option_line(option, name);
  if (!command.commands.empty()) return cat(text, commands_function(command), "}\n\n");
  for (const CompletedOption& positional : command.positionals)
    text += cat("    '", positional.is_repeatable ? "*" : "", action_of(positional), "' \\\n");
  return cat(text, "    && return\n}\n\n");
}

}  // namespace

std::string zsh_completion(const CLI::App& app) {
  std::string text =
      "#compdef lancet\n# lancet's completion for zsh: lancet completion zsh > FOLDER/_lancet, FOLDER in "
      "$fpath\n\n";
  const CompletedCommand root = completed_command(app);
  for (const CompletedCommand* command : all_commands(root)) text += function_text(*command);
  return text + "if [[ $funcstack[1] == _lancet ]]; then _lancet \"$@\"; else compdef _lancet lancet; fi\n";
}

}  // namespace lancet::cli
