#include "lancet/http/server_token.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "lancet/core/strings.h"

namespace lancet {
namespace {

constexpr std::string_view kHidden = "***";

}  // namespace

std::string token_of_environment(const std::string& variable, std::string_view from) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr)
    throw ConfigError(cat(from, ": expected a variable of the environment, found none of that name"));
  return checked_token(value, from);
}

std::string checked_token(std::string token, std::string_view from) {
  if (token.empty() || !std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; }))
    throw ConfigError(cat(from, ": expected a token of letters, digits and marks on one line, got ",
                          token.empty() ? "nothing" : "something else"));
  return token;
}

void add_token(HttpQuestion& question, const std::string& token) {
  if (!token.empty()) question.headers.emplace_back("Authorization", "Bearer " + token);
}

std::string without_token(std::string words, const std::string& token) {
  for (size_t at = 0; !token.empty() && (at = words.find(token, at)) != std::string::npos; at += kHidden.size())
    words.replace(at, token.size(), kHidden);
  return words;
}

}  // namespace lancet
