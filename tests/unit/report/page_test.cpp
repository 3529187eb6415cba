// Pages and tables from small reports written by hand.
#include "lancet/report/report_page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"

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

TEST(ReportPage, ShowsWhatTheReportHolds) {
  const std::string html = rendered(small_report()).html;
  for (const char* part :
       {"2 facts edited in", "small", "✓ Accepted", "1 threshold met", "75.0", "25.0", "by p", "<mark>Rome</mark>, of",
        "Loss by step", "Time by stage", "1.5 MB", "editor: {method: memit}", "abc", "loss 8 → 0.5 in 2 steps"})
    EXPECT_TRUE(has(html, part)) << part;
  EXPECT_FALSE(has(html, "The stream")) << "one batch is no stream";
  EXPECT_FALSE(has(html, "95\u00A0% interval")) << "none was given";
  EXPECT_TRUE(is_own_page(html));
  EXPECT_FALSE(is_own_page("<!DOCTYPE html><p>lancet"));
}

TEST(ReportPage, ShowsTheWorstFirst) {
  const std::string html = rendered(small_report()).html;
  const size_t rows = html.find("id=\"request-rows\"");
  EXPECT_LT(html.find("P two", rows), html.find("P one", rows));
}

/// The small report with verdicts: of its two edits the first took.
Json judged_report() {
  Json report = small_report();
  report["verdicts"] = {{"success", 1}, {"measured", 2}, {"text", "1 of 2 edits took (by m)"}};
  report["requests"][0]["verdict"] = {{"success", true}, {"cause", nullptr}, {"why", nullptr}};
  report["requests"][1]["verdict"] = {{"success", false}, {"cause", "did_not_follow"}, {"why", "the weights <stood>"}};
  report["requests"][1]["value"]["realised"] = {{"total", 0.0825}, {"layers", {{"0", 0.1}, {"3", 0.05}}}};
  return report;
}

TEST(ReportPage, SaysAcceptedOnlyWhereSomethingWasAskedFor) {
  Json report = small_report();
  report["accept"] = Json::object();
  for (const char* status : {"accepted", "done"}) {  // the former: as earlier versions wrote it
    report["status"] = status;
    const std::string html = rendered(report).html;
    EXPECT_FALSE(has(html, "✓")) << status;
    EXPECT_TRUE(has(html, "Not measured</span>")) << status;
    EXPECT_TRUE(has(html, "no thresholds set")) << status;
  }
}

TEST(ReportPage, SaysHowManyEditsTookAndWhyOthersDidNot) {
  Json report = judged_report();
  const ReportFiles files = rendered(report);
  for (const char* part :
       {"✓ Accepted", "1 of 2 took</span>", "1 of 2 edits took (by m)", "note warn",
        "P two</bdi> → <bdi dir=\"auto\">Oslo</bdi>: <bdi dir=\"auto\">the weights &lt;stood&gt;",
        "<div class=\"why\">the weights &lt;stood&gt;</div>", "<div class=\"why\" hidden>",
        "weights followed 8.2 % of the way (layer 0: 10.0 %, layer 3: 5.0 %)", "<option value=\"failed\">did not take"})
    EXPECT_TRUE(has(files.html, part)) << part;
  EXPECT_FALSE(has(files.html, "No edit took"));
  EXPECT_TRUE(has(files.requests_csv,
                  "skipped,success,took,why,steps,initial_loss,final_loss,initial_norm,delta_norm,realised,"
                  "realised.0,realised.3,attained,attained.0,attained.3,efficacy_prob.before"));
  EXPECT_TRUE(
      has(files.requests_csv, "b,P two,P,Oslo,,,false,,the weights <stood>,1,4,4,,,0.0825,0.1,0.05,,,,0.5,0.5,"))
      << files.requests_csv;
  report["requests"][0]["verdict"]["success"] = false;
  report["verdicts"]["success"] = 0;
  const std::string none = rendered(report).html;
  for (const char* part : {"<span class=\"verdict no\">✕ No edit took", "2 facts tried in", "note no"})
    EXPECT_TRUE(has(none, part)) << part;
}

