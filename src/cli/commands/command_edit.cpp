#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "commands.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/journal/journal.h"
#include "lancet/outcome/subject_verdict.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/plan/model_session.h"
#include "lancet/studies/rehearsal.h"
#include "rehearsal_text.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

constexpr size_t kShownAnswers = 5, kShownFailures = 10, kShownWeights = 8;

/// Returns the metrics as text. For several batches there is also what was measured right after each batch.
std::string metrics_text(const EditReport& report) {
  const Tallies right_after = report.batches.size() > 1 ? report.right_after() : Tallies{};
  std::vector<std::string> head{"metric, %", "before", "after", "prompts"};
  if (!right_after.empty()) head = {"metric, %", "before", "right after", "after all", "prompts"};
  std::vector<std::vector<std::string>> rows{head};
  for (const MetricRow& row : report.after.metrics) {
    const Tally& after = report.after.totals.find(row.name)->second;
    if (after.count == 0) continue;  // no request has prompts for it
    rows.push_back({row.name, metric_text(row, report.before.totals.find(row.name)->second.mean())});
    if (!right_after.empty()) rows.back().push_back(metric_text(row, right_after.find(row.name)->second.mean()));
    rows.back().push_back(metric_text(row, after.mean()));
    rows.back().push_back(std::to_string(after.count));
  }
  return rows.size() > 1 ? format_table(rows) : std::string();
}

/// Returns what the model now says differently about a request's subject: texts in full, next tokens in one line.
std::string subject_changes_text(const EditReport& report, size_t request) {
  std::string texts, tokens;
  size_t n_kept = 0, n_tokens = 0;
  for (const ComparedAnswer& answer : compared_answers(report, request)) {
    const bool is_text = answer.asked == AskedFor::kText || answer.asked == AskedFor::kChatText;
    if (!is_text) {
      ++n_tokens;
      n_kept += answer.is_kept() ? 1 : 0;
    }
    if (answer.is_kept()) continue;
    const std::string prompt = cat(is_text ? "" : " ", one_line(answer.prompt, 40));
    if (is_text)
      texts += cat("      ", answer.asked == AskedFor::kChatText ? "user: " : "", prompt,
                   "\n        before: ", one_line(answer.before, 70), "\n        after:  ", one_line(answer.after, 70),
                   "\n");
    else if (answer.asked == AskedFor::kNextToken)
      tokens +=
          cat(tokens.empty() ? "" : ",", prompt, ": ", one_line(answer.before, 20), " → ", one_line(answer.after, 20));
  }
  if (n_tokens == 0) return texts;
  const std::string& subject = report.requests[request].subject;
  return cat("    else about ", one_line(subject, 40), ": ", n_kept, " of ", counted(n_tokens, "next token"),
             " as before\n", texts, tokens.empty() ? "" : cat("      next token:", tokens, "\n"));
}

/// Returns the answers to the first facts before and after, and what else changed about each subject, once for a
/// subject.
std::string answers_text(const EditReport& report) {
  std::string out;
  std::set<std::string_view> subjects;
  for (size_t i = 0; i < std::min(kShownAnswers, report.requests.size()); ++i) {
    const EditRequest& request = report.requests[i];
    const bool has_text = i < report.after.continuations.size() && i < report.before.continuations.size();
    const std::string changes = subjects.insert(request.subject).second ? subject_changes_text(report, i) : "";
    if (!has_text && changes.empty()) continue;
    out += cat("  ", one_line(request.prompt.text, 70), "  → ", request.target, "\n");
    if (has_text)
      out += cat("    before: ", one_line(report.before.continuations[i], 70),
                 "\n    after:  ", one_line(report.after.continuations[i], 70), "\n");
    out += changes;
  }
  return out;
}

/// Returns how many edits succeeded, and why the first failed ones did not.
std::string verdicts_text(const EditReport& report) {
  const SuccessCount count = count_successes(report);
  std::string out = cat("  ", success_text(count), "\n");
  size_t shown = 0;
  for (size_t i = 0; i < report.verdicts.size() && shown < kShownFailures; ++i) {
    const Verdict& verdict = report.verdicts[i];
    if (verdict.why.empty()) continue;
    out += cat("    ", one_line(report.requests[i].prompt.text, 50), "  → ", report.requests[i].target, ": ",
               verdict.why, "\n");
    ++shown;
  }
  if (const size_t failed = count.measured - count.successes; failed > shown)
    out += cat("    and ", failed - shown, " more: report.json, report.html\n");
  if (const std::optional<SubjectCount> subjects = count_subjects(report))
    out += cat("  ", subject_text(*subjects), "\n");
  return out;
}

/// Returns how far the weights moved from the unedited model. If there are many, only those that moved farthest.
std::string moved_weights_text(const EditReport& report) {
  std::vector<std::pair<std::string, RoundingLoss>> weights = report.rounding;
  if (weights.empty()) return {};
  const auto n_shown = std::min(kShownWeights, weights.size());
  if (n_shown < weights.size())
    std::stable_sort(weights.begin(), weights.end(),
                     [](const auto& a, const auto& b) { return a.second.growth() > b.second.growth(); });
  std::vector<std::string> shown;
  for (size_t i = 0; i < n_shown; ++i) shown.push_back(cat(weights[i].first, " ", percent(weights[i].second.growth())));
  const std::string others = n_shown < weights.size() ? cat(", ", weights.size() - n_shown, " more by less") : "";
  return cat("  moved, by the weight's norm: ", join(shown), others, "\n");
}

