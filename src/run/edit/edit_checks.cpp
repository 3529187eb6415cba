#include "edit_checks.h"

#include <algorithm>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/requests/request_lengths.h"

namespace lancet {

namespace fs = std::filesystem;

namespace {

fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path.lexically_normal() : real;
}

bool is_inside(const fs::path& inner, const fs::path& outer) {
  const fs::path relative = real_path(inner).lexically_relative(real_path(outer));
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor) {
  if (editor.needs().subject) {
    const std::vector<std::string> plain{"{}"};
    prepare_requests(*files.tokenizer, requests, plain, editor.compat());
  } else {
    tokenize_requests(*files.tokenizer, requests);
  }
}

void check_lengths(const ModelFiles& files, const std::vector<EditRequest>& requests) {
  refuse_long_requests(*files.tokenizer, requests, files.config.max_positions);
}

void check_apart(const fs::path& output, const fs::path& model) {
  if (is_inside(output, model) || is_inside(model, output))
    throw ConfigError(cat("output.dir: ", output.string(), ": overlaps the model folder ", model.string(),
                          ": choose another folder"));
}

void check_new_output(const fs::path& out, IfExists if_exists, const OutputKind& kind) {
  std::error_code error;
  if (if_exists == IfExists::kError && fs::exists(out, error))
    throw ConfigError(cat("--out: ", out.string(), ": exists already: choose another name, or --replace it"));
  check_output_target(out, if_exists, kind);
}

void check_cache_outside(const fs::path& cache, const fs::path& folder) {
  if (is_inside(cache, folder))
    throw ConfigError(cat("statistics.cache: ", cache.string(), ": lies in ", folder.string(),
                          ", which the job replaces or removes: choose another folder for one of the two"));
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
