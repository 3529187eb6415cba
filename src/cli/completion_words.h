// What the parser tells of a command line, as the completion scripts need it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace lancet::cli {

struct CompletedOption {
  enum class Takes { kNothing, kText, kFile, kFolder, kChoice, kJobKey };
  std::vector<std::string> names;  ///< names with their dashes; of a positional one none
  std::string help;                ///< one line
  Takes takes = Takes::kText;
  std::vector<std::string> choices;  ///< kJobKey: the keys, each with its "="
  bool is_repeatable = false;
};

struct CompletedCommand {
  std::string path;  ///< "import hparams"; of the program itself ""
  std::string name;
  std::string help;
  std::string group;  ///< heading of --help below which it stands
  std::vector<CompletedOption> options, positionals;
  std::vector<CompletedCommand> commands;
};

CompletedCommand completed_command(const CLI::App& app);

/// The command, those in it, those in these, ...
std::vector<const CompletedCommand*> all_commands(const CompletedCommand& root);

}  // namespace lancet::cli
