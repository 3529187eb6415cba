// Chooses the documents for a page: for one run its report and its job; for several runs what is compared, in groups
// with the same model and requests.
#include "lancet/pages/report_page.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "csv.h"
#include "job_differences.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "page.h"

namespace lancet {
namespace page {
namespace {

/// The parts of a report that a comparison shows.
constexpr const char* kCompared[] = {"status", "accept", "verdicts", "metrics", "model", "run", "peak_bytes"};

constexpr size_t kMostAnswers = 200;
constexpr size_t kLongestAnswer = 160;  ///< number of characters

/// Returns the answers to the first facts only, because a page of many runs would be large with all of them.
Json answers_json(const Json& report) {
  Json answers = Json::array();
  for (const Json& request : part(report, {"requests"})) {
    if (answers.size() == kMostAnswers) break;
    Json answer{{"prompt", part(request, {"prompt"})},
                {"target", part(request, {"target"})},
                {"verdict", {{"success", part(request, {"verdict", "success"})}}}};
    if (const Json& said = part(request, {"continuation"}); said.is_object())
      answer["continuation"] = {{"before", excerpt(text_of(part(said, {"before"})), kLongestAnswer)},
                                {"after", excerpt(text_of(part(said, {"after"})), kLongestAnswer)}};
    answers.push_back(std::move(answer));
  }
  return answers;
}

Json compared_part(const Json& report) {
  Json compared = Json::object();
  for (const char* key : kCompared)
    if (const Json& value = part(report, {key}); !value.is_null()) compared[key] = value;
  compared["batches"] = Json::array();
  for (const Json& batch : part(report, {"batches"}))
    compared["batches"].push_back({{"seconds", part(batch, {"seconds"})}});
  compared["requests"] = answers_json(report);
  return compared;
}

/// Describes the runs. Runs with the same number in `group` have the same model and requests.
Json runs_json(std::span<const RunDocument> documents) {
  Json runs = Json::array();
  std::map<std::string, size_t> groups;
  for (const RunDocument& document : documents) {
    Json run{{"label", document.label}, {"failure", document.failure}, {"has_job", !document.job_yaml.empty()}};
    if (!document.series.empty()) run["series"] = document.series;
    if (!document.json.empty()) {
      const Json report = parse_report(document);
      run["group"] = groups.emplace(question_of(report), groups.size()).first->second;
      run["requests"] = part(report, {"requests"}).size();
      run["report"] = compared_part(report);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

Json differences_json(std::span<const RunDocument> documents) {
  std::vector<std::string> jobs;
  for (const RunDocument& document : documents) jobs.push_back(document.job_yaml);
  Json differences = Json::array();
  for (const JobDifference& difference : job_differences(jobs)) {
    Json values = Json::array();
    for (const std::string& value : difference.values) values.push_back(excerpt(value, 120));
    differences.push_back({{"key", difference.key}, {"values", std::move(values)}});
  }
  return differences;
}

}  // namespace

std::string question_of(const Json& report) {
  ContentHash hash;
  hash.add(text_of(part(report, {"model", "content_hash"})));
  for (const Json& request : part(report, {"requests"}))
    for (const char* key : {"id", "prompt", "subject", "target", "target_true"})
      hash.add(any_text(part(request, {key})));
  return hash.hex();
}

// Tables for other programs: RFC 4180 in UTF-8, shares from 0 to 1 in full precision, an empty field where there is
// nothing. Texts are the user's and the model's: none of them runs in a spreadsheet.

namespace {

std::string field(const std::string& text) { return csv_text(text); }

std::string field(const std::optional<double>& value) { return value ? Json(*value).dump() : ""; }

std::string line(const std::vector<std::string>& fields) { return join(fields, ",") + "\r\n"; }

/// Returns "Efficacy" for "efficacy_prob": the heading of a metric without a group.
std::string heading_of(const std::string& name, std::string group) {
  if (group.empty()) {
    group = name.substr(0, name.rfind('_'));
    std::replace(group.begin(), group.end(), '_', ' ');
  }
  if (!group.empty()) group[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(group[0])));
  return group;
}

/// Returns an end of an interval, 0 or 1.
std::string end_field(const Json& interval, size_t end) {
  return interval.is_array() && interval.size() == 2 ? field(number_of(interval[end])) : "";
}

/// Returns the layers for which some request has a realised share, in the order of the report.
std::vector<std::string> realised_layers(const Json& report) {
  std::vector<std::string> layers;
  for (const Json& request : part(report, {"requests"})) {
    const Json& shares = part(request, {"value", "realised", "layers"});
    if (!shares.is_object()) continue;
    for (const auto& [layer, share] : shares.items())
      if (std::find(layers.begin(), layers.end(), layer) == layers.end()) layers.push_back(layer);
  }
  return layers;
}

std::vector<std::string> metric_names(const Json& report) {
  std::vector<std::string> names;
  const Json& metrics = part(report, {"metrics"});
  if (metrics.is_object())
    for (const auto& [name, metric] : metrics.items()) names.push_back(name);
  return names;
}

}  // namespace

std::string metrics_csv(const Json& report) {
  std::string out = line({"metric", "group", "unit", "better", "before", "before_low", "before_high", "right_after",
                          "after", "after_low", "after_high", "prompts", "protocol"});
  for (const std::string& name : metric_names(report)) {
    const Json& metric = part(report, {"metrics", name.c_str()});
    const Json &before = part(metric, {"interval", "before"}), &after = part(metric, {"interval", "after"});
    const std::string unit = text_of(part(metric, {"unit"})), better = text_of(part(metric, {"better"}));
    const auto prompts = number_of(part(metric, {"prompts"}));
    out += line(
        {field(name), field(heading_of(name, text_of(part(metric, {"group"})))), field(unit.empty() ? "share" : unit),
         better == "lower" || better == "none" ? better : "higher", field(number_of(part(metric, {"before"}))),
         end_field(before, 0), end_field(before, 1), field(number_of(part(metric, {"right_after"}))),
         field(number_of(part(metric, {"after"}))), end_field(after, 0), end_field(after, 1),
         prompts ? std::to_string(static_cast<int64_t>(*prompts)) : "", field(text_of(part(metric, {"protocol"})))});
  }
  return out;
}

std::string requests_csv(const Json& report) {
  constexpr const char* kTexts[] = {"id", "prompt", "subject", "target", "target_true", "skipped"};
  constexpr const char* kVerdict[] = {"success", "why"};
  constexpr const char* kValues[] = {"steps", "initial_loss", "final_loss", "initial_norm", "delta_norm"};
  const std::vector<std::string> layers = realised_layers(report), metrics = metric_names(report);
  std::vector<std::string> head(std::begin(kTexts), std::end(kTexts));
  head.insert(head.end(), std::begin(kVerdict), std::end(kVerdict));
  head.insert(head.end(), std::begin(kValues), std::end(kValues));
  head.emplace_back("realised");
  for (const std::string& layer : layers) head.push_back(field(cat("realised.", layer)));
  for (const std::string& metric : metrics)
    for (const char* when : {".before", ".after"}) head.push_back(field(metric + when));
  head.insert(head.end(), {"continuation.before", "continuation.after"});
  std::string out = line(head);
  for (const Json& request : part(report, {"requests"})) {
    std::vector<std::string> fields;
    for (const char* key : kTexts) fields.push_back(field(any_text(part(request, {key}))));
    for (const char* key : kVerdict) fields.push_back(field(any_text(part(request, {"verdict", key}))));
    for (const char* key : kValues) fields.push_back(any_text(part(request, {"value", key})));
    fields.push_back(field(number_of(part(request, {"value", "realised", "total"}))));
    for (const std::string& layer : layers)
      fields.push_back(field(number_of(part(request, {"value", "realised", "layers", layer.c_str()}))));
    for (const std::string& metric : metrics)
      for (const char* when : {"before", "after"})
        fields.push_back(field(number_of(part(request, {"metrics", metric.c_str(), when}))));
    for (const char* when : {"before", "after"})
      fields.push_back(field(text_of(part(request, {"continuation", when}))));
    out += line(fields);
  }
  return out;
}

}  // namespace page

using namespace page;

ReportFiles render_report(const RunDocument& run) {
  Json report = parse_report(run);
  ReportFiles files{.html = {}, .metrics_csv = metrics_csv(report), .requests_csv = requests_csv(report)};
  const std::string title =
      cat(model_name(report), ": ", text_of(part(report, {"method"})), ", ", text_of(part(report, {"status"})));
  files.html = page_html(title, {{"page", "edit"}, {"report", std::move(report)}, {"job", run.job_yaml}},
                         "report.json, metrics.csv and requests.csv");
  return files;
}

std::string render_comparison(std::span<const RunDocument> runs, std::string_view title) {
  return page_html(
      title,
      {{"page", "comparison"}, {"title", title}, {"runs", runs_json(runs)}, {"differences", differences_json(runs)}},
      "each run's report.json");
}

}  // namespace lancet
