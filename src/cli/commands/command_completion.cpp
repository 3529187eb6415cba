// `lancet completion`: scripts for shells.
#include <iostream>
#include <memory>

#include "commands.h"
#include "completion.h"

namespace lancet::cli {

void add_completion(CLI::App& app, Action& action) {
  auto shell = std::make_shared<std::string>();
  CLI::App& command = add_command(app, "completion",
                                  "Print a script that lets a shell complete lancet's command line.\n"
                                  "  source <(lancet completion bash)");
  add_option(command, "shell", *shell, "bash or zsh").required().one_of({"bash", "zsh"}).type("{bash,zsh}");
  on_choice(command, action, [shell, &app] {
    std::cout << (*shell == "bash" ? bash_completion(app) : zsh_completion(app));
    return ExitCode::kOk;
  });
}

}  // namespace lancet::cli
