#include "commands.h"
#include "completion.h"
#include "completion_words.h"
#include "lancet/core/strings.h"
#include "lancet/spec/schema.h"

namespace lancet::cli {
namespace {

using Takes = CompletedOption::Takes;

constexpr std::string_view kOpening = R"(# lancet's completion for bash: source <(lancet completion bash)

_lancet_files() {
  mapfile -t COMPREPLY < <(compgen "$1" -- "$2")
  compopt -o filenames 2> /dev/null
}

)";

constexpr std::string_view kMain = R"(
_lancet() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command= options= words= files= i
  COMPREPLY=()
  # --option=value is three words to bash
  if [[ $word == = ]]; then word=; elif [[ $before == = ]]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "$command ${COMP_WORDS[i]}" in
)";

/// Returns a function that completes keys of a job for --set. The value follows without a blank.
std::string keys_function() {
  std::vector<std::string> words;
  for (const std::string& key : dotted_job_keys()) words.push_back(key + "=");
  return cat("_lancet_keys() {\n  mapfile -t COMPREPLY < <(compgen -W \"", join(words, " "), "\" -- \"$1\")\n",
             "  compopt -o nospace 2> /dev/null\n}\n");
}

constexpr std::string_view kEnd = R"(  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
  elif [[ $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  elif [[ $files ]]; then
    _lancet_files "$files" "$word"
  fi
}

# commands in the order of lancet --help, where bash is 4.4 or later
complete -o nosort -F _lancet lancet 2> /dev/null || complete -F _lancet lancet
)";

/// Returns "edit --model"|"eval --model".
std::string pattern(const std::string& path, const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(cat("\"", path, " ", name, "\""));
  return join(quoted, "|");
}

std::string compgen_flag(Takes takes) { return takes == Takes::kFolder ? "-d" : "-f"; }

/// Returns the case that completes the value of an option.
std::string value_case(const CompletedCommand& command, const CompletedOption& option) {
  std::string action = "return";  // accepts any text
  if (option.takes == Takes::kChoice)
    action = cat("mapfile -t COMPREPLY < <(compgen -W \"", join(option.choices, " "), "\" -- \"$word\"); return");
  if (option.takes == Takes::kJobKey) action = "_lancet_keys \"$word\"; return";
  if (option.takes == Takes::kFile || option.takes == Takes::kFolder)
    action = cat("_lancet_files ", compgen_flag(option.takes), " \"$word\"; return");
  return cat("    ", pattern(command.path, option.names), ") ", action, " ;;\n");
}

/// Returns the case that completes everything else of a command.
std::string command_case(const CompletedCommand& command) {
  std::vector<std::string> options, words;
  for (const CompletedOption& option : command.options)
    options.insert(options.end(), option.names.begin(), option.names.end());
  for (const CompletedCommand& below : command.commands) words.push_back(below.name);
  std::string files;
  for (const CompletedOption& positional : command.positionals) {
    if (positional.takes == Takes::kChoice) words = positional.choices;
    if (positional.takes == Takes::kFile || positional.takes == Takes::kFolder) files = compgen_flag(positional.takes);
  }
  return cat("    \"", command.path, "\") options=\"", join(options, " "), "\" words=\"", join(words, " "),
             "\" files=", files, " ;;\n");
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  const CompletedCommand root = completed_command(app);
  std::string text = cat(kOpening, keys_function(), kMain), values, commands;
  for (const CompletedCommand* command : all_commands(root)) {
    for (const CompletedCommand& below : command->commands)
      text += cat("      \"", command->path, " ", below.name, "\") command=\"", below.path, "\" ;;\n");
    for (const CompletedOption& option : command->options)
      if (option.takes != Takes::kNothing) values += value_case(*command, option);
    commands += command_case(*command);
  }
  const std::vector<std::string> launched = commands_on_ranks(app);
  text += "      \"launch --\") command=\"launch --\" ;;\n";
  for (const std::string& name : launched) text += cat("      \"launch -- ", name, "\") command=\"", name, "\" ;;\n");
  text += "    esac\n  done\n";
  commands += cat("    \"launch --\") options= words=\"", join(launched, " "), "\" files= ;;\n");
  text += cat("  case \"$command $before\" in\n", values, "  esac\n");
  text += cat("  case \"$command\" in\n", commands);
  return text + std::string(kEnd);
}

}  // namespace lancet::cli
