#include "lancet/history/downdated.h"

#include <algorithm>

#include "history_source.h"
#include "lancet/core/error.h"
#include "lancet/edit_history/downdate.h"
#include "lancet/outcome/batch_report.h"
#include "lancet/pipeline/replayed_edits.h"

namespace lancet {
namespace {

using Json = nlohmann::ordered_json;

Json report_of_kept(const BatchEntry& batch, const std::vector<int64_t>& kept) {
  if (batch.report.is_null()) return batch.report;
  return Json::parse(to_record(without_requests(from_record(batch.report.dump(), batch.edits.size()), kept)));
}

/// Whether batches after `first`, the first one that loses an edit, were solved with the keys of earlier batches.
bool has_history_of_keys(const EditHistory& history, size_t first) {
  if (first + 1 >= history.batches().size()) return false;
  const auto has_keys = [](const std::map<std::string, Tensor>& tensors) {
    return std::ranges::any_of(tensors, [](const auto& named) { return named.first.starts_with("keys."); });
  };
  const StateStep& step = history.batches()[first].state;
  return has_keys(step.appended) || has_keys(step.replaced);
}

}  // namespace

EditHistory without(const EditHistory& history, UndoEntry& entry, const ModelConfig& config,
                    const std::function<Tensor(const SolveAgain&)>& solve) {
  Downdated less =
      without_edits(history, {entry.edits.begin(), entry.edits.end()}, {.solve = solve, .report = report_of_kept});
  entry.keeps = less.keeps;
  entry.approximation = less.approximation;
  EditHistory left = history;
  left.undo(entry);
  for (size_t i = 0; i < less.entries.size(); ++i)
    left.add(std::move(less.entries[i]), std::move(less.batches[i]), config);
  return left;
}

Tensor solve_without(const SolveAgain& problem, const Editor& editor, const EditContext& context, EditorState& state) {
  return editor
      .solve_given(context,
                   {.layer = problem.system.id.layer,
                    .keys_FN = problem.system.keys_FN,
                    .residuals_DN = problem.system.residuals_DN,
                    .history_FM = problem.history_FM},
                   state)
      .change.right_RI;
}

EditHistory downdated(HistorySource& source, UndoEntry& entry, const ResolvedJob& job, Communicator& communicator) {
  const EditHistory& history = source.history();
  const ModelConfig& config = source.files().config;
  std::optional<EditHistory> left;
  if (!has_history_of_keys(history, entry.keeps)) {
    communicator.run_collectively("edits", [&] { left = without(history, entry, config, {}); });
    return std::move(*left);
  }
  EditorState state = history.state(job.editor->make_state());
  with_statistics(job, communicator, [&](const EditContext& context) {
    left = without(history, entry, config,
                   [&](const SolveAgain& problem) { return solve_without(problem, *job.editor, context, state); });
  });
  return std::move(*left);
}

}  // namespace lancet