TEST(ReportPage, ReadsTheNamesOfAnEarlierVersion) {
  Json report = judged_report();
  report["side_effects"] = {{"text_kl", {{"before", nullptr}, {"after", 0.0375}, {"unit", "nats"}, {"count", 80}}}};
  Json earlier = report;
  const auto rename = [](Json& section, const char* present_name, const char* old_name) {
    section[old_name] = section[present_name];
    section.erase(present_name);
  };
  rename(earlier, "side_effects", "costs");
  rename(earlier["verdicts"], "success", "took");
  for (Json& request : earlier["requests"]) rename(request["verdict"], "success", "took");
  rename(earlier["requests"][1]["value"], "realised", "attained");
  EXPECT_EQ(rendered(earlier).html, rendered(report).html);
  EXPECT_TRUE(has(rendered(earlier).requests_csv,
                  "b,P two,P,Oslo,,,false,false,the weights <stood>,1,4,4,,,0.0825,0.1,0.05,0.0825,0.1,0.05"));
}

TEST(ReportPage, NamesWhatWasRejected) {
  Json report = small_report();
  report["status"] = "rejected";
  report["unmet"] = {"efficacy_prob: expected <at least> 0.9"};
  const std::string html = rendered(report).html;
  for (const char* part : {"✕ Rejected", "2 facts tried in", "Nothing was exported", "expected &lt;at least&gt; 0.9"})
    EXPECT_TRUE(has(html, part)) << part;
}

TEST(ReportPage, ShowsIntervalsUnitsAndGroupsWhereTheyAre) {
  Json report = small_report();
  report["metrics"]["efficacy_prob"]["interval"] = {{"before", {0.2, 0.3}}, {"after", {0.625, 0.875}}};
  report["metrics"]["perplexity"] = {{"before", 12.5},    {"after", 13},        {"unit", "nats"},
                                     {"better", "lower"}, {"group", "fluency"}, {"protocol", "held-out text"}};
  report["later"] = {{"unknown", {{"before", 1}}}};
  const ReportFiles files = rendered(report);
  for (const char* part : {"62.5\u2009–\u200987.5", "95\u00A0% interval", "12.5\u00A0nats",
                           "<span class=\"bad\">+0.5</span>", ">Fluency<"})
    EXPECT_TRUE(has(files.html, part)) << part;
  EXPECT_FALSE(has(files.html, "unknown"));
  EXPECT_TRUE(has(files.metrics_csv, "efficacy_prob,Efficacy,share,higher,0.25,0.2,0.3,,0.75,0.625,0.875,4,by p\r\n"));
  EXPECT_TRUE(has(files.metrics_csv, "perplexity,Fluency,nats,lower,12.5,,,,13.0,,,,held-out text\r\n"));
}

TEST(ReportPage, ShowsWhatEditingCostElsewhere) {
  Json report = small_report();
  EXPECT_FALSE(has(rendered(report).html, "What it cost elsewhere"));
  report["side_effects"] =
      Json::parse(R"({"text_kl": {"before": null, "after": 0.0375, "unit": "nats", "better": "lower",
    "group": "text", "protocol": "a divergence", "interval": {"before": null, "after": [0.02, 0.05]}, "count": 9098}})");
  const std::string html = rendered(report).html;
  for (const char* part : {"What it cost elsewhere", "text_kl", "a divergence", "0.0375", "nats", "9,098"})
    EXPECT_TRUE(has(html, part)) << part;
}

TEST(ReportPage, EscapesEveryText) {
  const std::string evil = "</script><script>alert('x')</script>\"<img src=x>";
  Json report = small_report();
  for (const char* key : {"id", "prompt", "subject", "target", "target_true"}) report["requests"][0][key] = evil;
  for (const char* when : {"before", "after"}) report["requests"][0]["continuation"][when] = evil;
  report["requests"][0]["skipped"] = evil;
  report["requests"][1]["verdict"] = {{"success", false}, {"why", evil}};
  report["verdicts"] = {{"success", 1}, {"measured", 2}, {"text", evil}};
  for (const char* key : {"method", "measured_on", "lancet"}) report[key] = evil;
  report["model"] = {{"folder", evil}, {"content_hash", evil}, {"run_dtype", evil}};
  report["warnings"] = {evil};
  report["contexts"] = {evil};
  report["metrics"][evil] = {{"before", 0.5}, {"after", 0.5}, {"protocol", evil}, {"group", evil}};
  report["seconds"][evil] = 1;
  report["weights"][0]["name"] = evil;
  for (int i = 0; i < 250; ++i) report["requests"].push_back(report["requests"][0]);  // beyond the rows of the page
  const RunDocument run{
      .label = evil, .json = report.dump(), .job_yaml = "a: '" + std::string("</pre><script>") + "'\n"};
  for (const std::string& html : {render_report(run).html, render_comparison(std::vector{run, run}, evil)}) {
    EXPECT_FALSE(has(html, "<script>alert"));
    EXPECT_FALSE(has(html, "</script><script>alert"));
    EXPECT_FALSE(has(html, "<img"));
    EXPECT_FALSE(has(html, "</pre><script>"));
    EXPECT_TRUE(has(html, "&lt;/script&gt;"));
  }
}

