// White space that is part of a request's text without being meant. It is told and not refused: public data sets have
// it, and figures published with them rest on it.
#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/requests/request.h"

namespace lancet {
namespace {

constexpr size_t kShown = 3;
constexpr std::string_view kWhiteSpace = " \t\n\r\f\v";

bool is_white(char c) { return kWhiteSpace.find(c) != std::string_view::npos; }

bool ends_white(std::string_view text) { return !text.empty() && is_white(text.back()); }

/// One space in front is the one that would be put there.
bool begins_white(std::string_view text) {
  if (text.starts_with(' ')) text.remove_prefix(1);
  return !text.empty() && is_white(text.front());
}

/// The request's first such text: `prompt "Rome is in "`.
std::string stray_text(const EditRequest& request) {
  const auto shown = [](const char* name, std::string_view text) {
    constexpr size_t kLongest = 60;  // its end matters
    size_t begin = text.size() > kLongest ? text.size() - kLongest : 0;
    while (begin > 0 && begin < text.size() && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80) ++begin;
    return cat(name, " \"", begin > 0 ? "..." : "", text.substr(begin), "\"");
  };
  if (ends_white(request.prompt.text)) return shown("prompt", request.prompt.text);
  if (ends_white(request.target) || begins_white(request.target)) return shown("target", request.target);
  if (const std::string truth = request.target_true.value_or(""); ends_white(truth) || begins_white(truth))
    return shown("target_true", truth);
  return "";
}

}  // namespace

std::string stray_white_space(std::span<const EditRequest> requests) {
  std::vector<std::string> examples;
  size_t count = 0;
  for (const EditRequest& request : requests) {
    const std::string stray = stray_text(request);
    if (stray.empty()) continue;
    if (++count <= kShown) examples.push_back(cat("request ", request.id, ": ", stray));
  }
  if (count == 0) return "";
  return cat(count, " of ", requests.size(),
             " have white space at the end of a prompt or around a target, which makes ",
             "other tokens (a space between the two is put there by itself): ", join(examples, "; "),
             count > kShown ? "; ..." : "");
}

}  // namespace lancet
