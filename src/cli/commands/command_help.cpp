// `lancet help`: the cheat sheet of the documents, for a terminal.
#include <iostream>
#include <span>

#include "commands.h"
#include "lancet/core/built_in_file.h"
#include "lancet/core/strings.h"

namespace lancet {

std::span<const BuiltInFile> cheat_sheet();  // made by CMake

namespace cli {
namespace {

/// The page's lines without the marks of Markdown.
std::string plain_text(std::string_view page) {
  if (page.ends_with('\n')) page.remove_suffix(1);
  std::string text;
  for (std::string line : split(page, '\n')) {
    if (line.starts_with("```")) continue;
    if (line.starts_with("# ")) line.erase(0, 2);
    text += line + "\n";
  }
  return text;
}

}  // namespace

void add_help(CLI::App& app, Action& action) {
  CLI::App& command =
      add_command(app, "help", "Print the cheat sheet: the commands that most people need.\n  lancet help");
  on_choice(command, action, [] {
    std::cout << plain_text(cheat_sheet().front().text);
    return ExitCode::kOk;
  });
}

}  // namespace cli
}  // namespace lancet
