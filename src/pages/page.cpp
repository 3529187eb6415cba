#include "page.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>

#include "lancet/core/built_in_file.h"
#include "lancet/core/error.h"
#include "lancet/core/hash.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"

namespace lancet {

std::span<const BuiltInFile> report_assets();  // made by CMake

namespace page {
namespace {

constexpr std::string_view kGenerator = "<meta name=\"generator\" content=\"lancet ";
constexpr int64_t kMostExact = int64_t{1} << 53U;  // whole numbers up to here are exact in JavaScript

/// The script's parts, each after those whose constants it takes.
constexpr const char* kScripts[] = {
    "dom.js",         "numbers.js",   "documents.js",       "plots.js",       "edit_plots.js",
    "worst_first.js", "answers.js",   "requests.js",        "fact_strips.js", "job_section.js",
    "edit_page.js",   "seed_runs.js", "comparison_page.js", "main.js"};
constexpr const char* kChartScripts[] = {"dom.js",         "numbers.js",     "documents.js",
                                         "worst_first.js", "fact_strips.js", "fact_chart.js"};

std::string script(std::span<const char* const> names) {
  std::string text = "(() => {\n\"use strict\";\n";
  for (const char* name : names) text += cat(asset(name), "\n");
  return text + "})();\n";
}

void keep_exact(Json& json) {
  if (json.is_structured())
    for (Json& child : json) keep_exact(child);
  else if (json.is_number_unsigned() ? json.get<uint64_t>() > uint64_t{kMostExact}
                                     : json.is_number_integer() && json.get<int64_t>() < -kMostExact)
    json = json.dump();
}

}  // namespace

std::string json_in_html(Json json) {
  keep_exact(json);
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i, 3);
    if (text[i] == '<' || text[i] == '>' || text[i] == '&') {
      out += text[i] == '<' ? "\\u003c" : text[i] == '>' ? "\\u003e" : "\\u0026";
    } else if (rest == "\xE2\x80\xA8" || rest == "\xE2\x80\xA9") {  // ends of lines to older scripts
      out += rest.back() == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string html_head(std::string_view title, std::string_view policy) {
  return cat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", kGenerator, kVersion,
             "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ", policy,
             "\">\n<link rel=\"icon\" href=\"data:,\">\n<title>", escaped(title), "</title>\n");
}

std::string html_footer(std::string_view source) {
  return cat("<footer class=\"wrap\">Written by lancet ", kVersion, " from ", source,
             ". This file needs no network.</footer>\n");
}

std::string page_html(std::string_view title, Json documents, std::string_view beside) {
  const std::string data = json_in_html(std::move(documents)),
                    styles = cat(asset("plot.css"), asset("page.css"), asset("strips.css")), code = script(kScripts);
  // No text of the documents can hold the hash of them all: the policy runs the one script, and forbids every request.
  const std::string nonce = ContentHash().add(data).add(styles).add(code).hex();
  const std::string policy = cat("style-src 'nonce-", nonce, "'; script-src 'nonce-", nonce,
                                 "'; img-src data:; base-uri 'none'; form-action 'none'");
  return cat(html_head(title, policy), "<style nonce=\"", nonce, "\">\n", styles, "</style>\n</head>\n<body>\n",
             "<noscript><p class=\"wrap\">Scripts are off, and this page is made by one: allow it, or read ", beside,
             ".</p></noscript>\n<div id=\"page\"></div>\n", html_footer("report.json"),
             "<script type=\"application/json\" id=\"documents\">", data, "</script>\n<script nonce=\"", nonce, "\">\n",
             code, "</script>\n</body>\n</html>\n");
}

std::string_view asset(std::string_view name) {
  const auto files = report_assets();
  const auto found = std::ranges::find(files, name, &BuiltInFile::name);
  if (found == files.end()) throw std::logic_error("no such asset: " + std::string(name));
  return found->text;
}

Json parse_report(const RunDocument& run) {
  Json json;
  try {
    json = parse_ordered_json(run.json);
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat(run.label, ": report.json: expected JSON: ", problem.what()));
  }
  const std::string format = text_of(part(json, {"format"}));
  if (!format.starts_with("lancet-report-"))
    throw ConfigError(cat(run.label, ": report.json: format: expected lancet-report-1, got '", format,
                          "'. Is it the report of lancet edit?"));
  return json;
}

const Json& part(const Json& json, std::initializer_list<const char*> keys) {
  static const Json kNone;
  const Json* at = &json;
  for (const char* key : keys) {
    if (!at->is_object()) return kNone;
    const auto found = at->find(key);
    if (found == at->end()) return kNone;
    at = &*found;
  }
  return *at;
}

std::optional<double> number_of(const Json& json) {
  if (!json.is_number()) return std::nullopt;
  const double value = json.get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string text_of(const Json& json) { return json.is_string() ? json.get<std::string>() : std::string(); }

std::string any_text(const Json& json) {
  if (json.is_null()) return "";
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<std::string> items;
  for (const Json& item : json) items.push_back(any_text(item));
  return join(items);
}

std::string model_name(const Json& report) {
  const std::filesystem::path folder(text_of(part(report, {"model", "folder"})));
  const std::string name = folder.filename().string();
  return name.empty() ? folder.parent_path().filename().string() : name;
}
namespace {

constexpr double kLetter = 6.6;  // mean width at 12 px of the fonts that readers have

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

double text_width(std::string_view text) { return kLetter * static_cast<double>(count_characters(text)); }

std::string fitted(const std::string& text, double width) {
  const auto most = static_cast<size_t>(std::max(3.0, width / kLetter));
  const size_t n = count_characters(text);
  if (n <= most) return text;
  const size_t begin = (most - 1) / 2, end = most - 1 - begin;
  return text.substr(0, bytes_of_characters(text, begin)) + "…" + text.substr(bytes_of_characters(text, n - end));
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

}  // namespace page

std::string fact_chart_script() { return page::script(page::kChartScripts); }

std::string fact_chart_style() { return cat(page::asset("plot.css"), page::asset("strips.css")); }

bool is_own_page(std::string_view html) {
  return html.substr(0, 2000).find(page::kGenerator) != std::string_view::npos;
}

}  // namespace lancet
