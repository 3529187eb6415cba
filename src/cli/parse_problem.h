// Messages about a command line that cannot be parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lancet::cli {

/// Returns the command, what is wrong, a similar word that may be meant, and where to find help. `app` has just thrown
/// `error`.
std::string parse_problem(const CLI::App& app, const CLI::ParseError& error);

/// Whether an unknown word is in the place of a command, so that there is nothing to give help about. `app` has just
/// parsed.
bool has_unknown_command(const CLI::App& app);

}  // namespace lancet::cli