TEST(ReportPage, LivesWithoutWhatIsMissing) {
  Json report = judged_report();
  std::vector<std::string> keys;
  for (const auto& [key, value] : report.items())
    if (key != "format") keys.push_back(key);
  for (const std::string& key : keys) {
    Json without = report, strange = report;
    without.erase(key);
    EXPECT_TRUE(has(rendered(without).html, "</html>")) << key;
    for (const Json& other :
         {Json(nullptr), Json("text"), Json(3), Json::array({1, nullptr}), Json::object({{"a", 1}})}) {
      strange[key] = other;
      EXPECT_TRUE(has(rendered(strange, "").html, "</html>")) << key << other;
    }
  }
  report["requests"] = Json::array();
  const ReportFiles none = rendered(report);
  EXPECT_TRUE(has(none.html, "0 facts")) << "no requests";
  EXPECT_FALSE(has(none.html, "request-data"));
  EXPECT_EQ(none.requests_csv.find("\r\n"), none.requests_csv.size() - 2) << "a head alone";
  EXPECT_TRUE(has(rendered({{"format", "lancet-report-1"}}).html, "</html>"));
}

TEST(ReportPage, RefusesWhatIsNoReport) {
  EXPECT_THROW(render_report({.label = "x", .json = "{"}), ConfigError);
  EXPECT_THROW(render_report({.label = "x", .json = "[]"}), ConfigError);
  EXPECT_THROW(render_report({.label = "x", .json = R"({"format": "lancet-compare-1"})"}), ConfigError);
}

TEST(ReportPage, HoldsTheTextsOfManyRequestsOnce) {
  Json report = small_report();
  for (int i = 0; i < 998; ++i) {
    Json request = report["requests"][1];
    request["prompt"] = "number " + std::to_string(i) + ".";
    report["requests"].push_back(request);
  }
  const std::string html = rendered(report).html;
  size_t rows = 0;
  for (size_t at = html.find("<article class=\"row\""); at != std::string::npos;
       at = html.find("<article class=\"row\"", at + 1))
    ++rows;
  EXPECT_EQ(rows, 200u);
  EXPECT_TRUE(has(html, "the other 800"));
  for (int i = 4; i < 998; ++i) {
    const std::string prompt = "number " + std::to_string(i) + ".";
    EXPECT_EQ(html.find(prompt), html.rfind(prompt)) << prompt;
    EXPECT_TRUE(has(html, prompt));
  }
}

