// `lancet erase`: facts that a model should no longer say.
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/erasure/erase_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

std::string share_text(int64_t count, int64_t of) {
  return percent_text(of > 0 ? std::optional(static_cast<double>(count) / static_cast<double>(of)) : std::nullopt);
}

std::string said_text(const Audit& audit) {
  std::vector<std::vector<std::string>> rows{{"old answer said, %", "before", "after", "asked"}};
  for (const AuditRow& row : summarize(audit))
    rows.push_back(
        {row.name, share_text(row.before, row.asked), share_text(row.after, row.asked), std::to_string(row.asked)});
  return format_table(rows);
}

std::string relearned_text(const Audit& audit) {
  if (audit.relearned.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"related facts trained", "prompt, %", "paraphrase, %", "returned"}};
  for (const Relearned& result : audit.relearned)
    rows.push_back({std::to_string(result.facts), share_text(result.prompt, result.prompts),
                    share_text(result.paraphrase, result.paraphrases), std::to_string(result.returned)});
  return "\n" + format_table(rows);
}

/// Returns what was measured on other facts.
std::string others_text(const EditReport& report) {
  const std::string metrics = before_after_text(report.before, report.after);
  const std::string side_effects = side_effects_text(report.before.side_effects, report.after.side_effects);
  return cat(metrics.empty() ? "" : "\n", metrics, side_effects.empty() ? "" : "\n", side_effects);
}

void print_summary(const EraseReport& report, const JobConfig& job) {
  const Audit& audit = report.audit;
  std::cout << "\n" << said_text(audit) << relearned_text(audit) << others_text(report.edit);
  std::cout << "\n  " << counted(audit.facts.size(), "fact") << " erased by " << job.method << "; " << kAuditCaution
            << "\n  written: " << job.output->place.named().string()
            << ": the merged model; no journal, no requests, no report\n  written: " << report.audit_folder.string()
            << ": audit.html and the reports, which quote the facts\n"
            << std::flush;
}

ExitCode run_erase(const JobArguments& arguments, const Output& output) {
  begin(output);
  refuse_several_processes("lancet erase");
  const ResolvedJob job = read_job(arguments, JobPurpose::kErase);
  const EraseReport report = run_erase_job(job);
  for (const std::string& warning : report.edit.outcome.warnings) log_warning(warning);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    print_summary(report, job);
  return ExitCode::kOk;
}

}  // namespace

void add_erase(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "erase",
                                  "Make a model say something neutral instead of facts, and check what it still "
                                  "says. The model is written without records of the facts.\n"
                                  "  lancet erase job.yaml --set erase.target=unknown");
  add_job(command, *arguments).required();
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_erase(*arguments, *output); });
}

}  // namespace lancet::cli
