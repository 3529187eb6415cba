#include "lancet/edit_history/conflicts.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <tuple>

#include "compared_edit.h"
#include "lancet/core/strings.h"
#include "near_keys.h"

namespace lancet {
namespace {

/// Two indices in the list of all edits, the earlier one first.
using Pair = std::pair<size_t, size_t>;

template <typename Key>
using Groups = std::map<Key, std::vector<size_t>>;

/// Searches for one kind of conflict after another. A pair that was found is not examined again.
class ConflictSearch {
 public:
  ConflictSearch(std::span<const EditHistory* const> histories, const ConflictOptions& options)
      : histories_(histories), options_(options), edits_(compared_edits(histories)) {}

  ConflictReport run() {
    find_targets();
    find_equal_keys();
    find_near_keys();
    find_reversed();
    ConflictReport report{.metrics = std::move(metrics_)};
    for (auto& [pair, conflict] : duplicates_) report.duplicates.push_back(std::move(conflict));
    for (auto& [pair, conflict] : conflicts_) report.conflicts.push_back(std::move(conflict));
    return report;
  }

 private:
  bool is_known(Pair pair) const { return conflicts_.contains(pair) || duplicates_.contains(pair); }

  void put(ConflictKind kind, Pair pair, const std::string& what, double measure = 1) {
    if (is_known(pair)) return;
    conflicts_[pair] = {kind, edits_[pair.first].place, edits_[pair.second].place, what, measure};
  }

  std::string targets_text(Pair pair) const {
    const ComparedEdit &one = edits_[pair.first], &other = edits_[pair.second];
    return cat("'", one.target, "' and '", other.target, "' of '", one.subject, "' (",
               one.relation.empty() ? one.prompt : one.relation, ")");
  }

  template <typename Key, typename Take>
  static void for_pairs(const Groups<Key>& groups, const Take& take) {
    for (const auto& [key, members] : groups)
      for (size_t i = 0; i < members.size(); ++i)
        for (size_t j = i + 1; j < members.size(); ++j) take(Pair{members[i], members[j]});
  }

  void find_targets() {
    Groups<std::tuple<std::string, bool, std::string>> groups;
    for (size_t i = 0; i < edits_.size(); ++i) {
      const ComparedEdit& edit = edits_[i];
      groups[{edit.subject, false, edit.prompt}].push_back(i);
      if (!edit.subject.empty() && !edit.relation.empty()) groups[{edit.subject, true, edit.relation}].push_back(i);
    }
    for_pairs(groups, [&](Pair pair) {
      if (is_known(pair)) return;
      if (has_same_target(edits_[pair.first], edits_[pair.second]))
        duplicates_[pair] = {ConflictKind::kTargets, edits_[pair.first].place, edits_[pair.second].place,
                             targets_text(pair)};
      else
        put(ConflictKind::kTargets, pair, targets_text(pair));
    });
  }

  void find_equal_keys() {
    Groups<std::vector<TokenId>> groups;
    for (size_t i = 0; i < edits_.size(); ++i)
      if (!edits_[i].key_ids.empty()) groups[edits_[i].key_ids].push_back(i);
    for_pairs(groups, [&](Pair pair) {
      const ComparedEdit &one = edits_[pair.first], &other = edits_[pair.second];
      if (!has_same_target(one, other))
        put(ConflictKind::kEqualKeys, pair,
            cat("'", one.target, "' and '", other.target, "' by the one key of '", one.subject, "'"));
    });
  }

  void find_near_keys() {
    NearKeys near(histories_, edits_, options_);
    for (const auto& [pair, found] : near.find()) {
      const ComparedEdit &one = edits_[pair.first], &other = edits_[pair.second];
      put(ConflictKind::kNearKeys, pair,
          cat("keys of '", one.subject, "' and '", other.subject, "' at layer ", found.layer), found.cosine);
    }
    metrics_ = near.metrics();
  }

  void find_reversed() {
    Groups<std::string> by_subject;
    for (size_t i = 0; i < edits_.size(); ++i)
      if (!edits_[i].subject.empty()) by_subject[edits_[i].subject].push_back(i);
    for (size_t i = 0; i < edits_.size(); ++i) {
      const auto of_target = by_subject.find(edits_[i].target);
      if (of_target == by_subject.end()) continue;
      for (const size_t j : of_target->second)
        if (i != j && is_reversed(edits_[i], edits_[j]))
          put(ConflictKind::kReversed, std::minmax(i, j),
              cat("'", edits_[i].target, "' of '", edits_[i].subject, "', and '", edits_[j].target, "' of '",
                  edits_[j].subject, "'"));
    }
  }

  /// Whether the subject of `other` is the target of `one`.
  bool is_reversed(const ComparedEdit& one, const ComparedEdit& other) const {
    const bool returns = other.target == one.subject;
    const bool has_relations = !one.relation.empty() && !other.relation.empty();
    const auto is_inverse = [&](const InversePair& pair) {
      return has_relations && pair.relation == one.relation && pair.inverse == other.relation;
    };
    if (std::ranges::any_of(options_.inverses, is_inverse)) return !returns;
    const bool is_one_relation = has_relations ? one.relation == other.relation : one.prompt == other.prompt;
    return is_one_relation && returns && one.subject != other.subject;
  }

  std::span<const EditHistory* const> histories_;
  const ConflictOptions& options_;
  std::vector<ComparedEdit> edits_;
  std::map<Pair, Conflict> conflicts_, duplicates_;
  std::vector<std::pair<WeightId, bool>> metrics_;
};

}  // namespace

std::string name_of(ConflictKind kind) {
  constexpr const char* kNames[] = {"targets", "equal_keys", "near_keys", "reversed"};
  return kNames[static_cast<size_t>(kind)];
}

std::vector<InversePair> usual_inverses() {
  return {{"P36", "P1376"}, {"P1376", "P36"},   {"P155", "P156"},  {"P156", "P155"},
          {"P26", "P26"},   {"P1365", "P1366"}, {"P1366", "P1365"}};
}

ConflictReport find_conflicts(std::span<const EditHistory* const> histories, const ConflictOptions& options) {
  const auto is_other = [&](const EditHistory* history) {
    return history->journal().base().weights != histories.front()->journal().base().weights;
  };
  if (std::ranges::any_of(histories, is_other)) throw std::logic_error("find_conflicts: histories of several bases");
  return ConflictSearch(histories, options).run();
}

}  // namespace lancet
