// Scripts that let a shell complete lancet's command line. They are made of the parser, so they know what it knows:
// subcommands, options, what an option takes. An option that takes a file or a folder has the type name FILE or DIR,
// one with choices {one,other}.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace lancet::cli {

/// Returns completion for bash 4 and later: `source <(lancet completion bash)`.
std::string bash_completion(const CLI::App& app);

/// Returns completion for zsh: the file _lancet in a folder of $fpath, or `source <(lancet completion zsh)` after
/// compinit.
std::string zsh_completion(const CLI::App& app);

}  // namespace lancet::cli
