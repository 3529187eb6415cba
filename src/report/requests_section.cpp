// Every request, the worst first. The first rows are part of the page; of the others the data is, from which the
// script makes rows when they are looked for.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "assets.h"
#include "edit_sections.h"
#include "lancet/core/strings.h"

namespace lancet::page {
namespace {

constexpr size_t kRowsInPage = 200;

const Json& requests_of(const EditView& view) { return part(view.report, {"requests"}); }

/// The metrics that requests have.
std::vector<MetricFigures> row_metrics(const EditView& view) {
  std::vector<MetricFigures> metrics;
  for (const MetricFigures& metric : view.metrics)
    if (std::any_of(requests_of(view).begin(), requests_of(view).end(), [&](const Json& request) {
          return !part(request, {"metrics", metric.name.c_str()}).is_null();
        }))
      metrics.push_back(metric);
  return metrics;
}

std::optional<double> of_metric(const Json& request, const MetricFigures& metric, const char* when) {
  return number_of(part(request, {"metrics", metric.name.c_str(), when}));
}

bool failed(const Json& request) { return part(request, {"verdict", "success"}) == false; }

/// Mean over the shares of how good each is, 1 at best; requests that were left out come first, then edits that did not
/// take.
double goodness(const Json& request, const std::vector<MetricFigures>& metrics) {
  if (part(request, {"skipped"}).is_string()) return -2;
  double sum = 0, n = 0;
  for (const MetricFigures& metric : metrics) {
    const auto after = of_metric(request, metric, "after");
    if (!after || !metric.is_share() || metric.better == Better::kNone) continue;
    sum += metric.better == Better::kHigher ? *after : 1 - *after;
    ++n;
  }
  return (n > 0 ? sum / n : 1) - (failed(request) ? 1 : 0);
}

std::vector<size_t> worst_first(const Json& requests, const std::vector<MetricFigures>& metrics) {
  std::vector<double> good, loss;
  for (const Json& request : requests) {
    good.push_back(goodness(request, metrics));
    loss.push_back(number_of(part(request, {"value", "final_loss"})).value_or(0));
  }
  std::vector<size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return good[a] != good[b] ? good[a] < good[b] : loss[a] > loss[b]; });
  return order;
}

/// "; weights followed 81.2 % of the way (layer 0: 80.1 %, layer 1: 82.5 %)"; empty: layers are asked for nothing.
std::string realised_text(const Json& request) {
  const auto total = number_of(part(request, {"value", "realised", "total"}));
  if (!total) return "";
  std::vector<std::string> layers;
  const Json& by_layer = part(request, {"value", "realised", "layers"});
  if (by_layer.is_object())
    for (const auto& [layer, share] : by_layer.items())
      if (const auto number = number_of(share)) layers.push_back(cat("layer ", layer, ": ", percent(*number)));
  return cat("; weights followed ", percent(*total), " of the way",
             layers.size() > 1 ? cat(" (", join(layers), ")") : "");
}

/// "loss 8.12 → 0.049 in 14 steps", and how far the weights followed; empty: the method has none.
std::string value_line(const Json& request) {
  const auto initial = number_of(part(request, {"value", "initial_loss"}));
  const auto last = number_of(part(request, {"value", "final_loss"}));
  const auto steps = number_of(part(request, {"value", "steps"}));
  if (!initial && !last) return "";
  std::string line = "loss";
  if (initial) line += " " + short_number(*initial);
  if (last) line += " → " + short_number(*last);
  if (steps && *steps > 0) line += " in " + counted(static_cast<size_t>(*steps), "step");
  return line + realised_text(request);
}

/// Why the edit did not take, unless it was left out, which is said already.
std::string why_line(const Json& request) {
  return part(request, {"skipped"}).is_string() ? "" : text_of(part(request, {"verdict", "why"}));
}

/// A part of a row; the script fills rows by these classes, so it is there, hidden, also without a text.
std::string row_part(const char* tag, const char* css_class, const std::string& html) {
  return cat("<", tag, " class=\"", css_class, "\"", html.empty() ? " hidden" : "", ">", html, "</", tag, ">");
}

/// A text with a label, which are there or hidden together.
std::string labelled(const char* label, const char* css_class, const std::string& html) {
  const char* hidden = html.empty() ? " hidden" : "";
  return cat("<div data-part class=\"said small\"", hidden, "><span class=\"soft\">", label,
             "</span> <bdi dir=\"auto\" class=\"", css_class, "\">", html, "</bdi></div>\n");
}

std::string chip_html(const Json& request, const MetricFigures& metric) {
  const auto before = of_metric(request, metric, "before"), after = of_metric(request, metric, "after");
  const auto shown = [&](const std::optional<double>& value) {
    if (!value) return std::string("–");
    return short_number(metric.is_share() ? std::round(1000 * *value) / 10 : *value);
  };
  const bool low =
      after && metric.is_share() &&
      ((metric.better == Better::kHigher && *after < 1) || (metric.better == Better::kLower && *after > 0));
  return cat("<li", before || after ? "" : " hidden", "><span class=\"name\">", escaped(metric.name),
             "</span><span class=\"num\">", shown(before), " → <b", low ? " class=\"low\"" : "", ">", shown(after),
             "</b></span></li>\n");
}

