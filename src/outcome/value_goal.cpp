#include "value_goal.h"

#include <algorithm>

#include "lancet/job/dotted_key.h"

namespace lancet {
namespace {

constexpr double kLikelyLoss = 0.5;    // a probability of 0.6 for each token of the target
constexpr double kFallen = 0.9;        // of the first loss
constexpr double kAtTheClamp = 0.999;  // of the clamp's norm: the projection rounds

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

}  // namespace lancet
