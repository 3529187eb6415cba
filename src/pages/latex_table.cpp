#include "lancet/pages/latex_table.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "page.h"

namespace lancet {
namespace {

using page::Json;
using page::number_of;
using page::part;
using page::text_of;

/// Characters that are commands in LaTeX, or look different in its usual fonts.
constexpr std::pair<char, std::string_view> kSpelt[] = {{'\\', "\\textbackslash{}"},
                                                        {'{', "\\{"},
                                                        {'}', "\\}"},
                                                        {'#', "\\#"},
                                                        {'$', "\\$"},
                                                        {'%', "\\%"},
                                                        {'&', "\\&"},
                                                        {'_', "\\_"},
                                                        {'^', "\\textasciicircum{}"},
                                                        {'~', "\\textasciitilde{}"},
                                                        {'<', "\\textless{}"},
                                                        {'>', "\\textgreater{}"},
                                                        {'|', "\\textbar{}"},
                                                        {'`', "\\textasciigrave{}"}};
constexpr std::string_view kNothing = "--";  // a dash

/// The values of one metric in the runs of a row.
struct Figure {
  std::vector<double> values = {};

  std::optional<double> mean(size_t n_runs) const {
    if (values.empty() || values.size() != n_runs) return std::nullopt;
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  /// Returns the sample standard deviation; nullopt if there is only one run.
  std::optional<double> deviation(size_t n_runs) const {
    const std::optional<double> center = mean(n_runs);
    if (!center || n_runs < 2) return std::nullopt;
    double squares = 0;
    for (const double value : values) squares += (value - *center) * (value - *center);
    return std::sqrt(squares / static_cast<double>(n_runs - 1));
  }
};

struct Metric {
  std::string name;
  bool is_share = false;
  std::string unit;
};

/// A row of the table: a run, or the runs of a series.
struct Row {
  std::string label;
  std::vector<Json> reports;  ///< empty: the run failed
};

bool is_share(const Json& metric) {
  const std::string unit = text_of(part(metric, {"unit"}));
  return unit.empty() || unit == "share" || unit == "difference";
}

std::vector<Metric> metrics_of(std::span<const Row> rows) {
  std::vector<Metric> metrics;
  for (const Row& row : rows)
    for (const Json& report : row.reports) {
      const Json& all = part(report, {"metrics"});
      if (!all.is_object()) continue;
      for (const auto& [name, metric] : all.items())
        if (std::ranges::find(metrics, name, &Metric::name) == metrics.end())
          metrics.push_back({name, is_share(metric), text_of(part(metric, {"unit"}))});
    }
  return metrics;
}

Figure figure_of(const Row& row, const Metric& metric, const char* when) {
  Figure figure;
  for (const Json& report : row.reports)
    if (const auto value = number_of(part(report, {"metrics", metric.name.c_str(), when})))
      figure.values.push_back(*value);
  return figure;
}

/// Returns a number in LaTeX: "-0.5" with a minus sign, "1.2e-7" as a power.
std::string number_text(double value, bool share) {
  std::string text = share ? page::fixed(100 * value, 1) : page::short_number(value);
  if (const size_t mark = text.find('e'); mark != std::string::npos)
    return cat("$", text.substr(0, mark), " \\cdot 10^{", std::stoi(text.substr(mark + 1)), "}$");
  return text.starts_with('-') ? cat("$", text, "$") : text;
}

std::string figure_cell(const Figure& figure, const Metric& metric, size_t n_runs) {
  const std::optional<double> mean = figure.mean(n_runs), deviation = figure.deviation(n_runs);
  if (!mean) return std::string(kNothing);
  const std::string text = number_text(*mean, metric.is_share);
  return deviation ? cat(text, " {\\small $\\pm$ ", number_text(*deviation, metric.is_share), "}") : text;
}

std::string heading(const Metric& metric) {
  return cat(latex_text(metric.name), ", ", metric.is_share ? "\\%" : latex_text(metric.unit));
}

std::string latex_row(const std::vector<std::string>& cells) { return cat("    ", join(cells, " & "), " \\\\\n"); }

std::string latex_float(std::string_view columns, const std::string& caption, const std::string& body) {
  return cat("% lancet ", kVersion, ": lancet report --latex. In the preamble: \\usepackage{booktabs}\n",
             "\\begin{table}\n  \\centering\n  \\caption{", caption, "}\n  \\begin{tabular}{", columns,
             "}\n    \\toprule\n", body, "    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
}

/// Returns the table of one run, with what it did to each metric.
std::string metrics_table(const Row& row) {
  const Json& report = row.reports.front();
  std::string body = latex_row({"metric", "before", "after"}) + "    \\midrule\n";
  for (const Metric& metric : metrics_of({&row, 1}))
    body += latex_row({heading(metric), figure_cell(figure_of(row, metric, "before"), metric, 1),
                       figure_cell(figure_of(row, metric, "after"), metric, 1)});
  const std::string caption =
      cat(latex_text(text_of(part(report, {"method"}))), " on ", latex_text(page::model_name(report)), ", ",
          counted(part(report, {"requests"}).size(), "request"));
  return latex_float("lrr", caption, body);
}

std::string runs_table(std::span<const Row> rows) {
  const std::vector<Metric> metrics = metrics_of(rows);
  std::vector<std::string> head{"method"}, before{"unedited"};
  const auto first = std::ranges::find_if(rows, [](const Row& row) { return !row.reports.empty(); });
  if (first == rows.end()) throw ConfigError("--latex: none of the runs has a report: all failed");
  for (const Metric& metric : metrics) {
    head.push_back(heading(metric));
    Row alone{.label = {}, .reports = {first->reports.front()}};
    before.push_back(figure_cell(figure_of(alone, metric, "before"), metric, 1));
  }
  std::string body = latex_row(head) + "    \\midrule\n" + latex_row(before);
  size_t most_seeds = 1;
  for (const Row& row : rows) {
    most_seeds = std::max(most_seeds, row.reports.size());
    std::vector<std::string> cells{latex_text(row.label)};
    for (const Metric& metric : metrics)
      cells.push_back(row.reports.empty() ? "failed"
                                          : figure_cell(figure_of(row, metric, "after"), metric, row.reports.size()));
    body += latex_row(cells);
  }
  const Json& report = first->reports.front();
  std::string caption =
      cat(latex_text(page::model_name(report)), ", ", counted(part(report, {"requests"}).size(), "request"));
  if (most_seeds > 1) caption += cat("; mean $\\pm$ standard deviation over ", most_seeds, " seeds");
  return latex_float(cat("l", std::string(metrics.size(), 'r')), caption, body);
}

/// Groups the runs into series, in the order of their first runs.
std::vector<Row> rows_of(std::span<const RunDocument> runs) {
  std::vector<Row> rows;
  std::string question;
  for (const RunDocument& run : runs) {
    const std::string& label = run.series.empty() ? run.label : run.series;
    auto row = std::ranges::find(rows, label, &Row::label);
    if (row == rows.end() || run.series.empty()) row = rows.insert(rows.end(), Row{.label = label, .reports = {}});
    if (run.json.empty()) continue;
    row->reports.push_back(page::parse_report(run));
    const std::string own = page::question_of(row->reports.back());
    if (question.empty()) question = own;
    if (question != own)
      throw ConfigError(cat("--latex: ", run.label,
                            ": expected runs on the same model and requests, got another: their "
                            "numbers do not belong into one table; make one of each"));
  }
  return rows;
}

}  // namespace

std::string latex_table(std::span<const RunDocument> runs) {
  const std::vector<Row> rows = rows_of(runs);
  return rows.size() == 1 && rows.front().reports.size() == 1 ? metrics_table(rows.front()) : runs_table(rows);
}

std::string latex_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto* spelt = std::ranges::find(kSpelt, c, &std::pair<char, std::string_view>::first);
    if (spelt != std::end(kSpelt))
      out += spelt->second;
    else if (c == '-' && out.ends_with('-'))
      out += "{}-";  // LaTeX would turn two of them into a dash
    else
      out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out;
}

}  // namespace lancet
