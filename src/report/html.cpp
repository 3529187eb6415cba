#include "html.h"

#include <cmath>

#include "assets.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"

namespace lancet {
namespace page {
namespace {

constexpr std::string_view kGenerator = "<meta name=\"generator\" content=\"lancet ";

}  // namespace

std::string isolated(std::string_view text, std::string_view css_class) {
  return cat("<bdi dir=\"auto\"", css_class.empty() ? "" : cat(" class=\"", css_class, "\""), ">", escaped(text),
             "</bdi>");
}

std::string bare_value(const std::optional<double>& value, const MetricFigures& metric) {
  if (!value) return "n/a";
  return metric.is_share() ? fixed(100 * *value, 1) : short_number(*value);
}

std::string value_text(const std::optional<double>& value, const MetricFigures& metric) {
  const std::string bare = bare_value(value, metric);
  return value ? cat(bare, "\u00A0", metric.is_share() ? "%" : metric.unit) : bare;
}

std::string interval_text(const Interval& interval, const MetricFigures& metric) {
  return cat(bare_value(interval.low, metric), "\u2009–\u2009", bare_value(interval.high, metric));
}

std::string seconds_text(double seconds) {
  if (seconds < 10) return cat(short_number(std::round(seconds * 100) / 100), " s");
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 120) return cat(whole, " s");
  if (whole < 7200) return cat(whole / 60, " min ", whole % 60, " s");
  return cat(whole / 3600, " h ", whole % 3600 / 60, " min");
}

std::string fact(std::string_view name, const std::string& html) {
  return html.empty() ? "" : cat("<div><dt>", name, "</dt><dd>", html, "</dd></div>\n");
}

std::string page_html(const Page& page) {
  std::string links, body;
  for (const Section& section : page.sections) {
    links += cat("<a href=\"#", section.id, "\">", section.title, "</a>\n");
    body += cat("<section id=\"", section.id, "\" aria-labelledby=\"", section.id, "-title\">\n<h2 id=\"", section.id,
                "-title\">", section.title, "</h2>\n",
                section.lead.empty() ? "" : cat("<p class=\"lead\">", section.lead, "</p>\n"), section.body,
                "</section>\n");
  }
  // The policy forbids every request: what a text of the report might smuggle in can fetch nothing.
  return cat("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n", kGenerator, kVersion,
             "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n",
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; ",
             "script-src 'unsafe-inline'; img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>",
             escaped(page.title), "</title>\n<style>\n", asset("plot.css"), asset("page.css"),
             "</style>\n</head>\n<body>\n", "<header class=\"top\"><div class=\"wrap\">\n", page.header,
             "</div></header>\n", "<nav aria-label=\"Sections\"><div class=\"wrap\">\n", links,
             "</div></nav>\n<main class=\"wrap\">\n", body, "</main>\n<footer class=\"wrap\">Written by lancet ",
             kVersion, " from report.json. This file needs no network.</footer>\n", page.data, "</body>\n</html>\n");
}

std::string figures(const std::vector<std::pair<std::string, std::string>>& plots_and_captions) {
  std::string out;
  for (const auto& [plot, caption] : plots_and_captions)
    out += cat("<figure class=\"card\">\n", plot,
               caption.empty() ? "" : cat("<figcaption>", caption, "</figcaption>\n"), "</figure>\n");
  return cat("<div class=\"plots\">\n", out, "</div>\n");
}

}  // namespace page

bool is_own_page(std::string_view html) {
  return html.substr(0, 2000).find(page::kGenerator) != std::string_view::npos;
}

}  // namespace lancet
