// The page of an audit: plain tables, and plots as SVG. It shows only what the JSON has.
#include "lancet/pages/audit_page.h"

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/pages/plot.h"
#include "page.h"

namespace lancet {
namespace page {
namespace {

std::string percent_cell(const Json& share) {
  const std::optional<double> value = number_of(share);
  return value ? fixed(100 * *value, 1) : "";
}

std::string number_cell(const Json& number) {
  const std::optional<double> value = number_of(number);
  return value ? short_number(*value) : "";
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::string out = "<table>\n";
  for (size_t r = 0; r < rows.size(); ++r) {
    const char* cell = r == 0 ? "th" : "td";
    out += "<tr>";
    for (const std::string& text : rows[r]) out += cat("<", cell, ">", escaped(text), "</", cell, ">");
    out += "</tr>\n";
  }
  return out + "</table>\n";
}

std::string said_table(const Json& audit) {
  std::vector<std::vector<std::string>> rows{{"old answer said, %", "before", "after", "asked", "p before", "p after"}};
  for (const auto& [name, row] : part(audit, {"said"}).items())
    rows.push_back({name, percent_cell(part(row, {"before"})), percent_cell(part(row, {"after"})),
                    any_text(part(row, {"asked"})), number_cell(part(row, {"probability", "before"})),
                    number_cell(part(row, {"probability", "after"}))});
  return table(rows);
}

/// Returns a table of what the erasure did to other facts and to text.
std::string unrelated_table(const Json& audit) {
  std::vector<std::vector<std::string>> rows{{"metric", "before", "after"}};
  for (const char* part_name : {"metrics", "side_effects"})
    for (const auto& [name, figure] : part(audit, {"unrelated", part_name}).items())
      rows.push_back({name, number_cell(part(figure, {"before"})), number_cell(part(figure, {"after"}))});
  return rows.size() > 1 ? table(rows) : std::string();
}

PlotSeries series(const std::string& name, const Json& values, SeriesLook look) {
  PlotSeries line{.name = name, .look = look};
  for (const Json& value : values) {
    line.x.push_back(static_cast<double>(line.x.size()));
    line.y.push_back(number_of(value).value_or(0));
  }
  return line;
}

std::string lens_plot(const Json& audit) {
  const PlotSeries lines[] = {series("before", part(audit, {"lens", "before", "probability"}), SeriesLook::kMuted),
                              series("after", part(audit, {"lens", "after", "probability"}), SeriesLook::kAccent)};
  if (lines[0].x.empty() || lines[1].x.empty()) return {};
  return line_plot({.title = "Old answer's first token, by the logit lens",
                    .subtitle = "mean probability; grey: before",
                    .x = {.label = "layer"},
                    .y = {.label = "%", .numbers = AxisNumbers::kPercent, .low = 0.0}},
                   lines);
}

std::string relearning_part(const Json& audit) {
  const Json& curve = part(audit, {"relearning", "curve"});
  if (!curve.is_array() || curve.empty()) return "<p>Relearning was not measured.</p>\n";
  std::vector<std::vector<std::string>> rows{{"related facts trained", "prompt, %", "paraphrase, %", "returned"}};
  PlotSeries prompt{.name = "prompt"}, paraphrase{.name = "paraphrase", .look = SeriesLook::kMuted};
  for (const Json& point : curve) {
    const double facts = number_of(part(point, {"facts"})).value_or(0);
    rows.push_back({any_text(part(point, {"facts"})), percent_cell(part(point, {"prompt"})),
                    percent_cell(part(point, {"paraphrase"})), any_text(part(point, {"returned"}))});
    prompt.x.push_back(facts);
    prompt.y.push_back(number_of(part(point, {"prompt"})).value_or(0));
    if (const std::optional<double> share = number_of(part(point, {"paraphrase"}))) {
      paraphrase.x.push_back(facts);
      paraphrase.y.push_back(*share);
    }
  }
  std::vector<PlotSeries> lines;
  if (!paraphrase.x.empty()) lines.push_back(paraphrase);
  lines.push_back(prompt);
  return cat(table(rows), line_plot({.title = "Old answers that come back",
                                     .subtitle = "after training on related facts; grey: paraphrases",
                                     .x = {.label = "related facts trained"},
                                     .y = {.label = "%", .numbers = AxisNumbers::kPercent, .low = 0.0, .high = 1.0}},
                                    lines));
}

/// Returns after how many of the fact's prompts the model says the old answer, and the number of prompts.
std::string said_cell(const Json& said) {
  size_t count = 0;
  const Json& asked = part(said, {"asked"});
  for (const Json& prompt : asked)
    if (part(prompt, {"said"}) == Json(true)) ++count;
  return cat(count, "/", asked.size());
}

std::string facts_table(const Json& audit) {
  std::vector<std::vector<std::string>> rows{{"prompt", "old answer", "instead", "said before", "said after",
                                              "sampled before", "sampled after", "a sample after"}};
  for (const Json& fact : part(audit, {"facts"}))
    rows.push_back({text_of(part(fact, {"prompt"})), text_of(part(fact, {"old_answer"})),
                    text_of(part(fact, {"target"})), said_cell(part(fact, {"before"})),
                    said_cell(part(fact, {"after"})), any_text(part(fact, {"before", "sampled"})),
                    any_text(part(fact, {"after", "sampled"})), excerpt(text_of(part(fact, {"after", "sample"})), 80)});
  return table(rows);
}

Json parse_audit(std::string_view text) {
  Json json;
  try {
    json = parse_ordered_json(text);
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat("audit.json: expected JSON: ", problem.what()));
  }
  if (const std::string format = text_of(part(json, {"format"})); !format.starts_with("lancet-audit-"))
    throw ConfigError(cat("audit.json: format: expected lancet-audit-1, got '", format, "': is it of lancet erase?"));
  return json;
}

}  // namespace
}  // namespace page

using namespace page;

std::string render_audit(std::string_view json) {
  const Json audit = parse_audit(json);
  const std::string title = cat("Audit of ", any_text(part(audit, {"erased"})), " erased facts: ", model_name(audit));
  return cat(html_head(title, "style-src 'unsafe-inline'; img-src data:"), "<style>\n", asset("page.css"),
             "</style>\n</head>\n<body>\n<div class=\"wrap\">\n<h1>", escaped(title), "</h1>\n<p>What follows was ",
             escaped(text_of(part(audit, {"caution"}))), ".</p>\n",
             "<p>The model without these facts: ", escaped(text_of(part(audit, {"output", "folder"}))), ". It holds ",
             escaped(text_of(part(audit, {"output", "holds"}))), ".</p>\n<h2>Is the old answer still said?</h2>\n",
             said_table(audit), "<h2>By layer</h2>\n", lens_plot(audit), "<h2>After relearning</h2>\n",
             relearning_part(audit), "<h2>Everything else</h2>\n", unrelated_table(audit), "<h2>Facts</h2>\n",
             facts_table(audit), "<p>", escaped(text_of(part(audit, {"protocol"}))), ".</p>\n</div>\n",
             html_footer("audit.json"), "</body>\n</html>\n");
}

}  // namespace lancet
