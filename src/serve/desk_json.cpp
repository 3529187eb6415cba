#include "desk_json.h"

#include <algorithm>

#include "lancet/requests/same_fact.h"

namespace lancet {
namespace {

Json item_json(const WorkItem& item) { return {{"item", item.number}, {"kind", item.kind}, {"what", item.what}}; }

Json progress_json(const StageProgress& now) {
  return {{"stage", now.stage},
          {"done", now.done},
          {"total", now.total},
          {"unit", now.unit},
          {"line", now.line},
          {"share", now.total > 0 ? Json(static_cast<double>(now.done) / static_cast<double>(now.total)) : Json()}};
}

Json edit_json(const Journal& journal, const BatchEntry& batch, const EditRecord& edit, const ReplacedEdits& replaced) {
  Json json = describe_edit(journal, edit, replaced);
  json["when"] = batch.when;
  json["method"] = journal.settings()[batch.setting].method;
  return json;
}

/// Returns the measured metrics of a request. Metrics for which it had no prompt are left out.
Json measured_json(const Json& metrics) {
  Json measured = Json::object();
  for (const auto& [name, figures] : metrics.items())
    if (!figures.at("after").is_null()) measured[name] = figures;
  return measured;
}

}  // namespace

Json fact_json(const EditRequest& fact) {
  return {{"prompt", marked_prompt(fact.prompt)},
          {"subject", fact.subject},
          {"target", fact.target},
          {"target_true", fact.target_true.value_or("")},
          {"paraphrases", fact.paraphrases},
          {"neighborhood", fact.neighborhood}};
}

std::string dump_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json work_json(const WorkView& view, const StageProgress& progress) {
  Json running = nullptr, waiting = Json::array(), finished = Json::array();
  if (view.running) {
    running = item_json(*view.running);
    running["cancellable"] = view.is_cancellable;
    running["progress"] = progress_json(progress);
  }
  for (const WorkItem& item : view.waiting) waiting.push_back(item_json(item));
  for (const FinishedWork& done : view.finished) {
    finished.push_back(item_json(done.item));
    finished.back()["outcome"] = outcome_name(done.outcome);
    finished.back()["message"] = done.message;
  }
  return {{"running", running}, {"waiting", waiting}, {"finished", finished}};
}

Json edits_json(const Journal& journal) {
  Json edits = Json::array(), undone = Json::array();
  const std::vector<BatchEntry>& batches = journal.batches();
  const ReplacedEdits replaced = replaced_edits(journal);
  for (size_t i = batches.size(); i-- > 0;)
    for (const EditRecord& edit : batches[i].edits) {
      edits.push_back(edit_json(journal, batches[i], edit, replaced));
      edits.back()["batch"] = i + 1;
    }
  const std::vector<std::vector<EditRequest>> facts = journal.undone_requests();
  for (const UndoEntry& undo : journal.undone()) {
    Json row = describe_undo(undo);
    row["facts"] = Json::array();
    for (const EditRequest& fact : facts[undone.size()]) row["facts"].push_back(fact_json(fact));
    undone.push_back(std::move(row));
  }
  std::reverse(undone.begin(), undone.end());
  return {{"edits", edits}, {"undone", undone}, {"measured_on", journal.measured_on()}};
}

Json result_json(const std::string& report) {
  const Json whole = Json::parse(report);
  Json requests = Json::array(), metrics = Json::array();
  for (const Json& request : whole.at("requests"))
    requests.push_back({{"id", request.at("id")},
                        {"prompt", request.at("prompt")},
                        {"subject", request.at("subject")},
                        {"target", request.at("target")},
                        {"verdict", request.at("verdict")},
                        {"metrics", measured_json(request.at("metrics"))},
                        {"continuation", request.contains("continuation") ? request.at("continuation") : Json()}});
  for (const auto& [name, metric] : whole.at("metrics").items())
    if (metric.at("prompts") != 0)
      metrics.push_back({{"name", name},
                         {"before", metric.at("before")},
                         {"after", metric.at("after")},
                         {"group", metric.value("group", "")},
                         {"unit", metric.at("unit")},
                         {"better", metric.at("better")},
                         {"prompts", metric.at("prompts")},
                         {"protocol", metric.at("protocol")}});
  return {{"method", whole.at("method")},
          {"success", whole.at("verdicts").at("text")},
          {"measured_on", whole.at("measured_on")},
          {"requests", requests},
          {"metrics", metrics},
          {"warnings", whole.at("warnings")}};
}

}  // namespace lancet
