#include "svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "assets.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

constexpr double kLetter = 6.6;  // mean width at 12 px of the fonts that readers have

bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

size_t letters_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_letter));
}

/// Bytes of the first n letters.
size_t bytes_of_letters(std::string_view text, size_t n) {
  size_t at = 0;
  while (at < text.size()) {
    if (begins_letter(text[at]) && n-- == 0) break;
    ++at;
  }
  return at;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F)
      out += "\xEF\xBF\xBD";
    else
      out += c;
  }
  return out;
}

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4g", value == 0 ? 0.0 : value);
  return text;
}

std::string svg_text(const SvgText& place, std::string_view text) {
  return cat("<text class=\"", place.kind, "\" x=\"", fixed(place.x, 1), "\" y=\"", fixed(place.y, 1),
             "\" text-anchor=\"", place.anchor, "\">", escaped(text), "</text>\n");
}

double text_width(std::string_view text) { return kLetter * static_cast<double>(letters_of(text)); }

std::string fitted(const std::string& text, double width) {
  const auto most = static_cast<size_t>(std::max(3.0, width / kLetter));
  const size_t n = letters_of(text);
  if (n <= most) return text;
  const size_t begin = (most - 1) / 2, end = most - 1 - begin;
  return text.substr(0, bytes_of_letters(text, begin)) + "…" + text.substr(bytes_of_letters(text, n - end));
}

double below_heading(const SvgFrame& frame) { return frame.subtitle.empty() ? 16 : 33; }

std::string svg_document(const SvgFrame& frame, double height, const std::string& body) {
  std::string heading = svg_text({2, 16, "start", "p-title"}, fitted(frame.title, frame.width * 0.8));
  if (!frame.subtitle.empty()) heading += svg_text({2, 33, "start", "p-sub"}, fitted(frame.subtitle, frame.width));
  return cat("<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" viewBox=\"0 0 ",
             fixed(frame.width, 0), " ", fixed(std::ceil(height), 0), "\">\n<style>", asset("plot.css"),
             "svg { background: var(--card); }</style>\n<title>", escaped(frame.title),
             frame.subtitle.empty() ? "" : ": ", escaped(frame.subtitle), "</title>\n", heading, body, "</svg>\n");
}

}  // namespace lancet::page
