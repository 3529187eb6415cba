// What an edit checks: before any weight is read, also by a rehearsal for the whole job, and of what it measured.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lancet/plan/model_session.h"

namespace lancet {

/// Gives the job this editor, with every default filled in; of `resolved` it becomes all. Throws: ConfigError "where:
/// editor: ...".
void set_editor(JobConfig& job, const ConfigTree& editor, const std::string& where);

/// Everything about the requests that can fail without a model pass. Throws: ConfigError.
void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor);

/// Throws: ConfigError for a request without `target_true`, where the method takes that answer out.
void check_old_answers(std::span<const EditRequest> requests, const Editor& editor);

/// refuse_long_requests() by the model's own positions. Throws: ConfigError.
void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests);

/// The job's `accept:` thresholds that were missed, a line each.
std::vector<std::string> unmet_thresholds(const JobConfig& job, const Evaluation& after);

}  // namespace lancet
