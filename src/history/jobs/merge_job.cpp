#include "lancet/history/merge_job.h"

#include <algorithm>
#include <set>

#include "history_source.h"
#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/history/downdated.h"
#include "lancet/pipeline/replayed_edits.h"

namespace lancet {
namespace {

constexpr size_t kShownConflicts = 20;

using Sources = std::vector<HistorySource>;
using Histories = std::vector<EditHistory>;

std::vector<const EditHistory*> pointers_to(const Histories& histories) {
  std::vector<const EditHistory*> pointers;
  for (const EditHistory& history : histories) pointers.push_back(&history);
  return pointers;
}

/// Ids of edits, for each history.
using Chosen = std::vector<std::set<std::string>>;

bool is_chosen(const Chosen& chosen, const EditPlace& place) { return chosen[place.history].contains(place.id); }

/// Drops the later edit of each pair of equal edits.
void drop_duplicates(const ConflictReport& report, Chosen& chosen) {
  for (const Conflict& pair : report.duplicates)
    if (!is_chosen(chosen, pair.first)) chosen[pair.second.history].insert(pair.second.id);
}

/// Drops one edit of each conflict. Within one history the later edit stays.
void drop_by_preference(const ConflictReport& report, size_t preferred, Chosen& chosen) {
  for (const Conflict& conflict : report.conflicts) {
    if (is_chosen(chosen, conflict.first) || is_chosen(chosen, conflict.second)) continue;
    const bool keeps_first = conflict.first.history == preferred && conflict.second.history != preferred;
    const EditPlace& loser = keeps_first ? conflict.second : conflict.first;
    chosen[loser.history].insert(loser.id);
  }
}

std::vector<const Conflict*> unresolved(const ConflictReport& report, const Chosen& chosen, bool solves) {
  std::vector<const Conflict*> left;
  for (const Conflict& conflict : report.conflicts)
    if (!is_chosen(chosen, conflict.first) && !is_chosen(chosen, conflict.second) &&
        !(solves && conflict.kind == ConflictKind::kNearKeys))
      left.push_back(&conflict);
  return left;
}

void refuse(const std::vector<const Conflict*>& conflicts, const std::vector<std::filesystem::path>& edits) {
  std::string text = cat(counted(conflicts.size(), "conflict"), " between edits:");
  for (size_t i = 0; i < std::min(kShownConflicts, conflicts.size()); ++i)
    text += "\n  " + conflict_line(*conflicts[i], edits);
  if (conflicts.size() > kShownConflicts) text += cat("\n  and ", conflicts.size() - kShownConflicts, " more");
  throw ConfigError(cat(text, "\n--prefer takes one output's edits where two are at odds, --drop leaves edits out, ",
                        "--solve keeps near keys apart by one solve of all"));
}

}  // namespace

std::string conflict_line(const Conflict& conflict, const std::vector<std::filesystem::path>& edits) {
  const auto place = [&](const EditPlace& edit) { return cat(edit.id, " (", edits[edit.history].string(), ")"); };
  const std::string measure =
      conflict.kind == ConflictKind::kNearKeys ? cat(", cosine ", percent(conflict.measure)) : "";
  return cat(place(conflict.first), ", ", place(conflict.second), ": ", name_of(conflict.kind), ": ", conflict.what,
             measure);
}

namespace {

/// A merge in progress. Every rank goes through it.
class Merge {
 public:
  Merge(const MergeJob& job, Communicator& ranks) : job_(job), ranks_(ranks) {}

  MergedOutput run() {
    ranks_.run_collectively("edits", [&] { open(); });
    const ResolvedJob asked = config_for(sources_.front().journal());
    // needed to find conflicts between keys, and for a joint solve
    const EditorNeeds& needs = asked.needs;
    const bool has_factor = needs.statistics && !needs.null_space && !needs.curvature;
    if (has_factor || job_.solves)
      with_statistics(asked, ranks_, [&](const EditContext& context) { resolve(&context, has_factor, asked); });
    else
      ranks_.run_collectively("edits", [&] { resolve(nullptr, false, asked); });
    return apply();
  }

 private:
  void open() {
    if (job_.edits.size() < 2) throw ConfigError("expected two outputs or more, got one");
    for (const std::filesystem::path& edits : job_.edits) {
      sources_.emplace_back(edits, job_.model.empty() && !sources_.empty() ? sources_.front().model() : job_.model);
      histories_.push_back(sources_.back().history());
    }
  }

  ResolvedJob config_for(const Journal& journal) const {
    return sources_.front().job(sources_.front().journal().batches().back().setting, journal.requests(),
                                {job_.out, job_.if_exists}, job_.overrides);
  }

