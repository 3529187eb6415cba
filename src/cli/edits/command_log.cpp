// `lancet log`: the edits of an output.
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/edit_history/edit_history.h"
#include "lancet/history/undo_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::array kShownMetrics{"efficacy_prob", "paraphrase_prob", "specificity_prob"};

struct LogArguments {
  std::string folder;
  std::vector<std::string> where;
};

Journal open_journal(const fs::path& folder) {
  if (const std::optional<fs::path> found = find_journal(folder)) return Journal::read(*found);
  throw ConfigError(
      cat(folder.string(), ": expected the output of lancet edit, with ", kEditsFolder, "/", kJournalFile));
}

std::string share_cell(const std::map<std::string, double>& shares, const std::string& metric) {
  const auto found = shares.find(metric);
  if (found == shares.end()) return "";
  char text[16];
  std::snprintf(text, sizeof(text), "%.0f", 100 * found->second);
  return text;
}

std::string success_cell(const MeasuredEdit& held, const std::string* replaced_by) {
  if (replaced_by != nullptr) return cat("replaced by ", *replaced_by);
  return !held.success ? "" : *held.success ? "yes" : "no";
}

/// The schema is in docs/edits.md.
std::string log_json(const Journal& journal, const std::set<std::string>& shown) {
  const JournalBase& base = journal.base();
  const ReplacedEdits replaced = replaced_edits(journal);
  Json batches = Json::array(), undone = Json::array();
  for (const BatchEntry& batch : journal.batches()) {
    const EditSetting& setting = journal.settings()[batch.setting];
    Json edits = Json::array();
    for (const EditRecord& edit : batch.edits)
      if (shown.contains(edit.request.id)) edits.push_back(describe_edit(journal, edit, replaced));
    batches.push_back({{"when", batch.when},
                       {"method", setting.method},
                       {"dtype", setting.dtype},
                       {"version", setting.version},
                       {"edits", edits}});
  }
  for (const UndoEntry& undo : journal.undone()) undone.push_back(describe_undo(undo));
  return Json{{"base",
               {{"weights", base.weights},
                {"config", base.config},
                {"tokenizer", base.tokenizer},
                {"folder", base.folder}}},
              {"measured_on", journal.measured_on()},
              {"batches", batches},
              {"undone", undone}}
             .dump(2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string log_text(const Journal& journal, const std::set<std::string>& shown) {
  const ReplacedEdits replaced = replaced_edits(journal);
  std::vector<std::vector<std::string>> rows{{"batch", "id", "fact", "success"}};
  rows.front().insert(rows.front().end(), kShownMetrics.begin(), kShownMetrics.end());
  std::string out = cat("base   ", journal.base().folder, " (", journal.base().weights, ")\n");
  for (size_t i = 0; i < journal.batches().size(); ++i) {
    const BatchEntry& batch = journal.batches()[i];
    out += cat("batch  ", i + 1, "  ", batch.when, "  ", journal.settings()[batch.setting].method, "  ",
               counted(batch.edits.size(), "edit"), "\n");
    for (const EditRecord& edit : batch.edits) {
      if (!shown.contains(edit.request.id)) continue;
      rows.push_back({std::to_string(i + 1), edit.request.id,
                      cat(one_line(edit.request.prompt.text, 44), " → ", one_line(edit.request.target, 20))});
      const auto measured = journal.measured().find(edit.request.id);
      const MeasuredEdit none, &held = measured == journal.measured().end() ? none : measured->second;
      const auto later = replaced.find(edit.request.id);
      rows.back().push_back(success_cell(held, later == replaced.end() ? nullptr : &later->second));
      for (const char* metric : kShownMetrics) rows.back().push_back(share_cell(held.after, metric));
    }
  }
  for (const UndoEntry& undo : journal.undone())
    out += cat("undone ", undo.when, "  ", undo_mode_name(undo.mode), "  ", counted(undo.edits.size(), "edit"), ": ",
               one_line(join(undo.edits), 70), "\n");
  out += "\n" + format_table(rows);
  if (!journal.measured_on().empty()) out += cat("  shares in %, measured on ", journal.measured_on(), "\n");
  return out;
}

ExitCode run_log(const LogArguments& arguments, const Output& output) {
  begin(output);
  const Journal journal = open_journal(arguments.folder);
  EditSelection selection{.where = arguments.where, .last_batches = static_cast<int64_t>(journal.batches().size())};
  std::set<std::string> shown;
  if (!journal.batches().empty())
    for (std::string& id : chosen_edits(journal, selection)) shown.insert(std::move(id));
  std::cout << (output.json ? log_json(journal, shown) : log_text(journal, shown)) << std::flush;
  return ExitCode::kOk;
}

}  // namespace

void add_log(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<LogArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "log",
                                  "List the edits of an output, batch by batch, and how well they hold.\n"
                                  "  lancet log out/demo --where 'success == false'");
  add_option(command, "output", arguments->folder, "Output of lancet edit, or its folder edits/")
      .type("DIR")
      .required();
  add_option(command, "--where", arguments->where,
             "Only edits whose measures fulfil this: 'specificity_prob.after < 0.5'; several: all of them")
      .repeats()
      .type("CONDITION");
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_log(*arguments, *output); });
}

}  // namespace lancet::cli
