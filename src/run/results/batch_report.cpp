#include "lancet/run/batch_report.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "report_json.h"

namespace lancet {
namespace {

Json record_of(const std::optional<Tallies>& tallies) {
  if (!tallies) return nullptr;
  Json json = Json::object();
  for (const auto& [name, tally] : *tallies) json[name] = {tally.sum, tally.count};
  return json;
}

std::optional<Tallies> tallies_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  Tallies tallies;
  for (const auto& [name, tally] : json.items())
    tallies[name] = {tally.at(0).get<double>(), tally.at(1).get<int64_t>()};
  return tallies;
}

Json record_of(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

std::optional<double> number_of(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

Json record_of(const RequestOutcome& request) {
  Json layers = Json::array();
  for (const LayerShare& layer : request.attained_by_layer) layers.push_back({layer.layer, layer.share});
  return {request.steps,
          record_of(request.initial_loss),
          record_of(request.final_loss),
          record_of(request.initial_norm),
          record_of(request.delta_norm),
          request.losses,
          request.skipped,
          record_of(request.attained),
          layers};
}

RequestOutcome request_outcome_of(const Json& json) {
  RequestOutcome request{json.at(0).get<int64_t>(),     number_of(json.at(1)), number_of(json.at(2)),
                         number_of(json.at(3)),         number_of(json.at(4)), json.at(5).get<std::vector<float>>(),
                         json.at(6).get<std::string>(), number_of(json.at(7)), {}};
  for (const Json& layer : json.at(8))
    request.attained_by_layer.push_back({layer.at(0).get<int64_t>(), layer.at(1).get<double>()});
  return request;
}

Json record_of(const EditOutcome& outcome) {
  Json requests = Json::array(), shared_keys = Json::array(), chosen = Json::array();
  for (const RequestOutcome& request : outcome.requests) requests.push_back(record_of(request));
  for (const SharedKeys& keys : outcome.shared_keys) shared_keys.push_back({keys.effect, keys.groups});
  for (const ChosenOption& each : outcome.chosen) chosen.push_back({each.option, each.layer, each.value});
  const ValueBatching& values = outcome.batching;
  return {{"requests", requests},
          {"chosen", chosen},
          {"values", {values.batches, values.largest, values.halvings, values.resumed}},
          {"columns", outcome.columns},
          {"shared_keys", shared_keys},
          {"warnings", outcome.warnings}};
}

EditOutcome outcome_of(const Json& json) {
  EditOutcome outcome;
  for (const Json& request : json.at("requests")) outcome.requests.push_back(request_outcome_of(request));
  for (const Json& keys : json.at("shared_keys"))
    outcome.shared_keys.push_back({keys.at(0).get<std::string>(), keys.at(1).get<std::vector<std::vector<int64_t>>>()});
  for (const Json& each : json.at("chosen")) outcome.chosen.push_back({each.at(0), each.at(1), each.at(2)});
  const Json& values = json.at("values");
  outcome.batching = {values.at(0), values.at(1), values.at(2), values.at(3)};
  outcome.columns = json.at("columns").get<std::vector<int64_t>>();
  outcome.warnings = json.at("warnings").get<std::vector<std::string>>();
  return outcome;
}

}  // namespace

EditOutcome merged_outcome(const std::vector<BatchReport>& batches, size_t n_requests) {
  EditOutcome all;
  all.requests.resize(n_requests);
  for (const BatchReport& batch : batches) {
    const EditOutcome& one = batch.outcome;
    for (size_t i = 0; i < batch.requests.size(); ++i)
      all.requests[static_cast<size_t>(batch.requests[i])] = one.requests[i];
    for (const int64_t column : one.columns) all.columns.push_back(batch.requests[static_cast<size_t>(column)]);
    for (const ChosenOption& chosen : one.chosen)
      if (std::find(all.chosen.begin(), all.chosen.end(), chosen) == all.chosen.end()) all.chosen.push_back(chosen);
    for (SharedKeys keys : one.shared_keys) {
      for (std::vector<int64_t>& group : keys.groups)
        for (int64_t& request : group) request = batch.requests[static_cast<size_t>(request)];
      all.note_shared_keys(keys.effect, keys.groups);
    }
    for (const std::string& warning : one.warnings)
      if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end())
        all.warnings.push_back(warning);
    all.batching.batches += one.batching.batches;
    all.batching.largest = std::max(all.batching.largest, one.batching.largest);
    all.batching.halvings += one.batching.halvings;
    all.batching.resumed += one.batching.resumed;
  }
  return all;
}

BatchReport without_requests(const BatchReport& batch, const std::vector<int64_t>& kept) {
  std::map<int64_t, int64_t> places;  // old to new
  BatchReport less;
  less.seconds = batch.seconds;
  less.outcome = batch.outcome;
  less.outcome.requests.clear();
  less.outcome.columns.clear();
  less.outcome.shared_keys.clear();
  for (const int64_t place : kept) {
    places.emplace(place, static_cast<int64_t>(places.size()));
    less.outcome.requests.push_back(batch.outcome.requests.at(static_cast<size_t>(place)));
  }
  for (const int64_t column : batch.outcome.columns)
    if (places.contains(column)) less.outcome.columns.push_back(places.at(column));
  for (const SharedKeys& keys : batch.outcome.shared_keys) {
    std::vector<std::vector<int64_t>> groups;
    for (const std::vector<int64_t>& group : keys.groups) {
      std::vector<int64_t> left;
      for (const int64_t request : group)
        if (places.contains(request)) left.push_back(places.at(request));
      if (left.size() > 1) groups.push_back(std::move(left));
    }
    if (!groups.empty()) less.outcome.note_shared_keys(keys.effect, groups);
  }
  return less;
}

std::string to_record(const BatchReport& batch) {
  Json growth = Json::array();
  for (const auto& [name, size] : batch.growth) growth.push_back({name, size});
  return Json{{"seconds", batch.seconds},
              {"outcome", record_of(batch.outcome)},
              {"right_after", record_of(batch.right_after)},
              {"first_batch", record_of(batch.first_batch)},
              {"growth", growth}}
      .dump();
}

BatchReport from_record(const std::string& record) {
  try {
    const Json json = Json::parse(record);
    BatchReport batch;
    batch.seconds = json.at("seconds");
    batch.outcome = outcome_of(json.at("outcome"));
    batch.right_after = tallies_of(json.at("right_after"));
    batch.first_batch = tallies_of(json.at("first_batch"));
    for (const Json& weight : json.at("growth"))
      batch.growth.emplace_back(weight.at(0).get<std::string>(), weight.at(1).get<double>());
    return batch;
  } catch (const Json::exception& error) {
    throw ConfigError(cat("expected the record of a batch: ", error.what()));
  }
}

}  // namespace lancet
