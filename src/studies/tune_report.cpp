// Writes the output of a tune: a preset file and a plot.
#include <algorithm>
#include <cstdio>

#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/pages/plot.h"
#include "lancet/studies/tune_job.h"

namespace lancet {
namespace {

ConfigTree scores_tree(const std::vector<TrialScore>& scores) {
  std::vector<ConfigTree> items;
  for (const TrialScore& score : scores) {
    ConfigTree item = ConfigTree::map();
    item.set("requests", ConfigTree::number(score.requests));
    item.set("objective", ConfigTree::number(score.objective));
    for (const auto& [name, value] : score.of) item.set(name, ConfigTree::number(value));
    items.push_back(std::move(item));
  }
  return ConfigTree::list(std::move(items));
}

ConfigTree trial_tree(const Trial& trial) {
  ConfigTree choice = ConfigTree::map();
  for (const auto& [key, value] : trial.choice) choice.set(key, value);
  ConfigTree tree = ConfigTree::map();
  tree.set("choice", std::move(choice));
  if (!trial.scores.empty()) tree.set("scores", scores_tree(trial.scores));
  if (!trial.failure.empty()) tree.set("failed", ConfigTree::text(trial.failure));
  return tree;
}

std::string fixed(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

/// The x axis has the rounds at even distances, because the number of requests grows by a factor from round to round.
PlotFrame plot_frame(const TuneReport& report) {
  const auto failed = std::count_if(report.trials.begin(), report.trials.end(),
                                    [](const Trial& trial) { return !trial.failure.empty(); });
  PlotFrame frame{.title = cat(report.model, ": ", report.trials.size(), " choices",
                               failed > 0 ? cat(", ", failed, " of which failed") : ""),
                  .subtitle = "best: " + choice_text(report.trials[0]),
                  .x = {.label = "requests of each round", .low = 0},
                  .y = {.label = "objective, %", .numbers = AxisNumbers::kPercent},
                  .width = 760,
                  .height = 440};
  frame.x.high = std::max<double>(1, static_cast<double>(report.before.size()) - 1);
  for (size_t round = 0; round < report.before.size(); ++round)
    frame.x.ticks.emplace_back(static_cast<double>(round), std::to_string(report.before[round].requests));
  return frame;
}

PlotSeries series_of(const Trial& trial, SeriesLook look) {
  const TrialScore& last = trial.scores.back();
  PlotSeries series{.name = choice_text(trial), .look = look};
  series.note =
      cat(series.name, ": ", percent(last.objective), " on ", counted(static_cast<size_t>(last.requests), "request"));
  for (size_t round = 0; round < trial.scores.size(); ++round) {
    series.x.push_back(static_cast<double>(round));
    series.y.push_back(trial.scores[round].objective);
  }
  return series;
}

}  // namespace

std::string to_preset(const TuneReport& report) {
  ConfigTree preset = ConfigTree::map();
  preset.set("models", ConfigTree::list({ConfigTree::text(report.model)}));
  preset.set("config", to_tree(report.facts));
  const TrialScore& best = report.trials[0].scores.back();
  preset.set("source",
             ConfigTree::text(cat("lancet tune ", kVersion, ": best of ", report.trials.size(), " on ",
                                  counted(static_cast<size_t>(best.requests), "request"), ", harmonic mean of ",
                                  join(report.objective), " ", fixed(best.objective, 4), ", before the edit ",
                                  fixed(report.before.back().objective, 4))));
  preset.set("editor", report.editor);
  std::vector<ConfigTree> trials;
  for (const Trial& trial : report.trials) trials.push_back(trial_tree(trial));
  preset.set("trials", ConfigTree::list(std::move(trials)));
  return to_yaml(preset);
}

std::string to_svg(const TuneReport& report) {
  std::vector<PlotSeries> series;
  for (size_t i = report.trials.size(); i-- > 0;)  // draws the best one last, on top
    if (!report.trials[i].scores.empty())
      series.push_back(series_of(report.trials[i], i == 0 ? SeriesLook::kAccent : SeriesLook::kMuted));
  return line_plot(plot_frame(report), series);
}

}  // namespace lancet
