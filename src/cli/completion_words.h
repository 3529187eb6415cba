// The parser's knowledge of the command line, in the form that the completion scripts need.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lancet::cli {

struct CompletedOption {
  enum class Takes { kNothing, kText, kFile, kFolder, kChoice, kJobKey };
  std::vector<std::string> names;  ///< names with their dashes; empty for a positional argument
  std::string help;                ///< a single line
  Takes takes = Takes::kText;
  std::vector<std::string> choices;  ///< for kJobKey: the keys, each with its "="
  bool is_repeatable = false;
};

struct CompletedCommand {
  std::string path;  ///< "import hparams"; "" for the program itself
  std::string name;
  std::string help;
  std::string group;  ///< its heading in --help
  std::vector<CompletedOption> options, positionals;
  std::vector<CompletedCommand> commands;
};

CompletedCommand completed_command(const CLI::App& app);

/// Returns the command, its commands, their commands, and so on.
std::vector<const CompletedCommand*> all_commands(const CompletedCommand& root);

}  // namespace lancet::cli
