#include "made_output.h"

#include <cstdio>
#include <iostream>

#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

void print_metrics(const MadeOutput& made) {
  const EditReport& report = made.report;
  const bool has_earlier = !made.measured_before.empty();
  std::vector<std::string> head{"metric, %", "unedited", has_earlier ? "before" : "after", "prompts"};
  if (has_earlier) head.insert(head.begin() + 3, "after");
  std::vector<std::vector<std::string>> rows{head};
  for (const MetricRow& row : report.after.metrics) {
    const Tally& after = report.after.totals.find(row.name)->second;
    rows.push_back({row.name, metric_text(row, report.before.totals.find(row.name)->second.mean())});
    if (has_earlier) {
      const auto earlier = made.measured_before.find(row.name);
      rows.back().push_back(earlier == made.measured_before.end() ? "n/a" : metric_text(row, earlier->second));
    }
    rows.back().push_back(metric_text(row, after.mean()));
    rows.back().push_back(std::to_string(after.count));
  }
  std::cout << "\n" << format_table(rows) << "\n";
}

void print_rebased(const std::vector<RebasedEdit>& edits) {
  if (edits.empty()) return;
  double cosine = 0, ratio = 0;
  const RebasedEdit* farthest = &edits.front();
  for (const RebasedEdit& edit : edits) {
    cosine += edit.key_cosine;
    ratio += edit.residual_ratio;
    if (edit.key_cosine < farthest->key_cosine) farthest = &edit;
  }
  const auto n = static_cast<double>(edits.size());
  char text[160];
  std::snprintf(text, sizeof(text),
                "keys here and there: cosine %.3f in the mean, %.3f for %s; residuals %.2f times as large", cosine / n,
                farthest->key_cosine, farthest->id.c_str(), ratio / n);
  std::cout << "  " << text << "\n";
}

}  // namespace

ExitCode show_made(const MadeOutput& made, const Output& output) {
  for (const std::string& warning : made.report.outcome.warnings) log_warning(warning);
  if (output.json) {
    std::cout << made.report_json;
  } else if (!output.quiet) {
    print_metrics(made);
    print_rebased(made.rebased);
    std::cout << "  " << counted(made.report.requests.size(), "edit")
              << (made.report.requests.size() == 1 ? " stands, " : " stand, ") << made.report.model_dtype << " on "
              << made.report.devices << ", " << duration_text(total_seconds(made.report.stages))
              << "\n  written: " << made.place.named().string() << "\n"
              << std::flush;
  }
  return ExitCode::kOk;
}

Argument add_made_options(CLI::App& command, MadeArguments& made, const std::string& base, const std::string& help) {
  const Argument folder = add_output_folder(command, made.output, help);
  add_option(command, base, made.model, "Base model; default: where the edits' base model was").type("DIR");
  add_option(command, "--set", made.overrides, "Change a key of the job that made the edits: --set run.dtype=f32")
      .repeats()
      .type("KEY=VALUE");
  add_output_options(command, made.shown);
  add_rank_options(command, made.ranks);
  return folder;
}

}  // namespace lancet::cli
