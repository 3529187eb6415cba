// A page: one file with the documents as data, and the styles and the script that make it of them.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lancet/pages/report_page.h"

namespace lancet::page {

// A report's JSON as pages and tables take it: whatever is there, of reports of other versions too.

using Json = nlohmann::ordered_json;

/// Throws: ConfigError for what is no JSON, or no report of lancet.
Json parse_report(const RunDocument& run);

/// What lies at the end of the keys; null where one of them is missing.
const Json& part(const Json& json, std::initializer_list<const char*> keys);
/// nullopt: not a finite number.
std::optional<double> number_of(const Json& json);
/// Empty: not a text.
std::string text_of(const Json& json);
/// Text, or a number or boolean as JSON has it; lists with ", " between. Empty: null.
std::string any_text(const Json& json);

/// Hashes what has to be equal for numbers to be compared: the model and the requests.
std::string question_of(const Json& report);

/// The model folder's name.
std::string model_name(const Json& report);

/// The JSON on one line, of which nothing can end or open an element of HTML. Invalid UTF-8 becomes U+FFFD, and a whole
/// number that JavaScript would round becomes a text.
std::string json_in_html(Json json);

/// A document up to its title. `policy`: what it may load or run, beside nothing.
std::string html_head(std::string_view title, std::string_view policy);
/// Says what the page was made of.
std::string html_footer(std::string_view source);

/// Writes the page. `documents`: what `assets/main.js` reads. `beside`: the files that say the same without a script.
std::string page_html(std::string_view title, Json documents, std::string_view beside);

// The files of src/pages/assets, which CMake puts into the program.

/// `name`: "page.css". Throws: std::logic_error when there is none.
std::string_view asset(std::string_view name);

// What plots as files share: text, numbers, the frame.

/// Escapes text for HTML and XML alike, also within quotes. Control characters, which neither may hold, become U+FFFD.
std::string escaped(std::string_view text);

std::string fixed(double value, int digits);
/// Formats the number with at most four digits, no trailing zeros: "0.05", "12.5", "1.2e+06".
std::string short_number(double value);

/// A text in a plot; `kind` is its class.
struct SvgText {
  double x = 0, y = 0;
  std::string_view anchor = "start";
  std::string_view kind = "p-tick";
};
std::string svg_text(const SvgText& place, std::string_view text);
/// Estimates the width of the usual letters at 12 px: a guess, since the reader's font is not known.
double text_width(std::string_view text);
/// Cuts the text in the middle with "…", so that it is at most `width` wide.
std::string fitted(const std::string& text, double width);

/// A plot's head and size.
struct SvgFrame {
  const std::string& title;
  const std::string& subtitle;
  double width = 0;
};
/// The whole file: its colours, a title for screen readers, the heading, `body`.
std::string svg_document(const SvgFrame& frame, double height, const std::string& body);
/// Place below the heading, where what follows may begin.
double below_heading(const SvgFrame& frame);

}  // namespace lancet::page
