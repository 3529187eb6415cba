#include "page.h"

#include <span>

#include "assets.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "svg.h"

namespace lancet {
namespace page {
namespace {

constexpr std::string_view kGenerator = "<meta name=\"generator\" content=\"lancet ";
constexpr int64_t kMostExact = int64_t{1} << 53U;  // whole numbers up to here are exact in JavaScript

/// The script's parts, each after those whose constants it takes.
constexpr const char* kScripts[] = {"dom.js",         "numbers.js",     "documents.js",       "plots.js",
                                    "edit_plots.js",  "worst_first.js", "requests.js",        "fact_strips.js",
                                    "job_section.js", "edit_page.js",   "comparison_page.js", "main.js"};
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

}  // namespace page

std::string fact_chart_script() { return page::script(page::kChartScripts); }

std::string fact_chart_style() { return cat(page::asset("plot.css"), page::asset("strips.css")); }

bool is_own_page(std::string_view html) {
  return html.substr(0, 2000).find(page::kGenerator) != std::string_view::npos;
}

}  // namespace lancet