TEST(ReportPage, TablesQuoteWhatNeedsIt) {
  Json report = small_report();
  report["requests"][0]["prompt"] = "a \"b\", c\nd";
  const std::string csv = rendered(report).requests_csv;
  EXPECT_TRUE(
      has(csv,
          "id,prompt,subject,target,target_true,skipped,success,took,why,steps,initial_loss,final_loss,initial_norm,"
          "delta_norm,realised,attained,"
          "efficacy_prob.before,efficacy_prob.after,continuation.before,continuation.after\r\n"));
  EXPECT_TRUE(has(csv, "a,\"a \"\"b\"\", c\nd\",P,Rome,Paris,,,,,2,8,0.5,,,,,0.0,1.0, Paris is,\" Rome, of\"\r\n"))
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

TEST(ComparisonPage, SaysWhatDiffersAndMarksTheBest) {
  Json other = small_report();
  other["metrics"]["efficacy_prob"]["after"] = 0.5;
  const std::vector<RunDocument> runs{
      {.label = "one",
       .json = small_report().dump(),
       .job_yaml = "editor: {method: memit, layers: [0, 1]}\nrun: {seed: 0}\noutput: {dir: a}\n"},
      {.label = "two",
       .json = other.dump(),
       .job_yaml = "editor: {method: rome, layers: [0, 1], new: 3}\nrun: {seed: 0}\noutput: {dir: b}\n"},
      {.label = "three", .failure = "no eigenvalue"}};
  const std::string html = render_comparison(runs, "title");
  for (const char* part : {"<code>editor.method</code>", "<code>editor.new</code>", "best\"><span class=\"after\">75.0",
                           "three", "no eigenvalue"})
    EXPECT_TRUE(has(html, part)) << part;
  for (const char* part : {"run.seed", "editor.layers", "output.dir", "not comparable"})
    EXPECT_FALSE(has(html, part)) << part;
  EXPECT_FALSE(has(html, "best\"><span class=\"after\">50.0"));
}

TEST(ComparisonPage, KeepsApartWhatIsNotComparable) {
  Json model = small_report(), requests = small_report(), protocol = small_report();
  model["model"]["content_hash"] = "def";
  requests["requests"][0]["target"] = "Bern";
  protocol["metrics"]["efficacy_prob"]["protocol"] = "by rank";
  const auto page = [](const Json& other) {
    return render_comparison(std::vector<RunDocument>{{.label = "one", .json = small_report().dump()},
                                                      {.label = "two", .json = other.dump()}},
                             "t");
  };
  for (const Json& other : {model, requests}) {
    EXPECT_TRUE(has(page(other), "not comparable across the 2 tables"));
    EXPECT_TRUE(has(page(other), "Metrics, group 2"));
  }
  EXPECT_TRUE(has(page(protocol), "measured by 2 different protocols"));
  EXPECT_FALSE(has(page(protocol), "group 2"));
  EXPECT_FALSE(has(page(small_report()), "note warn\"><ul>\n<li>These"));
}

TEST(ComparisonPage, MarksNoBestOfOtherPrompts) {
  const auto page = [](const Json& other) {
    return render_comparison(std::vector<RunDocument>{{.label = "one", .json = small_report().dump()},
                                                      {.label = "two", .json = other.dump()}},
                             "t");
  };
  Json fewer = small_report(), others = small_report(), same = small_report();
  fewer["metrics"]["efficacy_prob"]["prompts"] = 1;
  fewer["metrics"]["efficacy_prob"]["after"] = 1;
  EXPECT_TRUE(has(page(small_report()), " best\""));
  const std::string html = page(fewer);
  for (const char* part :
       {"rests on other prompts in some runs (4, 1 of them)", "; over 4 prompts", "; over 1 prompt<"})
    EXPECT_TRUE(has(html, part)) << part;
  EXPECT_FALSE(has(html, " best\""));
  // as many, but not the same ones
  Json known = small_report();
  known["metrics"]["efficacy_prob"]["asked"] = "abc";
  others["metrics"]["efficacy_prob"]["asked"] = "def";
  const std::string apart = render_comparison(
      std::vector<RunDocument>{{.label = "one", .json = known.dump()}, {.label = "two", .json = others.dump()}}, "t");
  EXPECT_TRUE(has(apart, "rests on other prompts in some runs (4, 4 of them)"));
  EXPECT_FALSE(has(apart, " best\""));
}

TEST(ComparisonPage, SaysOfEachRunHowManyEditsTook) {
  Json none = judged_report(), neutral = judged_report();
  none["verdicts"]["success"] = 0;
  neutral["accept"] = Json::object();
  const std::string html = render_comparison(
      std::vector<RunDocument>{{.label = "one", .json = neutral.dump()}, {.label = "two", .json = none.dump()}}, "t");
  for (const char* part : {"no thresholds</td>", "✓ accepted</td>", ">1 of 2</td>", "num bad\">✕ 0 of 2</td>"})
    EXPECT_TRUE(has(html, part)) << part;
}

TEST(ComparisonPage, DrawsTheFrontOfSuccessAndSpecificity) {
  std::vector<RunDocument> runs;
  for (const auto& [success, specificity] : {std::pair{0.9, 0.5}, std::pair{0.6, 0.8}, std::pair{0.5, 0.4}}) {
    Json report = small_report();
    report["metrics"]["efficacy_prob"]["after"] = success;
    report["metrics"]["specificity_prob"] = {{"before", 1}, {"after", specificity}, {"protocol", "p"}};
    runs.push_back({.label = "r" + std::to_string(runs.size()), .json = report.dump()});
  }
  const std::string html = render_comparison(runs, "t");
  EXPECT_TRUE(has(html, "Success against specificity"));
  const size_t at = html.find("class=\"p-front\" d=\"");
  ASSERT_NE(at, std::string::npos);
  const std::string path = html.substr(at, html.find("\"/>", at) - at);
  EXPECT_EQ(std::count(path.begin(), path.end(), 'L'), 2) << "two runs and the step between: " << path;
}

}  // namespace
}  // namespace lancet
