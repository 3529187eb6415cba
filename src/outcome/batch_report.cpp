#include "lancet/outcome/batch_report.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "lancet/core/error.h"
#include "lancet/core/strict_json.h"
#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "lancet/outcome/edit_verdicts.h"
#include "lancet/outcome/report_json.h"
#include "value_goal.h"

namespace lancet {
namespace {

Json record_of(const std::optional<Tallies>& tallies) {
  if (!tallies) return nullptr;
  Json json = Json::object();
  for (const auto& [name, tally] : *tallies) json[name] = {tally.sum, tally.count};
  return json;
}

// Records are read from files that somebody may have changed, so the type of every value is checked.

[[noreturn]] void refuse(const char* expected, const Json& got) {
  throw ConfigError(
      cat("expected ", expected, ", got ", printable(got.dump(-1, ' ', false, Json::error_handler_t::replace))));
}

int64_t whole_of(const Json& json) {
  if (!json.is_number_integer() ||
      (json.is_number_unsigned() && json.get<uint64_t>() > std::numeric_limits<int64_t>::max()))
    refuse("a whole number", json);
  return json.get<int64_t>();
}

/// Reads a count of a batch. It is limited so that sums of counts fit easily into 63 bits.
int64_t count_of(const Json& json) {
  constexpr int64_t kMost = int64_t{1} << 40;
  const int64_t count = whole_of(json);
  if (count < 0 || count > kMost) refuse("a count", json);
  return count;
}

double number_of(const Json& json) {
  if (!json.is_number()) refuse("a number", json);
  return json.get<double>();
}

/// Returns NaN for null, which JSON has in the place of a number that is not finite.
double number_or_nan(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : number_of(json);
}

std::string text_of(const Json& json) {
  if (!json.is_string()) refuse("text", json);
  return json.get<std::string>();
}

const Json& list_of(const Json& json) {
  if (!json.is_array()) refuse("a list", json);
  return json;
}

const Json& map_of(const Json& json) {
  if (!json.is_object()) refuse("a map", json);
  return json;
}

/// Reads an index below `n`.
int64_t place_of(const Json& json, size_t n) {
  const int64_t place = whole_of(json);
  if (place < 0 || place >= static_cast<int64_t>(n)) refuse(cat("a place among ", n, " requests").c_str(), json);
  return place;
}

std::optional<Tallies> tallies_of(const Json& json) {
  if (json.is_null()) return std::nullopt;
  Tallies tallies;
  for (const auto& [name, tally] : map_of(json).items()) {
    tallies[name] = {number_or_nan(tally.at(0)), count_of(tally.at(1))};
  }
  return tallies;
}

Json record_of(const std::optional<double>& number) { return number ? Json(*number) : Json(nullptr); }

std::optional<double> number_or_none(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(number_of(json));
}

Json record_of(const RequestOutcome& request) {
  Json layers = Json::array();
  for (const LayerShare& layer : request.realised_by_layer) layers.push_back({layer.layer, layer.share});
  return {request.steps,
          record_of(request.initial_loss),
          record_of(request.final_loss),
          record_of(request.initial_norm),
          record_of(request.delta_norm),
          request.losses,
          request.skipped,
          record_of(request.realised),
          layers};
}

RequestOutcome request_outcome_of(const Json& json) {
  RequestOutcome request;
  request.steps = count_of(list_of(json).at(0));
  request.initial_loss = number_or_none(json.at(1));
  request.final_loss = number_or_none(json.at(2));
  request.initial_norm = number_or_none(json.at(3));
  request.delta_norm = number_or_none(json.at(4));
  for (const Json& loss : list_of(json.at(5))) request.losses.push_back(static_cast<float>(number_or_nan(loss)));
  request.skipped = text_of(json.at(6));
  request.realised = number_or_none(json.at(7));
  for (const Json& layer : list_of(json.at(8)))
    request.realised_by_layer.push_back({whole_of(layer.at(0)), number_or_nan(layer.at(1))});
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

SharedKeys shared_keys_of(const Json& json, size_t n_requests) {
  SharedKeys keys{text_of(list_of(json).at(0)), {}};
  for (const Json& group : list_of(json.at(1))) {
    keys.groups.emplace_back();
    for (const Json& request : list_of(group)) keys.groups.back().push_back(place_of(request, n_requests));
  }
  return keys;
}

EditOutcome outcome_of(const Json& json, size_t n_requests) {
  EditOutcome outcome;
  const Json& requests = list_of(map_of(json).at("requests"));
  if (requests.size() != n_requests)
    throw ConfigError(cat("outcome.requests: expected ", n_requests, " of them, got ", requests.size()));
  for (const Json& request : requests) outcome.requests.push_back(request_outcome_of(request));
  for (const Json& keys : list_of(json.at("shared_keys")))
    outcome.shared_keys.push_back(shared_keys_of(keys, n_requests));
  for (const Json& each : list_of(json.at("chosen")))
    outcome.chosen.push_back({text_of(each.at(0)), whole_of(each.at(1)), number_or_nan(each.at(2))});
  const Json& values = list_of(json.at("values"));
  outcome.batching = {count_of(values.at(0)), count_of(values.at(1)), count_of(values.at(2)), count_of(values.at(3))};
  for (const Json& column : list_of(json.at("columns"))) outcome.columns.push_back(place_of(column, n_requests));
  for (const Json& warning : list_of(json.at("warnings"))) outcome.warnings.push_back(text_of(warning));
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
  std::map<int64_t, int64_t> places;  // old indices to new ones
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
              {"growth", growth},
              {"text_kl", record_of(batch.text_kl)}}
      .dump();
}

BatchReport from_record(const std::string& record, size_t n_requests) {
  try {
    const Json json = map_of(parse_ordered_json(record));
    BatchReport batch;
    batch.seconds = number_of(json.at("seconds"));
    batch.outcome = outcome_of(json.at("outcome"), n_requests);
    batch.right_after = tallies_of(json.at("right_after"));
    batch.first_batch = tallies_of(json.at("first_batch"));
    for (const Json& weight : list_of(json.at("growth")))
      batch.growth.emplace_back(text_of(weight.at(0)), number_or_nan(weight.at(1)));
    batch.text_kl = number_or_none(json.at("text_kl"));
    return batch;
  } catch (const JsonProblem& problem) {
    throw ConfigError(cat("the record of a batch: ", problem.what(), "; take the edits from a copy"));
  } catch (const Json::exception& error) {
    throw ConfigError(cat("expected the record of a batch: ", error.what()));
  } catch (const ConfigError& error) {
    throw ConfigError(cat("the record of a batch: ", error.what(), "; take the edits from a copy"));
  }
}

namespace {

constexpr double kLikelyLoss = 0.5;    // corresponds to a probability of 0.6 for each token of the target
constexpr double kFallen = 0.9;        // share of the first loss
constexpr double kAtTheClamp = 0.999;  // share of the clamp's norm, less than 1 because the projection rounds

}  // namespace

ValueGoal::ValueGoal(const ConfigTree& editor)
    : editor_(editor), prefix_(editor.find("values") != nullptr ? "values." : "") {
  found_loss_ = std::max(kLikelyLoss, number("stop_loss").value_or(0));
  const ConfigTree* stop = find_dotted(editor, "values.stop");
  stops_predicted_ = stop != nullptr && stop->scalar == "predicted";
}

bool ValueGoal::is_found(const RequestOutcome& outcome) const {
  if (*outcome.final_loss <= found_loss_) return true;
  const double most_steps = number("steps").value_or(AutomaticSteps::kMost);
  return stops_predicted_ && static_cast<double>(outcome.steps) < most_steps &&
         still_falls(std::vector<double>(outcome.losses.begin(), outcome.losses.end()));
}

bool ValueGoal::never_fell(const RequestOutcome& outcome) const {
  return outcome.initial_loss && outcome.final_loss && !is_found(outcome) &&
         *outcome.final_loss > kFallen * *outcome.initial_loss;
}

bool ValueGoal::has_stalled(const RequestOutcome& outcome) const {
  const bool left_early = !number("steps") && outcome.steps < AutomaticSteps::kMost;
  return left_early || !still_falls(std::vector<double>(outcome.losses.begin(), outcome.losses.end()));
}

bool ValueGoal::is_clamped(const RequestOutcome& outcome) const {
  const std::optional<double> clamp = number("clamp");
  return clamp && outcome.delta_norm && outcome.initial_norm &&
         *outcome.delta_norm > kAtTheClamp * *clamp * *outcome.initial_norm;
}

std::string ValueGoal::key(const std::string& name) const { return cat("editor.", prefix_, name); }

std::string ValueGoal::setting(const std::string& name) const {
  const ConfigTree* value = find_dotted(editor_, prefix_ + name);
  return cat(key(name), value == nullptr ? "" : ": " + to_line(*value));
}

std::optional<double> ValueGoal::number(const std::string& name) const { return number_at(editor_, prefix_ + name); }

double total_seconds(const std::vector<StageCost>& stages) {
  double total = 0;
  for (const StageCost& stage : stages) total += stage.seconds;
  return total;
}

PeakBytes overall_peaks(const std::vector<StageCost>& stages) {
  PeakBytes peaks;
  for (const StageCost& stage : stages) raise_to(peaks, stage.peaks);
  return peaks;
}

void raise_to_ranks(std::vector<StageCost>& stages, Communicator& communicator) {
  if (communicator.size() == 1) return;
  std::ostringstream own;  // lines with stage, bytes, device
  for (size_t i = 0; i < stages.size(); ++i)
    for (const auto& [device, bytes] : stages[i].peaks) own << i << ' ' << bytes << ' ' << device << '\n';
  for (const std::string& of_rank : communicator.gather(own.str())) {
    std::istringstream lines(of_rank);
    size_t stage = 0;
    int64_t bytes = 0;
    for (std::string device; lines >> stage >> bytes >> device;) raise_to(stages.at(stage).peaks, {{device, bytes}});
  }
}

std::map<std::string, MeasuredEdit> measured_again(const StandingMeasure& measure, const Journal& journal) {
  if (measure.requests.empty()) return {};  // most edits have none, and then the journal is not searched
  const std::string when = utc_now();
  const ReplacedEdits replaced = replaced_edits(journal);
  std::map<std::string, MeasuredEdit> edits;
  for (size_t i = 0; i < measure.requests.size(); ++i) {
    const std::string& id = measure.requests[i].id;
    MeasuredEdit& edit = edits[id];
    if (const auto known = journal.measured().find(id); known != journal.measured().end())
      edit.before = known->second.before;
    edit.after = means_of(measure.now.requests[i]);
    edit.success = says_target(measure.now, i);
    edit.when = when;
    if (edit.success && !*edit.success)
      edit.why = replaced.contains(id) ? cat("edit ", replaced.at(id), " replaced it")
                                       : "it no longer holds: another token is likelier";
  }
  return edits;
}

std::string standing_text(const StandingMeasure& measure) {
  size_t held = 0, measured = 0;
  for (size_t i = 0; i < measure.requests.size(); ++i)
    if (const std::optional<bool> says = says_target(measure.now, i)) {
      ++measured;
      held += *says ? 1 : 0;
    }
  if (measured == 0) return {};
  return cat(held, " of ", counted(measured, "earlier edit"), held == 1 ? " still holds" : " still hold",
             " (the model says the target, ", kSuccessMetric, ")");
}

}  // namespace lancet
