#include "texts.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"

namespace lancet::python {
namespace {

using OrderedJson = nlohmann::ordered_json;

ConfigTree tree_of(const OrderedJson& json) {
  if (json.is_null()) return {};
  if (json.is_string()) return ConfigTree::text(json.get<std::string>());
  if (json.is_array()) {
    std::vector<ConfigTree> items;
    for (const OrderedJson& item : json) items.push_back(tree_of(item));
    return ConfigTree::list(std::move(items));
  }
  if (json.is_object()) {
    ConfigTree map = ConfigTree::map();
    for (const auto& [key, value] : json.items()) map.set(key, tree_of(value));
    return map;
  }
  ConfigTree scalar;
  scalar.kind = ConfigTree::Kind::kScalar;
  scalar.scalar = json.dump();
  return scalar;
}

/// Returns null if there is no number.
OrderedJson number(std::optional<double> value) { return value ? OrderedJson(*value) : OrderedJson(nullptr); }

OrderedJson metric_means_json(const Tallies& tallies) {
  OrderedJson means = OrderedJson::object();
  for (const auto& [name, tally] : tallies) means[name] = number(tally.mean());
  return means;
}

std::string dumped(const OrderedJson& json) { return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace); }

}  // namespace

ConfigTree tree_of_json(const std::string& json) { return tree_of(OrderedJson::parse(json)); }

CompletedJob completed_job(const JobText& job, EditorChoice choice) {
  namespace fs = std::filesystem;
  if (!job.file.empty())
    return complete_job(load_config(job.file), {fs::absolute(job.file).parent_path(), job.file}, job.overrides, choice);
  return complete_job(tree_of_json(job.json), {fs::current_path(), "job"}, job.overrides, choice);
}

std::vector<EditRequest> requests_of(const std::string& json) {
  try {
    return parse_requests(tree_of_json(json));
  } catch (const ConfigError& error) {
    throw ConfigError(cat("requests: ", error.what()));
  }
}

IfExists if_exists(const std::string& word) {
  if (word == "error") return IfExists::kError;
  if (word == "replace") return IfExists::kReplace;
  throw ConfigError(cat("exists: expected error or replace, got ", word));
}

std::string evaluation_json(const Evaluation& evaluation, const std::vector<EditRequest>& requests) {
  OrderedJson metrics = OrderedJson::object(), rows = OrderedJson::array();
  for (const MetricRow& row : evaluation.metrics) {
    const auto found = evaluation.totals.find(row.name);
    const Tally tally = found == evaluation.totals.end() ? Tally{} : found->second;
    metrics[row.name] = {{"value", number(tally.mean())},
                         {"prompts", tally.count},
                         {"unit", std::string(unit_name(row.unit))},
                         {"better", std::string(better_name(row.better))},
                         {"protocol", row.protocol}};
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    OrderedJson row = {{"id", requests[i].id},
                       {"prompt", requests[i].prompt.text},
                       {"subject", requests[i].subject},
                       {"target", requests[i].target},
                       {"metrics", i < evaluation.requests.size() ? metric_means_json(evaluation.requests[i])
                                                                  : OrderedJson::object()}};
    if (!evaluation.target_probabilities.empty()) row["target_probability"] = evaluation.target_probabilities[i];
    if (!evaluation.continuations.empty()) row["continuation"] = evaluation.continuations[i];
    rows.push_back(std::move(row));
  }
  return dumped({{"metrics", metrics}, {"requests", rows}});
}

std::string standing_json(const EditHistory& history) {
  const Journal& journal = history.journal();
  const ReplacedEdits replaced = replaced_edits(journal);
  OrderedJson edits = OrderedJson::array();
  for (size_t batch = 0; batch < journal.batches().size(); ++batch) {
    const BatchEntry& entry = journal.batches()[batch];
    for (const EditRecord& edit : entry.edits) {
      OrderedJson row = {{"batch", batch},
                         {"method", journal.settings()[entry.setting].method},
                         {"when", entry.when},
                         {"before", OrderedJson::object()},
                         {"after", OrderedJson::object()},
                         {"success", nullptr},
                         {"why", nullptr}};
      row.update(describe_edit(journal, edit, replaced));
      if (row["why"] == "") row["why"] = nullptr;
      edits.push_back(std::move(row));
    }
  }
  return dumped(edits);
}

std::string undo_json(const UndoEntry& entry) {
  return dumped({{"mode", undo_mode_name(entry.mode)},
                 {"edits", entry.edits},
                 {"keeps", entry.keeps},
                 {"gives_up", entry.approximation}});
}

}  // namespace lancet::python
