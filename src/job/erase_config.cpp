#include "erase_config.h"

#include <algorithm>

#include "lancet/core/strings.h"
#include "lancet/spec/read_option.h"
#include "lancet/text/prompt.h"
#include "request_config.h"

namespace lancet {
namespace {

constexpr int64_t kUsualCounts[] = {1, 5, 20};

EraseOptions::Relearning parse_relearning(ConfigSection section, const std::filesystem::path& base) {
  EraseOptions::Relearning relearn;
  relearn.requests = parse_request_source(section, base, TargetNeed::kOptional);
  std::vector<int64_t> usual(std::begin(kUsualCounts), std::end(kUsualCounts));
  relearn.counts = read_or_auto(section, RelearnSpec::kCounts).value_or(std::move(usual));
  std::ranges::sort(relearn.counts);
  if (relearn.counts.empty() || std::ranges::adjacent_find(relearn.counts) != relearn.counts.end())
    section.problem(RelearnSpec::kCounts.key, "expected at least one number of facts, each once");
  relearn.steps = read(section, RelearnSpec::kSteps);
  relearn.lr = read(section, RelearnSpec::kLr);
  section.finish();
  return relearn;
}

}  // namespace

EraseOptions parse_erase(ConfigSection& job, const std::filesystem::path& base) {
  ConfigSection section = job.section(JobSpec::kErase.key);
  EraseOptions options;
  if (std::string target = read(section, EraseSpec::kTarget); target != EraseSpec::kAuto)
    options.target = std::move(target);
  if (options.target && options.target->find_first_not_of(" \t\n") == std::string::npos)
    section.problem(EraseSpec::kTarget.key, "expected a text that the model shall say, or auto");
  options.own_targets = read(section, EraseSpec::kOwnTargets);
  if (std::vector<std::string> prompts = read(section, EraseSpec::kPrompts); !prompts.empty())
    options.prompts = std::move(prompts);
  for (const std::string& prompt : options.prompts)
    if (!has_one_place(prompt))
      section.problem(EraseSpec::kPrompts.key,
                      cat("'", prompt, "': expected one {} where the request's own prompt goes"));
  options.samples = read(section, EraseSpec::kSamples);
  options.temperature = read(section, EraseSpec::kTemperature);
  options.tokens = read(section, EraseSpec::kTokens);
  if (section.has(EraseSpec::kRelearn.key))
    options.relearn = parse_relearning(section.section(EraseSpec::kRelearn.key), base);
  section.finish();
  return options;
}

void refuse_in_erasure(ConfigSection& job) {
  if (job.has(JobSpec::kContinueFrom.key))
    job.problem(JobSpec::kContinueFrom.key,
                "expected none: the output of an erasure has no edits that one could go on from");
  if (job.has(JobSpec::kAccept.key))
    job.problem(JobSpec::kAccept.key,
                "expected none: an erasure is judged by its audit, which `accept` knows nothing of");
  ConfigSection output = job.section(JobSpec::kOutput.key);
  if (output.has(OutputSpec::kState.key))
    output.problem(OutputSpec::kState.key, "expected none: an erasure keeps no state that a job could go on from");
  if (output.text(OutputSpec::kFormat.key, "auto") == "adapter")
    output.problem(OutputSpec::kFormat.key,
                   "expected auto, checkpoint, mixed or quantised: beside an adapter the model that still says the "
                   "facts stays as it is");
}

}  // namespace lancet