/// Returns what somebody else needs for the same model: the small folder, and the command that adds it to the base
/// model.
std::string hand_over_text(const EditReport& report, const JobConfig& job) {
  if (!report.unmet.empty() || count_successes(report).none()) return {};
  const std::string folder = (job.output->place.folder / kEditsFolder).string();
  return cat("  to pass on: ", folder, ", under any name; there: lancet apply ", kEditsFolder, " --to MODEL --out ",
             job.output->place.model_file ? "NEW.gguf" : "DIR", "\n");
}

std::string written_text(const EditReport& report, const OutputPlace& place) {
  const std::string folder = place.folder.string();
  if (!report.unmet.empty()) return cat("rejected: ", folder, ".rejected/report.json");
  if (!place.model_file) return cat("written: ", folder);
  return cat("written: ", place.model_file->string(), "; its edits, report and job: ", folder);
}

void print_summary(const EditReport& report, const JobConfig& job) {
  std::cout << "\n" << answers_text(report) << verdicts_text(report);
  if (const std::string standing = standing_text(report.standing); !standing.empty())
    std::cout << "  " << standing << "\n";
  std::cout << "\n" << metrics_text(report) << "\n";
  if (const std::string side_effects = side_effects_text(report.before.side_effects, report.after.side_effects);
      !side_effects.empty())
    std::cout << side_effects << "\n";
  if (report.statistics.corpus_exhausted)
    std::cout << "  statistics: the corpus has " << report.statistics.layers.front().tokens
              << " tokens, fewer than asked for; all were used\n";
  std::cout << "  " << counted(report.requests.size(), "request") << ", " << job.method << ", " << report.model_dtype
            << " on " << report.devices << ", " << duration_text(total_seconds(report.stages))
            << "\n  peak memory: " << peaks_text(overall_peaks(report.stages)) << "\n";
  std::cout << "  " << written_text(report, job.output->place) << "\n"
            << moved_weights_text(report) << hand_over_text(report, job) << std::flush;
}

ExitCode run_rehearsal(const ResolvedJob& job, const Output& output, Communicator& communicator) {
  const RehearsalReport report = rehearse_edit_job(job, communicator);
  if (!communicator.is_root()) return ExitCode::kOk;
  std::cout << (output.json ? to_json(report) : rehearsal_text(report));
  return ExitCode::kOk;
}

ExitCode run_edit(const ResolvedJob& job, const Output& output, Communicator& communicator) {
  say_what_is_kept(job, communicator);
  const EditReport report = run_edit_job(job, communicator);
  if (!communicator.is_root()) return report.unmet.empty() ? ExitCode::kOk : ExitCode::kNumeric;
  for (const std::string& warning : report.outcome.warnings) log_warning(warning);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    print_summary(report, job);
  if (const SuccessCount count = count_successes(report); count.none())
    log_warning(cat("no edit took: the model says the target of none of ", counted(count.measured, "request")));
  if (report.unmet.empty()) return ExitCode::kOk;
  std::cerr << "lancet: error: accept: not met, nothing was exported:\n";
  for (const std::string& unmet : report.unmet) std::cerr << "  " << unmet << "\n";
  return ExitCode::kNumeric;
}

}  // namespace

void add_edit(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(
      app, "edit",
      "Edit facts in a model and export it.\n"
      "  lancet edit job.yaml --set run.dtype=f32\n"
      "  lancet edit --model DIR --prompt \"The capital of {} is\" --subject France --target Rome --out DIR");
  add_job(command, *arguments);
  add_option(command, "--model", arguments->model,
             "Model folder or GGUF file; options come from its lancet.yaml, else from a preset for it, else they are "
             "automatic")
      .type("DIR");
  add_option(command, "--prompt", arguments->prompt, "One fact: its prompt, with {} in the place of the subject");
  add_option(command, "--subject", arguments->subject, "One fact: its subject");
  add_option(command, "--target", arguments->target, "One fact: what the model should say after the prompt");
  add_option(command, "--requests", arguments->requests, "Many facts: a request file, instead of --prompt")
      .type("FILE");
  add_option(command, "--out", arguments->out,
             "Folder for the edited model; for a GGUF model it can be a file, such as edited.gguf")
      .type("DIR");
  auto rehearse = std::make_shared<bool>(false);
  add_flag(
      command, "--rehearse", *rehearse,
      "Run every stage with two requests only, to find errors and to measure memory and time early; writes nothing");
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output, [&](RankSession& session) {
      const ResolvedJob job = load_job(*arguments, JobPurpose::kEdit, session);
      return run_on_model_ranks(job.run, job.ignore_config_keys, session.communicator(), [&](Communicator& own) {
        return *rehearse ? run_rehearsal(job, *output, own) : run_edit(job, *output, own);
      });
    });
  });
}

}  // namespace lancet::cli
