#include "edit_checks.h"

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/edit/prepared_request.h"

namespace lancet {

namespace fs = std::filesystem;

void check_requests(const ModelFiles& files, const std::vector<EditRequest>& requests, const Editor& editor) {
  if (editor.needs().subject) {
    const std::vector<std::string> plain{"{}"};
    prepare_requests(*files.tokenizer, requests, plain, editor.compat());
  } else {
    tokenize_requests(*files.tokenizer, requests);
  }
  editor.targets(files.config);
}

void check_apart(const fs::path& output, const fs::path& model) {
  const auto inside = [](const fs::path& inner, const fs::path& outer) {
    const fs::path relative = fs::weakly_canonical(inner).lexically_relative(fs::weakly_canonical(outer));
    return !relative.empty() && *relative.begin() != "..";
  };
  if (inside(output, model) || inside(model, output))
    throw ConfigError(cat("output.dir: ", output.string(), ": overlaps the model folder ", model.string(),
                          ": choose another folder"));
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
