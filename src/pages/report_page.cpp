// Which documents a page gets: of one run its report and its job; of several what is compared of each, in groups of the
// same model and requests.
#include "lancet/pages/report_page.h"

#include <map>

#include "csv.h"
#include "job_differences.h"
#include "lancet/core/hash.h"
#include "lancet/core/strings.h"
#include "page.h"

namespace lancet {
namespace page {
namespace {

/// What a comparison shows of a report.
constexpr const char* kCompared[] = {"status", "accept", "verdicts", "metrics", "model", "run", "peak_bytes"};

constexpr size_t kMostAnswers = 200;
constexpr size_t kLongestAnswer = 160;  ///< characters

/// Hashes what has to be equal for numbers to be compared: the model and the requests.
std::string question_of(const Json& report) {
  ContentHash hash;
  hash.add(text_of(part(report, {"model", "content_hash"})));
  for (const Json& request : part(report, {"requests"}))
    for (const char* key : {"id", "prompt", "subject", "target", "target_true"})
      hash.add(any_text(part(request, {key})));
  return hash.hex();
}

/// What became of the first facts: a page of many runs would be large with all of them.
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

/// Describes the runs; those of one number in `group` are of the same model and requests.
Json runs_json(std::span<const RunDocument> documents) {
  Json runs = Json::array();
  std::map<std::string, size_t> groups;
  for (const RunDocument& document : documents) {
    Json run{{"label", document.label}, {"failure", document.failure}, {"has_job", !document.job_yaml.empty()}};
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
