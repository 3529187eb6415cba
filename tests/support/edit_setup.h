// Requests and options for edits of small models in tests.
#pragma once

#include <string>
#include <vector>

#include "lancet/editors/registry.h"
#include "lancet/job_setup/resolved_job.h"
#include "lancet/requests/request.h"
#include "lancet/statistics/covariance.h"

namespace lancet::testing {

inline const std::vector<std::string> kContexts{"{}", "The answer is known. {}", "I know that well. {}"};

/// Flat requests about invented people.
std::vector<EditRequest> some_requests(int64_t count);

/// An editor from the YAML of its `editor:` section. Throws: ConfigError on any problem.
std::unique_ptr<Editor> editor_from(const std::string& yaml);

/// A job that has only an editor, from the YAML of its `editor:` section.
ResolvedJob job_with_editor(const std::string& yaml);

/// A corpus file of `lines` sentences in `folder`.
std::filesystem::path write_corpus(const std::filesystem::path& folder, int64_t lines);

/// E[k k^T] of a layer's keys, over all tokens or the documents' ends as the corpus says: one document at a time.
Tensor plain_moment(const CausalLM& model, const CorpusTokens& corpus, int64_t layer);

}  // namespace lancet::testing
