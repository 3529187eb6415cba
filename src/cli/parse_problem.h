// What is said of a command line that cannot be parsed.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lancet::cli {

/// The command, what is wrong, the word that was probably meant, where help is. `app` has just thrown `error`.
std::string parse_problem(const CLI::App& app, const CLI::ParseError& error);

/// Whether a word stands where a command is expected: help is about nothing then. `app` has just been parsed.
bool has_unknown_command(const CLI::App& app);

}  // namespace lancet::cli
