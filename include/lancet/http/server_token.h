// The token that another program's server asks for: where it comes from, how it is sent, and that it is shown nowhere.
#pragma once

#include <string>
#include <string_view>

#include "lancet/http/http_client.h"

namespace lancet {

/// Returns the token in a variable of the environment. Throws: ConfigError that begins with `from` where there is no
/// such variable, and as checked_token() does.
std::string token_of_environment(const std::string& variable, std::string_view from);

/// Returns the token. Throws: ConfigError that begins with `from` for one that cannot stand in a header.
std::string checked_token(std::string token, std::string_view from);

/// Sends the token along; an empty one is none.
void add_token(HttpQuestion& question, const std::string& token);

/// Returns a server's words with *** in the place of the token.
std::string without_token(std::string words, const std::string& token);

}  // namespace lancet
