// The token for another program's server: reads it, sends it, and keeps it out of all output.
#pragma once

#include <string>
#include <string_view>

#include "lancet/http/http_client.h"

namespace lancet {

/// Returns the token in an environment variable. Throws: ConfigError that begins with `from` if the variable is not
/// set, and as checked_token().
std::string token_of_environment(const std::string& variable, std::string_view from);

/// Returns the token. Throws: ConfigError that begins with `from` if the token cannot be part of a header.
std::string checked_token(std::string token, std::string_view from);

/// Adds the token to a request, unless it is empty.
void add_token(HttpQuestion& question, const std::string& token);

/// Returns a server's text with *** in place of the token.
std::string without_token(std::string words, const std::string& token);

}  // namespace lancet