std::string row_html(const Json& request, size_t place, const std::vector<MetricFigures>& metrics) {
  const std::string target = text_of(part(request, {"target"})), truth = text_of(part(request, {"target_true"}));
  std::string chips;
  for (const MetricFigures& metric : metrics) chips += chip_html(request, metric);
  return cat("<article class=\"row\" title=\"", escaped(any_text(part(request, {"id"}))), "\"><div class=\"what\">\n",
             "<div class=\"said\"><span class=\"number\">#", place + 1, "</span><bdi dir=\"auto\" class=\"prompt\">",
             escaped(text_of(part(request, {"prompt"}))),
             "</bdi> <span class=\"to\">→ <bdi dir=\"auto\" class=\"to-text\">", escaped(target),
             "</bdi></span> <span data-part class=\"small soft\"", truth.empty() ? " hidden" : "",
             ">instead of <bdi dir=\"auto\" class=\"true\">", escaped(truth), "</bdi></span></div>\n",
             labelled("before", "before", marked(continuation_of(request, "before"), target)),
             labelled("after", "after", marked(continuation_of(request, "after"), target)),
             row_part("div", "skipped", escaped(text_of(part(request, {"skipped"})))),
             row_part("div", "why", escaped(why_line(request))), row_part("div", "value", escaped(value_line(request))),
             "</div>\n<ul class=\"chips\">\n", chips, "</ul></article>\n");
}

std::string option(const std::string& value, const std::string& text) {
  return cat("<option value=\"", escaped(value), "\">", escaped(text), "</option>\n");
}

std::string tools_html(const std::vector<MetricFigures>& metrics) {
  std::string orders = option("worst", "worst first") + option("file", "as in the file") +
                       option("loss", "largest final loss") + option("steps", "most steps");
  for (const MetricFigures& metric : metrics)
    if (metric.better != Better::kNone)
      orders +=
          option("metric:" + metric.name, cat(metric.better == Better::kLower ? "highest " : "lowest ", metric.name));
  return cat(
      "<div class=\"tools\" id=\"tools\" hidden>\n<input id=\"search\" type=\"search\" placeholder=\"Search prompts, ",
      "targets, answers, ids\" aria-label=\"Search the requests\">\n<select id=\"show\" aria-label=\"Which\">\n",
      option("all", "all requests"), option("failed", "did not take"), option("missed", "some metric missed"),
      option("worse", "some metric worse than before"), option("skipped", "left out of the edit"),
      "</select>\n<select id=\"order\" aria-label=\"Order\">\n", orders,
      "</select>\n<span id=\"request-count\" class=\"soft small\" role=\"status\"></span></div>\n");
}

Json nullable(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json nullable(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

/// What the script needs of a request; its texts where its row is not part of the page.
Json row_data(const Json& request, size_t place, const std::vector<MetricFigures>& metrics, size_t rank) {
  Json before = Json::array(), after = Json::array();
  for (const MetricFigures& metric : metrics) {
    before.push_back(nullable(of_metric(request, metric, "before")));
    after.push_back(nullable(of_metric(request, metric, "after")));
  }
  Json row = {{"place", place},
              {"before", before},
              {"after", after},
              {"loss", nullable(number_of(part(request, {"value", "final_loss"})))},
              {"steps", nullable(number_of(part(request, {"value", "steps"})))},
              {"skipped", part(request, {"skipped"}).is_string()},
              {"failed", failed(request)}};
  if (rank >= kRowsInPage)
    row["texts"] = {any_text(part(request, {"id"})),
                    text_of(part(request, {"prompt"})),
                    text_of(part(request, {"target"})),
                    nullable(text_of(part(request, {"target_true"}))),
                    nullable(continuation_of(request, "before")),
                    nullable(continuation_of(request, "after")),
                    nullable(text_of(part(request, {"skipped"}))),
                    nullable(why_line(request)),
                    nullable(value_line(request))};
  return row;
}

}  // namespace

Section requests_section(const EditView& view) {
  const Json& requests = requests_of(view);
  if (!requests.is_array() || requests.empty()) return {};
  const std::vector<MetricFigures> metrics = row_metrics(view);
  const std::vector<size_t> order = worst_first(requests, metrics);
  const size_t shown = std::min(order.size(), kRowsInPage);
  std::string rows;
  for (size_t i = 0; i < shown; ++i) rows += row_html(requests[order[i]], order[i], metrics);
  std::string lead =
      "The worst first: edits that did not take, then by the mean of a request's shares after the edit, then by its "
      "loss. "
      "Figures: before → after, shares in %.";
  if (order.size() > shown)
    lead += cat(" The page holds the rows of the worst ", shown, "; search and order bring up the other ",
                count_text(order.size() - shown),
                ".<noscript> That needs scripts, which are off: requests.csv has all.</noscript>");
  return {"requests", "Requests", lead,
          cat(tools_html(metrics), "<div class=\"card\" id=\"request-rows\">\n", rows,
              "</div>\n<p class=\"more\"><button id=\"more\" type=\"button\" hidden>Show more</button></p>\n")};
}

std::string requests_data(const EditView& view) {
  const Json& requests = requests_of(view);
  if (!requests.is_array() || requests.empty()) return "";
  const std::vector<MetricFigures> metrics = row_metrics(view);
  const std::vector<size_t> order = worst_first(requests, metrics);
  Json data = {{"metrics", Json::array()}, {"rows", Json::array()}};
  for (const MetricFigures& metric : metrics)
    data["metrics"].push_back({{"name", metric.name},
                               {"share", metric.is_share()},
                               {"better", metric.better == Better::kHigher  ? 1
                                          : metric.better == Better::kLower ? -1
                                                                            : 0}});
  for (size_t i = 0; i < order.size(); ++i) data["rows"].push_back(row_data(requests[order[i]], order[i], metrics, i));
  std::string json;
  // "<" would let a text end the element
  for (const char c : data.dump(-1, ' ', false, Json::error_handler_t::replace))
    if (c == '<')
      json += "\\u003c";
    else
      json += c;
  return cat("<script type=\"application/json\" id=\"request-data\">", json, "</script>\n<script>\n", asset("page.js"),
             "</script>\n");
}

}  // namespace lancet::page
