// `lancet tune`: finds options of an editor for a model.
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/io/unfinished_folder.h"
#include "lancet/runtime/communicator.h"
#include "lancet/studies/tune_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kShownTrials = 20;

std::string score_text(const Trial& trial, size_t round) {
  return round < trial.scores.size() ? percent_text(trial.scores[round].objective) : "";
}

std::string trials_text(const TuneReport& report) {
  std::vector<std::vector<std::string>> rows{{"trial"}};
  for (const TrialScore& before : report.before)
    rows[0].push_back(counted(static_cast<size_t>(before.requests), "request"));
  rows.push_back({"unedited"});
  for (const TrialScore& before : report.before) rows.back().push_back(percent_text(before.objective));
  for (size_t i = 0; i < std::min(kShownTrials, report.trials.size()); ++i) {
    const Trial& trial = report.trials[i];
    rows.push_back({cat(i + 1, "  ", choice_text(trial), trial.failure.empty() ? "" : "  (failed)")});
    for (size_t round = 0; round < report.before.size(); ++round) rows.back().push_back(score_text(trial, round));
  }
  return format_table(rows);
}

std::string trials_json(const TuneReport& report, const fs::path& preset) {
  Json trials = Json::array();
  for (const Trial& trial : report.trials) {
    Json choice = Json::object(), scores = Json::array();
    for (const auto& [key, value] : trial.choice) choice[key] = to_yaml(value);
    for (const TrialScore& score : trial.scores) {
      scores.push_back({{"requests", score.requests}, {"objective", score.objective}});
      for (const auto& [name, value] : score.of) scores.back()[name] = value;
    }
    trials.push_back({{"choice", choice}, {"scores", scores}, {"failed", trial.failure}});
  }
  return Json{{"format", "lancet-tune-1"}, {"preset", preset.string()}, {"trials", trials}}.dump(1) + "\n";
}

/// Names the lock. A preset is a file, and not a folder of lancet's.
constexpr OutputKind kTuneOutput{"tune"};

/// Checks the two files, and what an unfinished run left beside them, before the work begins.
void check_target(const fs::path& preset) {
  check_unfinished(unfinished_folder(preset));
  for (const fs::path& file : {preset, fs::path(preset).replace_extension(".svg")})
    if (fs::exists(file)) throw ConfigError(cat("--out: ", file.string(), ": exists already: choose another name"));
  const fs::path folder = fs::absolute(preset).parent_path();
  if (!fs::is_directory(folder)) throw ConfigError(cat("--out: ", folder.string(), ": is no folder: make it first"));
  if (preset.extension() != ".yaml")
    throw ConfigError(cat("--out: ", preset.string(), ": expected a name that ends with .yaml"));
}

ExitCode run_tune(const JobArguments& arguments, const std::string& out, const Output& output) {
  begin(output);
  refuse_several_processes("lancet tune");
  check_target(out);
  const ResolvedJob job = read_job(arguments, JobPurpose::kTune);
  const fs::path preset(out), plot = fs::path(out).replace_extension(".svg");
  const OutputLock lock(preset, kTuneOutput);
  const TuneReport report = run_tune_job(job, say_which_runs_are_kept(job, alone(), unfinished_folder(preset)));
  write_text_file(plot, to_svg(report));
  write_text_file(preset, to_preset(report));
  remove_unfinished(unfinished_folder(preset));
  if (output.json)
    std::cout << trials_json(report, preset);
  else if (!output.quiet)
    std::cout << "\n"
              << trials_text(report) << "  written: " << preset.string() << ", " << plot.string()
              << "\n  take it: editor: {preset: " << fs::absolute(preset).string() << "}\n";
  return ExitCode::kOk;
}

}  // namespace

void add_tune(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto out = std::make_shared<std::string>("preset.yaml");
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "tune",
                                  "Find options of an editor for a model, on other requests than those to edit (the "
                                  "job's tune.requests, else the first half of its requests). Finished trials are "
                                  "kept: after a stop, the same command continues.\n"
                                  "  lancet tune job.yaml --out preset.yaml");
  add_job(command, *arguments).required();
  add_option(command, "--out", *out, "File for the preset; a plot (.svg) is written beside it")
      .shows_default()
      .type("FILE");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_tune(*arguments, *out, *output); });
}

}  // namespace lancet::cli
