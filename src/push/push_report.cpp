// Writes a push, its removal and the list of pushes as JSON.
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "push_journal.h"

namespace lancet {
namespace {

Json asked_json(const AskedPrompt& asked) {
  return {{"metric", asked.metric}, {"id", asked.request},
          {"prompt", asked.prompt}, {"target", asked.target.empty() ? Json(nullptr) : Json(asked.target)},
          {"before", asked.before}, {"after", asked.after},
          {"holds", asked.holds()}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json server_json(const PushReport& report) {
  const ServerFacts& facts = report.server;
  return {{"address", report.record.server},
          {"kind", report.kind},
          {"version", text_or_null(facts.version)},
          {"model", facts.model},
          {"model_path", text_or_null(facts.model_path)},
          {"quantisation", text_or_null(facts.quantisation)},
          {"largest_rank", facts.largest_rank ? Json(*facts.largest_rank) : Json(nullptr)}};
}

}  // namespace

std::string push_summary(const PushReport& report) {
  const PushRecord& record = report.record;
  const char* state = report.unmet.empty()                    ? "serves"
                      : record.state == PushState::kTakenBack ? "taken back"
                                                              : "NOT taken back";
  std::string text = cat(state, ": ", record.adapter.name, " at ", record.server, " (", record.kind, ")");
  for (const char* metric : kPushMetrics)
    if (const PushShares shares = push_shares(report.asked, metric); shares.after)
      text +=
          cat(", ", metric, " ", std::lround(*shares.after * static_cast<double>(shares.count)), " of ", shares.count);
  return text;
}

std::string to_json(const PushReport& report, const PushJob& job) {
  Json metrics = Json::object(), asked = Json::array(), accept = Json::object();
  for (const char* metric : kPushMetrics) {
    const PushShares shares = push_shares(report.asked, metric);
    metrics[metric] = {
        {"before", number_json(shares.before)}, {"after", number_json(shares.after)}, {"prompts", shares.count}};
  }
  for (const AskedPrompt& each : report.asked) asked.push_back(asked_json(each));
  for (const auto& [metric, least] : job.accept) accept[metric] = least;
  return dump_report({{"format", "lancet-push-1"},
                      {"lancet", kVersion},
                      {"output", job.output.string()},
                      {"server", server_json(report)},
                      {"push", record_json(report.record)},
                      {"metrics", std::move(metrics)},
                      {"accept", std::move(accept)},
                      {"unmet", report.unmet},
                      {"notes", report.notes},
                      {"unnoted", text_or_null(report.unnoted)},
                      {"seconds", report.seconds},
                      {"asked", std::move(asked)}});
}

std::string to_json(const PushRecord& record) { return dump_report(record_json(record)); }

std::string to_json(const std::vector<ListedPush>& listed) {
  Json list = Json::array();
  for (const ListedPush& each : listed) {
    Json row = record_json(each.record);
    row["is_there"] = each.is_there ? Json(*each.is_there) : Json(nullptr);
    list.push_back(std::move(row));
  }
  return dump_report({{"format", "lancet-pushes-1"}, {"pushes", std::move(list)}});
}

}  // namespace lancet
