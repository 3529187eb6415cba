// Selects edits: by id, by how well they hold, or the last batches.
#include <algorithm>
#include <charconv>
#include <set>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/history/undo_job.h"

namespace lancet {
namespace {

/// A condition like "specificity_prob.after < 0.5" or "success == false".
class Condition {
 public:
  explicit Condition(const std::string& text) : text_(text) {
    std::vector<std::string> words;
    for (const std::string& word : split(text, ' '))
      if (!word.empty()) words.push_back(word);
    if (words.size() != 3) refuse();
    comparison_ = words[1];
    const auto* const known = std::find(std::begin(kComparisons), std::end(kComparisons), comparison_);
    if (known == std::end(kComparisons)) refuse();
    const size_t dot = words[0].rfind('.');
    metric_ = words[0].substr(0, dot);
    side_ = dot == std::string::npos ? "" : words[0].substr(dot + 1);
    if (words[0] == kSuccess) {
      if (words[2] != "true" && words[2] != "false") refuse();
      number_ = words[2] == "true" ? 1 : 0;
      return;
    }
    if (side_ != "before" && side_ != "after") refuse();
    const char* const end = words[2].data() + words[2].size();
    if (const auto [last, error] = std::from_chars(words[2].data(), end, number_); last != end || error != std::errc())
      refuse();
  }

  /// Throws: ConfigError if the edit has no such measure.
  bool holds(const std::string& id, const MeasuredEdit* edit) const {
    const std::optional<double> value = edit == nullptr ? std::nullopt : value_of(*edit);
    if (!value)
      throw ConfigError(cat("--where '", visible_text(text_), "': edit ", visible_text(id), " has no ", metric_,
                            edit == nullptr ? ": it was not measured" : measured_text(*edit)));
    if (comparison_ == "<") return *value < number_;
    if (comparison_ == "<=") return *value <= number_;
    if (comparison_ == ">") return *value > number_;
    if (comparison_ == ">=") return *value >= number_;
    return (*value == number_) == (comparison_ == "==");
  }

 private:
  static constexpr const char* kComparisons[] = {"<", "<=", ">", ">=", "==", "!="};
  static constexpr const char* kSuccess = "success";

  [[noreturn]] void refuse() const {
    throw ConfigError(cat("--where '", visible_text(text_),
                          "': expected METRIC.after or METRIC.before, one of < <= > >= == !=, and a number, as in "
                          "'specificity_prob.after < 0.5', or 'success == false'"));
  }

  std::optional<double> value_of(const MeasuredEdit& edit) const {
    if (metric_ == kSuccess) return edit.success ? std::optional<double>(*edit.success ? 1 : 0) : std::nullopt;
    const std::map<std::string, double>& values = side_ == "before" ? edit.before : edit.after;
    const auto found = values.find(metric_);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  }

  static std::string measured_text(const MeasuredEdit& edit) {
    std::vector<std::string> names;
    for (const auto& [name, value] : edit.after) names.push_back(name);
    return cat("; it has ", join(names));
  }

  std::string text_, metric_, side_, comparison_;
  double number_ = 0;
};

std::vector<std::string> standing(const Journal& journal, size_t first_batch) {
  std::vector<std::string> ids;
  for (size_t i = first_batch; i < journal.batches().size(); ++i)
    for (const EditRecord& edit : journal.batches()[i].edits) ids.push_back(edit.request.id);
  return ids;
}

}  // namespace

std::vector<std::string> chosen_edits(const Journal& journal, const EditSelection& selection) {
  std::vector<std::string> all = standing(journal, 0);
  if (!selection.ids.empty()) {
    for (const std::string& id : selection.ids)
      if (!journal.has(id))
        throw ConfigError(cat("edit ", visible_text(id), ": none of this id stands; lancet log shows those that do"));
    const std::set<std::string> wanted(selection.ids.begin(), selection.ids.end());
    std::erase_if(all, [&](const std::string& id) { return !wanted.contains(id); });
    return all;
  }
  if (!selection.where.empty()) {
    std::vector<Condition> conditions;
    for (const std::string& text : selection.where) conditions.emplace_back(text);
    std::erase_if(all, [&](const std::string& id) {
      const auto measured = journal.measured().find(id);
      const MeasuredEdit* edit = measured == journal.measured().end() ? nullptr : &measured->second;
      return !std::ranges::all_of(conditions, [&](const Condition& each) { return each.holds(id, edit); });
    });
    return all;
  }
  const auto batches = static_cast<int64_t>(journal.batches().size());
  if (selection.last_batches < 1 || selection.last_batches > batches)
    throw ConfigError(
        cat("--last ", selection.last_batches, ": expected 1 to ", batches, ", as many batches as stand"));
  return standing(journal, static_cast<size_t>(batches - selection.last_batches));
}

}  // namespace lancet
