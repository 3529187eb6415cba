// The shell of pages and the documents in it, and tables, from small reports written by hand. What the script makes of
// the documents is tests/cli/test_report_page.py's.
#include "lancet/pages/report_page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "support/count_parts.h"

namespace lancet {
namespace {

using Json = nlohmann::ordered_json;

Json small_report() {
  return Json::parse(R"({
    "format": "lancet-report-1", "lancet": "0.1.0", "status": "accepted", "accept": {"efficacy_prob": 0.5}, "unmet": [],
    "metrics": {"efficacy_prob": {"before": 0.25, "right_after": null, "after": 0.75, "prompts": 4, "protocol": "by p"}},
    "model": {"folder": "/models/small", "content_hash": "abc", "run_dtype": "f32"}, "method": "memit",
    "weights": [{"name": "model.layers.3.mlp.down_proj.weight", "weight_norm": 2, "delta_norm": 1, "rounding_loss": 0}],
    "batches": [{"requests": ["a", "b"], "seconds": 3}], "seconds": {"load": 1, "values": 2.5},
    "peak_bytes": {"cpu": 1500000}, "stage_peak_bytes": {"load": {"cpu": 1500000}},
    "requests": [
      {"id": "a", "prompt": "P one", "subject": "P", "target": "Rome", "target_true": "Paris", "skipped": null,
       "value": {"steps": 2, "initial_loss": 8, "final_loss": 0.5, "losses": [8, 0.5]},
       "metrics": {"efficacy_prob": {"before": 0, "after": 1}},
       "continuation": {"before": " Paris is", "after": " Rome, of"}},
      {"id": "b", "prompt": "P two", "subject": "P", "target": "Oslo", "target_true": null, "skipped": null,
       "value": {"steps": 1, "initial_loss": 4, "final_loss": 4, "losses": [4]},
       "metrics": {"efficacy_prob": {"before": 0.5, "after": 0.5}},
       "continuation": {"before": "x", "after": "y"}}]})");
}

ReportFiles rendered(const Json& report, const std::string& job = "editor: {method: memit}\n") {
  return render_report({.label = "run", .json = report.dump(), .job_yaml = job});
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The small report with verdicts: of its two edits the first took.
Json judged_report() {
  Json report = small_report();
  report["verdicts"] = {{"success", 1}, {"measured", 2}, {"text", "1 of 2 edits took (by m)"}};
  report["requests"][0]["verdict"] = {{"success", true}, {"cause", nullptr}, {"why", nullptr}};
  report["requests"][1]["verdict"] = {{"success", false}, {"cause", "did_not_follow"}, {"why", "the weights <stood>"}};
  report["requests"][1]["value"]["realised"] = {{"total", 0.0825}, {"layers", {{"0", 0.1}, {"3", 0.05}}}};
  return report;
}

using testing::count;

/// The text between two others, the first of which stands once.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  EXPECT_EQ(count(text, begin), 1U) << begin;
  const size_t at = text.find(begin) + begin.size();
  return text.substr(at, text.find(end, at) - at);
}

/// The data of a page, as it stands there.
std::string data_of(const std::string& html) { return between(html, "id=\"documents\">", "</script>"); }

Json documents_of(const std::string& html) { return Json::parse(data_of(html)); }

std::string compared(const Json& one, const Json& two, const std::string& title = "t") {
  return render_comparison(
      std::vector<RunDocument>{{.label = "one", .json = one.dump(), .job_yaml = {}, .failure = {}},
                               {.label = "two", .json = two.dump(), .job_yaml = {}, .failure = {}}},
      title);
}

TEST(ReportPage, HoldsTheDocumentsAsTheyAre) {
  const std::string job = "editor: {method: memit}\n";
  const std::string html = rendered(judged_report(), job).html;
  EXPECT_EQ(documents_of(html), (Json{{"page", "edit"}, {"report", judged_report()}, {"job", job}}));
  EXPECT_TRUE(has(html, "<title>small: memit, accepted</title>"));
  EXPECT_TRUE(has(between(html, "<noscript>", "</noscript>"), "read report.json, metrics.csv and requests.csv."));
  EXPECT_TRUE(is_own_page(html));
  EXPECT_FALSE(is_own_page("<!DOCTYPE html><p>lancet"));
}

TEST(ReportPage, NothingInADocumentEndsOrOpensAnElement) {
  const std::string evil = "</script><script>alert('x')</script><!--<script>\"<img src=x>&lt;\u2028\u2029]]>";
  Json report = judged_report();
  for (const char* key : {"id", "prompt", "target"}) report["requests"][0][key] = evil;
  report["model"]["folder"] = evil;
  report["metrics"][evil] = {{"before", 0.5}, {evil, Json::array({evil})}};
  const RunDocument run{.label = evil, .json = report.dump(), .job_yaml = "'a</script>': '<!--'\n", .failure = evil};
  const ReportFiles files = render_report(run);
  const RunDocument failed{.label = evil, .json = {}, .job_yaml = "b: 1\n", .failure = evil};
  for (const std::string& html : {files.html, render_comparison(std::vector{run, failed}, evil)}) {
    for (const char* part : {"<", ">", "&", "\u2028", "\u2029"})
      EXPECT_EQ(data_of(html).find(part), std::string::npos) << part;
    EXPECT_EQ(count(html, "<script"), 2U);
    EXPECT_EQ(count(html, "</script"), 2U);
    EXPECT_EQ(count(html, "<!--"), 0U);
    EXPECT_EQ(count(html, "<img"), 0U);
  }
  EXPECT_EQ(documents_of(files.html).at("report"), report);
  EXPECT_TRUE(
      has(render_comparison(std::vector{run, failed}, evil), "<title>&lt;/script&gt;&lt;script&gt;alert(&#39;x"));
}

TEST(ReportPage, ReplacesWhatIsNoTextAndKeepsWholeNumbersExact) {
  Json report = small_report();
  report["run"] = {{"seed", 18446744073709551615U}, {"least", -9007199254740993}, {"exact", 9007199254740992}};
  const std::string html = rendered(report, "a: \"\xFF\"\n").html;
  EXPECT_EQ(documents_of(html).at("job"), "a: \"\uFFFD\"\n");
  EXPECT_EQ(documents_of(html).at("report").at("run"),
            (Json{{"seed", "18446744073709551615"}, {"least", "-9007199254740993"}, {"exact", 9007199254740992}}));
}

TEST(ReportPage, RunsOneScriptThatNoDocumentCanName) {
  const std::string html = rendered(small_report()).html, other = rendered(judged_report()).html;
  const std::string nonce = between(html, "; script-src 'nonce-", "'");
  EXPECT_EQ(nonce.size(), 32U);
  EXPECT_TRUE(has(html, "content=\"default-src 'none'; style-src 'nonce-" + nonce + "'; script-src 'nonce-" + nonce +
                            "'; img-src data:; base-uri 'none'; form-action 'none'\""));
  EXPECT_TRUE(has(html, "<script nonce=\"" + nonce + "\">"));
  EXPECT_FALSE(has(data_of(html), nonce));
  EXPECT_FALSE(has(other, nonce)) << "other documents have another one";
  EXPECT_EQ(rendered(small_report()).html, html) << "equal documents make equal pages";
  for (const char* part :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http://", "https://"})
    EXPECT_EQ(count(between(html, "<script nonce=", "</script>"), part), has(part, "http:") ? 1U : 0U) << part;
}

TEST(ReportPage, LivesWithoutWhatIsMissing) {
  Json report = judged_report();
  std::vector<std::string> keys;
  for (const auto& [key, value] : report.items())
    if (key != "format") keys.push_back(key);
  for (const std::string& key : keys) {
    Json without = report, strange = report;
    without.erase(key);
    EXPECT_EQ(documents_of(rendered(without).html).at("report"), without) << key;
    EXPECT_TRUE(has(compared(without, report), "</html>")) << key;
    for (const Json& other :
         {Json(nullptr), Json("text"), Json(3), Json::array({1, nullptr}), Json::object({{"a", 1}})}) {
      strange[key] = other;
      EXPECT_EQ(documents_of(rendered(strange, "").html).at("report"), strange) << key << other;
      EXPECT_TRUE(has(compared(strange, report), "</html>")) << key << other;
    }
  }
  report["requests"] = Json::array();
  const ReportFiles none = rendered(report);
  EXPECT_EQ(none.requests_csv.find("\r\n"), none.requests_csv.size() - 2) << "a head alone";
  EXPECT_TRUE(has(rendered({{"format", "lancet-report-1"}}).html, "</html>"));
}

TEST(ReportPage, RefusesWhatIsNoReport) {
  EXPECT_THROW(render_report({.label = "x", .json = "{"}), ConfigError);
  EXPECT_THROW(render_report({.label = "x", .json = "[]"}), ConfigError);
  EXPECT_THROW(render_report({.label = "x", .json = R"({"format": "lancet-compare-1"})"}), ConfigError);
}

TEST(ReportPage, TablesSayWhatTookAndHowFarWeightsFollowed) {
  const std::string csv = rendered(judged_report()).requests_csv;
  EXPECT_TRUE(has(csv,
                  "skipped,success,why,steps,initial_loss,final_loss,initial_norm,delta_norm,realised,"
                  "realised.0,realised.3,efficacy_prob.before"));
  EXPECT_TRUE(has(csv, "b,P two,P,Oslo,,,false,the weights <stood>,1,4,4,,,0.0825,0.1,0.05,0.5,0.5,")) << csv;
}

TEST(ReportPage, TablesHaveIntervalsUnitsAndGroupsWhereTheyAre) {
  Json report = small_report();
  report["metrics"]["efficacy_prob"]["interval"] = {{"before", {0.2, 0.3}}, {"after", {0.625, 0.875}}};
  report["metrics"]["perplexity"] = {{"before", 12.5},    {"after", 13},        {"unit", "nats"},
                                     {"better", "lower"}, {"group", "fluency"}, {"protocol", "held-out text"}};
  const std::string csv = rendered(report).metrics_csv;
  EXPECT_TRUE(has(csv, "efficacy_prob,Efficacy,share,higher,0.25,0.2,0.3,,0.75,0.625,0.875,4,by p\r\n")) << csv;
  EXPECT_TRUE(has(csv, "perplexity,Fluency,nats,lower,12.5,,,,13.0,,,,held-out text\r\n")) << csv;
}

TEST(ReportPage, TablesQuoteWhatNeedsIt) {
  Json report = small_report();
  report["requests"][0]["prompt"] = "a \"b\", c\nd";
  const std::string csv = rendered(report).requests_csv;
  EXPECT_TRUE(has(csv,
                  "id,prompt,subject,target,target_true,skipped,success,why,steps,initial_loss,final_loss,initial_norm,"
                  "delta_norm,realised,"
                  "efficacy_prob.before,efficacy_prob.after,continuation.before,continuation.after\r\n"));
  EXPECT_TRUE(has(csv, "a,\"a \"\"b\"\", c\nd\",P,Rome,Paris,,,,2,8,0.5,,,,0.0,1.0, Paris is,\" Rome, of\"\r\n"))
      << csv;
}

TEST(ReportPage, TablesHoldNothingThatASpreadsheetRuns) {
  Json report = small_report();
  report["requests"][0]["id"] = "-7";
  report["requests"][0]["prompt"] = "=cmd|' /C calc'!A0";
  report["requests"][0]["continuation"]["after"] = "@SUM(A1:A9)";
  report["requests"][0]["value"]["delta_norm"] = -1.5;  // a number is none
  const std::string csv = rendered(report).requests_csv;
  EXPECT_TRUE(has(csv, "'-7,'=cmd|' /C calc'!A0,P,")) << csv;
  EXPECT_TRUE(has(csv, ",'@SUM(A1:A9)\r\n")) << csv;
  EXPECT_TRUE(has(csv, ",-1.5,"));
}

TEST(ComparisonPage, HoldsWhatIsComparedAndWhatJobsDifferIn) {
  Json other = judged_report();
  other["metrics"]["efficacy_prob"]["after"] = 0.5;
  const std::vector<RunDocument> runs{
      {.label = "one",
       .json = small_report().dump(),
       .job_yaml = "editor: {method: memit, layers: [0, 1]}\nrun: {seed: 0}\noutput: {dir: a}\n",
       .failure = {}},
      {.label = "two",
       .json = other.dump(),
       .job_yaml = "editor: {method: rome, layers: [0, 1], new: 3}\nrun: {seed: 0}\noutput: {dir: b}\n",
       .failure = {}},
      {.label = "three", .json = {}, .job_yaml = {}, .failure = "no eigenvalue"}};
  const Json documents = documents_of(render_comparison(runs, "title"));
  EXPECT_EQ(documents.at("title"), "title");
  EXPECT_EQ(documents.at("differences"), Json::parse(R"([
    {"key": "editor.method", "values": ["memit", "rome", ""]}, {"key": "editor.new", "values": ["", "3", ""]}])"));
  EXPECT_EQ(documents.at("runs").at(2), (Json{{"label", "three"}, {"failure", "no eigenvalue"}, {"has_job", false}}));
  const Json& two = documents.at("runs").at(1);
  EXPECT_EQ(two.at("requests"), 2);
  EXPECT_EQ(two.at("report").at("metrics"), other.at("metrics"));
  EXPECT_EQ(two.at("report").at("verdicts"), other.at("verdicts"));
  EXPECT_EQ(two.at("report").at("batches"), Json::parse(R"([{"seconds": 3}])"));
  for (size_t i = 0; i < 2; ++i) {  // what is said of each, and nothing else
    const Json& answer = two.at("report").at("requests").at(i);
    EXPECT_EQ(answer.at("prompt"), other["requests"][i]["prompt"]);
    EXPECT_EQ(answer.at("target"), other["requests"][i]["target"]);
    EXPECT_EQ(answer.at("verdict").size(), 1u);
    EXPECT_FALSE(answer.contains("value") || answer.contains("metrics"));
  }
}

TEST(ComparisonPage, HoldsAnswersOfTheFirstFactsCutShort) {
  Json report = small_report();
  Json request = report["requests"][0];
  request["continuation"] = {{"before", "x"}, {"after", std::string(1000, 'y')}};
  report["requests"] = Json::array();
  for (int i = 0; i < 250; ++i) report["requests"].push_back(request);
  const Json run = documents_of(compared(report, report)).at("runs").at(0);
  EXPECT_EQ(run.at("requests"), 250);
  ASSERT_EQ(run.at("report").at("requests").size(), 200u);
  const Json& said = run.at("report").at("requests").at(199).at("continuation");
  EXPECT_EQ(said.at("before"), "x");
  EXPECT_LT(said.at("after").get<std::string>().size(), 200u);
}

TEST(ComparisonPage, GroupsRunsOnTheSameModelAndRequests) {
  Json model = small_report(), requests = small_report(), protocol = small_report();
  model["model"]["content_hash"] = "def";
  requests["requests"][0]["target"] = "Bern";
  protocol["metrics"]["efficacy_prob"]["protocol"] = "by rank";
  const auto groups = [](const Json& other) {
    const Json runs = documents_of(compared(small_report(), other)).at("runs");
    return std::pair<int, int>(runs.at(0).at("group"), runs.at(1).at("group"));
  };
  EXPECT_EQ(groups(model), std::pair(0, 1));
  EXPECT_EQ(groups(requests), std::pair(0, 1));
  EXPECT_EQ(groups(protocol), std::pair(0, 0));
}

}  // namespace
}  // namespace lancet
