// What a tune leaves: a preset file and a plot.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/job/tune_job.h"

namespace lancet {
namespace {

constexpr double kWidth = 760, kHeight = 440, kLeft = 60, kRight = 20, kTop = 46, kBottom = 52;

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

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

/// Rounds along x, evenly: their requests grow by a factor each.
class Axes {
 public:
  Axes(const TuneReport& report) : rounds_(report.before.size()) {
    for (const Trial& trial : report.trials)
      for (const TrialScore& score : trial.scores) {
        low_ = std::min(low_, score.objective);
        high_ = std::max(high_, score.objective);
      }
    low_ = std::floor(low_ * 10) / 10;
    high_ = std::max(low_ + 0.1, std::ceil(high_ * 10) / 10);
  }
  double x(size_t round) const {
    const double steps = std::max<double>(1, static_cast<double>(rounds_) - 1);
    return kLeft + (kWidth - kLeft - kRight) * (rounds_ == 1 ? 0.5 : static_cast<double>(round) / steps);
  }
  double y(double objective) const {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * (objective - low_) / (high_ - low_);
  }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  size_t rounds_;
  double low_ = 1, high_ = 0;
};

std::string text_at(double x, double y, const std::string& anchor, const std::string& text) {
  return cat("<text x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\" text-anchor=\"", anchor, "\">", escaped(text),
             "</text>\n");
}

std::string grid(const Axes& axes, const TuneReport& report) {
  std::string out;
  const int ticks = static_cast<int>(std::lround((axes.high() - axes.low()) * 10));
  for (int i = 0; i <= ticks; ++i) {
    const double value = axes.low() + 0.1 * i;
    out += cat("<line x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", fixed(axes.y(value), 1), "\" y2=\"",
               fixed(axes.y(value), 1), "\" stroke=\"#ddd\"/>\n");
    out += text_at(kLeft - 8, axes.y(value) + 4, "end", fixed(100 * value, 0));
  }
  for (size_t round = 0; round < report.before.size(); ++round) {
    const std::string anchor = round + 1 == report.before.size() && round > 0 ? "end" : round == 0 ? "start" : "middle";
    out += text_at(axes.x(round), kHeight - kBottom + 20, anchor, cat(report.before[round].requests, " requests"));
  }
  return out;
}

/// A line through a trial's scores; what it is shows when it is pointed at.
std::string line_of(const Trial& trial, const Axes& axes, bool is_best) {
  const std::string color = is_best ? "#c2410c" : "#64748b";
  std::string points, dots;
  for (size_t round = 0; round < trial.scores.size(); ++round) {
    const std::string x = fixed(axes.x(round), 1), y = fixed(axes.y(trial.scores[round].objective), 1);
    points += cat(round == 0 ? "" : " ", x, ",", y);
    dots += cat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"", is_best ? 5 : 3.5, "\" fill=\"", color, "\"/>");
  }
  const TrialScore& last = trial.scores.back();
  return cat("<g><title>", escaped(choice_text(trial)), ": ", fixed(100 * last.objective, 1), " on ", last.requests,
             " requests</title><polyline points=\"", points, "\" fill=\"none\" stroke=\"", color, "\" stroke-width=\"",
             is_best ? 2.5 : 1, "\"/>", dots, "</g>\n");
}

}  // namespace

std::string to_preset(const TuneReport& report, const TuneOptions& options) {
  ConfigTree preset = ConfigTree::map();
  preset.set("models", ConfigTree::list({ConfigTree::text(report.model)}));
  preset.set("config", to_tree(report.facts));
  const TrialScore& best = report.trials[0].scores.back();
  preset.set("source", ConfigTree::text(cat("lancet tune ", kVersion, ": best of ", report.trials.size(), " on ",
                                            best.requests, " requests, harmonic mean of ", join(options.objective), " ",
                                            fixed(best.objective, 4), ", before the edit ",
                                            fixed(report.before.back().objective, 4))));
  preset.set("editor", report.editor);
  std::vector<ConfigTree> trials;
  for (const Trial& trial : report.trials) trials.push_back(trial_tree(trial));
  preset.set("trials", ConfigTree::list(std::move(trials)));
  return to_yaml(preset);
}

std::string to_svg(const TuneReport& report) {
  const Axes axes(report);
  std::string out = cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight,
                        "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n<rect width=\"", kWidth,
                        "\" height=\"", kHeight, "\" fill=\"#fff\"/>\n");
  const auto failed = std::count_if(report.trials.begin(), report.trials.end(),
                                    [](const Trial& trial) { return !trial.failure.empty(); });
  out += text_at(kLeft, 20, "start",
                 cat(report.model, ": objective, %, of ", report.trials.size(), " choices",
                     failed > 0 ? cat(", ", failed, " of which failed") : ""));
  out += text_at(kLeft, 36, "start", "best: " + choice_text(report.trials[0]));
  out += grid(axes, report);
  for (size_t i = report.trials.size(); i-- > 0;)  // the best on top
    if (!report.trials[i].scores.empty()) out += line_of(report.trials[i], axes, i == 0);
  return out + "</svg>\n";
}

}  // namespace lancet
