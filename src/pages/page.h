// A page: one file with the documents as data, and the styles and the script that turn them into a page.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lancet/pages/report_page.h"

namespace lancet::page {

// The JSON of reports as pages and tables read it: keys may be missing, also because the report is of another version.

using Json = nlohmann::ordered_json;

/// Throws: ConfigError if the text is not JSON, or not a report of lancet.
Json parse_report(const RunDocument& run);

/// Returns the value at the end of the keys; null if one of them is missing.
const Json& part(const Json& json, std::initializer_list<const char*> keys);
/// Returns nullopt if it is not a finite number.
std::optional<double> number_of(const Json& json);
/// Returns an empty text if it is not a text.
std::string text_of(const Json& json);
/// Returns a text, or a number or boolean as JSON writes it; lists with ", " between the items; an empty text for null.
std::string any_text(const Json& json);

/// Returns a hash of what must be equal so that numbers can be compared: the model and the requests.
std::string question_of(const Json& report);

/// Returns the model folder's name.
std::string model_name(const Json& report);

/// Returns the JSON on one line, without characters that could end or begin an HTML element. Invalid UTF-8 becomes
/// U+FFFD, and a whole number that JavaScript would round becomes a text.
std::string json_in_html(Json json);

/// Returns an HTML document up to its title. `policy`: what the page may load or run; everything else is forbidden.
std::string html_head(std::string_view title, std::string_view policy);
/// Returns the footer, which says from what the page was made.
std::string html_footer(std::string_view source);

/// Returns the page. `documents`: the data for `assets/main.js`. `beside`: the files that have the same content without
/// a script.
std::string page_html(std::string_view title, Json documents, std::string_view beside);

// The files of src/pages/assets, which CMake puts into the program.

/// `name`: "page.css". Throws: std::logic_error if there is no such file.
std::string_view asset(std::string_view name);

// Shared parts of plots that are separate files: text, numbers, the frame.

/// Escapes text for HTML and XML, also inside quotes. Control characters, which both forbid, become U+FFFD.
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
/// Estimates the width of common letters at 12 px. The reader's font is not known.
double text_width(std::string_view text);
/// Cuts the middle of the text and puts "…" there, so that it is at most `width` wide.
std::string fitted(const std::string& text, double width);

/// A plot's head and size.
struct SvgFrame {
  const std::string& title;
  const std::string& subtitle;
  double width = 0;
};
/// Returns the whole file: its colours, a title for screen readers, the heading, `body`.
std::string svg_document(const SvgFrame& frame, double height, const std::string& body);
/// Returns the position below the heading at which the content may begin.
double below_heading(const SvgFrame& frame);

}  // namespace lancet::page
