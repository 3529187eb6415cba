// Scripts with which a shell completes lancet's command line. They are made from the parser, so they know its
// subcommands, options, and the values of options. An option with a file or a folder as its value has the type name
// FILE or DIR, one with choices has {one,other}.
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
