// `lancet completion`: scripts for shells.
#include <iostream>
#include <memory>

#include "commands.h"
#include "completion.h"

namespace lancet::cli {

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("completion",
                                         "Print a script that lets a shell complete lancet's command line.\n"
                                         "  source <(lancet completion bash)");
  command->add_option("shell", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}).description(""))
      ->type_name("{bash,zsh}");
  command->callback([shell, &app, &action] {
    action = [shell, &app] {
      std::cout << (*shell == "bash" ? bash_completion(app) : zsh_completion(app));
      return ExitCode::kOk;
    };
  });
}

}  // namespace lancet::cli