  /// Makes the merged history. Collective if there is a context.
  void resolve(const EditContext* context, bool has_factor, const ResolvedJob& config) {
    ConflictOptions options;
    if (has_factor)
      options.factor = [&](WeightId id) {
        return id.kind == WeightKind::kDown ? factor_of(*context, id.layer) : Tensor();
      };
    result_.conflicts = find_conflicts(pointers_to(histories_), options);
    Chosen out(histories_.size());
    for (const std::string& id : job_.drop) drop(id, out);
    drop_duplicates(result_.conflicts, out);
    if (job_.prefer) drop_by_preference(result_.conflicts, *job_.prefer, out);
    if (const auto left = unresolved(result_.conflicts, out, job_.solves); !left.empty()) refuse(left, job_.edits);
    for (const std::set<std::string>& ids : out) result_.dropped.insert(result_.dropped.end(), ids.begin(), ids.end());
    if (job_.solves) {
      solve(*context, *config.editor, kept_out_of_the_solve(out));
    } else {
      take_out(out);
      add();
    }
  }

  /// Returns the ids to leave out of the joint solve. Edits whose id several histories have are taken out here instead.
  std::set<std::string> kept_out_of_the_solve(Chosen& out) {
    std::set<std::string> ids;
    Chosen in_several(histories_.size());
    for (size_t i = 0; i < out.size(); ++i)
      for (const std::string& id : out[i]) {
        const auto has_it = [&](const EditHistory& history) { return history.journal().has(id); };
        if (std::ranges::count_if(histories_, has_it) > 1)
          in_several[i].insert(id);
        else
          ids.insert(id);
      }
    take_out(in_several);
    return ids;
  }

  /// Returns root's factor on the host of every rank.
  static Tensor factor_of(const EditContext& context, int64_t layer) {
    return context.decide_by([&] { return context.covariance_factor(layer); });
  }

  void drop(const std::string& id, Chosen& out) const {
    bool is_known = false;
    for (size_t i = 0; i < histories_.size(); ++i)
      if (histories_[i].journal().has(id)) is_known = out[i].insert(id).second || is_known;
    if (!is_known) throw ConfigError(cat("--drop ", id, ": none of the outputs has an edit of this id"));
  }

  /// Takes edits out by downdate. Histories that lose nothing stay as they are.
  void take_out(const Chosen& out) {
    for (size_t i = 0; i < histories_.size(); ++i) {
      if (out[i].empty()) continue;
      UndoEntry entry{
          .when = utc_now(), .mode = UndoMode::kDowndate, .keeps = 0, .edits = {out[i].begin(), out[i].end()}};
      histories_[i] = without(histories_[i], entry, sources_[i].files().config, {});
      if (!entry.approximation.empty()) note_approximation(entry.approximation);
    }
  }

  void note_approximation(const std::string& what) {
    if (result_.approximation.find(what) == std::string::npos)
      result_.approximation += (result_.approximation.empty() ? "" : "; ") + what;
  }

  void add() {
    result_.interference = interference(pointers_to(histories_));
    MergedHistory merged = add_histories(pointers_to(histories_), sources_.front().files().config);
    if (!merged.approximation.empty()) note_approximation(merged.approximation);
    merged_ = std::move(merged.history);
  }

  void solve(const EditContext& context, const Editor& editor, std::set<std::string> kept_out) {
    EditorState state = editor.make_state();
    JointOptions options{.solve = {}, .drop = std::move(kept_out)};
    options.solve = [&](WeightId id, const Tensor& keys_FN, const Tensor& residuals_DN) {
      GivenSolution solution =
          editor.solve_given(context, {.layer = id.layer, .keys_FN = keys_FN, .residuals_DN = residuals_DN}, state);
      return JointSolution{std::move(solution.change), std::move(solution.inverse_gram_NN)};
    };
    JointBatch joint = solve_jointly(pointers_to(histories_), options);
    note_approximation(joint.assumes);
    const Journal& first = histories_.front().journal();
    merged_.emplace(first.base());
    joint.entry.setting = merged_->journal().add_setting(first.settings()[first.batches().back().setting]);
    merged_->add(std::move(joint.entry), std::move(joint.batch), sources_.front().files().config);
  }

  MergedOutput apply() {
    std::optional<ResolvedJob> config;
    ReplayedEdits given;
    ranks_.run_collectively("edits", [&] {
      config = config_for(merged_->journal());
      given.batches = numbered(merged_->journal()).batches;
    });
    given.n_replayed = given.batches.size();
    if (ranks_.is_root()) given.history = std::move(*merged_);
    result_.made = make_output(*config, ranks_, std::move(given));
    return std::move(result_);
  }

  const MergeJob& job_;
  Communicator& ranks_;
  Sources sources_;
  Histories histories_;  ///< the histories of the sources, without the edits that were taken out
  std::optional<EditHistory> merged_;
  MergedOutput result_;
};

}  // namespace

MergedOutput run_merge_job(const MergeJob& job, Communicator& communicator) { return Merge(job, communicator).run(); }

}  // namespace lancet
