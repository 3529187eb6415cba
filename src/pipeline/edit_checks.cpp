#include "lancet/pipeline/edit_checks.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/editors/registry.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/requests/request_lengths.h"

namespace lancet {

void set_editor(JobConfig& job, const ConfigTree& editor, const std::string& where) {
  ConfigProblems problems(where);
  ConfigSection section(editor, "editor", problems);
  make_editor(section);
  problems.throw_if_any();
  job.editor = section.resolved();
  job.resolved = ConfigTree::map();
  job.resolved.set("editor", job.editor);
}

void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor) {
  const TargetForm form = target_form(editor.target_rule(), files.config, *files.tokenizer);
  check_old_answers(requests, editor);
  if (editor.values() != nullptr) {
    std::vector<std::string> known{"{}"};
    if (const ContextOptions* contexts = editor.contexts())
      if (std::optional<std::string> chat = chat_context(*contexts, files.checkpoint.folder(), *files.tokenizer))
        known.push_back(std::move(*chat));
    prepare_requests(*files.tokenizer, requests, known, form);
  } else {
    tokenize_requests(*files.tokenizer, requests, form.end);
  }
}

void check_old_answers(std::span<const EditRequest> requests, const Editor& editor) {
  if (!editor.needs().old_answer) return;
  for (const EditRequest& request : requests)
    if (!request.target_true)
      throw ConfigError(cat("request ", request.id, ": expected target_true, the answer that the method takes out; ",
                            "lancet erase asks the model for it"));
}

void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests) {
  refuse_long_requests(*files.tokenizer, requests, files.config.max_positions);
}

std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after) {
  std::vector<std::string> unmet;
  for (const auto& [name, threshold] : job.accept) {
    const auto total = after.totals.find(name);
    const std::optional<double> share = total == after.totals.end() ? std::nullopt : total->second.mean();
    if (!share)
      unmet.push_back(cat(name, ": n/a for these requests, expected at least ", 100 * threshold, " %"));
    else if (*share < threshold)
      unmet.push_back(cat(name, ": ", shortfall_text(*share, threshold)));
  }
  return unmet;
}

}  // namespace lancet
