#include "failure_reasons.h"

#include <algorithm>
#include <cmath>

#include "lancet/core/strings.h"
#include "lancet/job/dotted_key.h"
#include "lancet/outcome/edit_report.h"
#include "lancet/outcome/edit_verdicts.h"

namespace lancet {
namespace {

/// As a share of a weight's norm: a smaller change of the weights is too small for facts. ft-l edits none of 20 facts
/// of SmolLM2-135M with a limit at which its weight moves by 1 %, and 9 with one at which it moves by 4.9 %.
constexpr double kLittleMoved = 0.02;
/// As a share of a weight's norm: a proposed limit or step should allow this change.
constexpr double kEnoughMoved = 0.1;

bool writes(const std::string& continuation, const std::string& target) {
  const size_t begin = continuation.find_first_not_of(" \n\t\"");
  if (target.empty() || begin == std::string::npos || continuation.compare(begin, target.size(), target) != 0)
    return false;
  const size_t end = begin + target.size();
  return end == continuation.size() || !std::isalnum(static_cast<unsigned char>(continuation[end]));
}

/// Returns the largest change of a weight, as a share of its norm; nullopt if it is not known, or no weight was
/// changed.
std::optional<double> most_moved(const EditReport& report) {
  std::optional<double> most;
  for (const auto& [name, loss] : report.rounding) most = std::max(most.value_or(0), loss.growth());
  return most;
}

bool most_failed(const EditReport& report) {
  size_t measured = 0, failed = 0;
  for (size_t i = 0; i < report.requests.size(); ++i)
    if (const std::optional<bool> says = says_target(report.after, i)) {
      ++measured;
      failed += *says ? 0 : 1;
    }
  return 2 * failed > measured;
}

/// Rounds to one digit, because a proposal is not a measurement.
std::string rounded(double number) {
  const double unit = std::pow(10, std::floor(std::log10(number)));
  return short_number(std::round(number / unit) * unit);
}

/// Returns ", as to 0.01, with which they may move by 5 %"; empty if nothing moved at all.
std::string proposal(double now, double moved) {
  if (moved <= 0) return "";
  return cat(", as to ", rounded(now * kEnoughMoved / moved), ", with which they may move by about ",
             percent(kEnoughMoved));
}

}  // namespace

std::optional<size_t> collides_with(const EditReport& report, size_t request) {
  const auto text = [&](const Evaluation& evaluation) {
    return request < evaluation.continuations.size() ? evaluation.continuations[request] : std::string();
  };
  const std::string before = text(report.before), after = text(report.after);
  for (size_t other = 0; other < report.requests.size(); ++other) {
    const std::string& target = report.requests[other].target;
    if (other != request && target != report.requests[request].target && writes(after, target) &&
        !writes(before, target))
      return other;
  }
  return std::nullopt;
}

std::optional<HeldChange> held_change(const EditReport& report, const ConfigTree& editor) {
  const std::optional<double> moved = most_moved(report);
  if (!moved || *moved >= kLittleMoved || !most_failed(report)) return std::nullopt;
  const std::string little = cat("moved no weight by more than ", percent(*moved), " of its norm");
  if (const std::optional<double> limit = number_at(editor, "norm_constraint"))
    return HeldChange{cat("editor.norm_constraint: ", short_number(*limit),
                          " lets no entry of a weight change by more, which ", little),
                      cat("raise editor.norm_constraint", proposal(*limit, *moved),
                          "; where that is not enough, editor.lr or editor.steps")};
  const std::optional<double> lr = number_at(editor, "lr");
  if (lr && find_dotted(editor, "steps") == nullptr && find_dotted(editor, "values") == nullptr)
    return HeldChange{cat("the one step of editor.lr: ", short_number(*lr), " ", little),
                      cat("raise editor.lr", proposal(*lr, *moved), "; lancet tune finds it on other facts")};
  return std::nullopt;
}

std::string left_undone(const ConfigTree& editor) {
  // only methods whose values have two parts have this option
  if (find_dotted(editor, "values.nll_factor") == nullptr) return "";
  return "; the value is found at the MLP and at the attention together, and the method writes the MLP's part alone";
}

}  // namespace lancet
