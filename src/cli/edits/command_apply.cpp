// `lancet apply`, `lancet undo`: models made from stored edits, or from some of them.
#include <algorithm>
#include <iostream>
#include <memory>

#include "commands.h"
#include "edits/made_output.h"
#include "lancet/core/strings.h"
#include "lancet/history/apply_adapter.h"
#include "lancet/history/apply_job.h"
#include "lancet/history/undo_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

struct ApplyArguments {
  std::string edits;
  bool adapter = false, rebase = false, anyway = false;
  MadeArguments made;
};

struct UndoArguments {
  std::string output;
  std::vector<std::string> ids, where;
  TypedOptions how;
  MadeArguments made;
};

ExitCode show_adapted(const AppliedAdapter& applied, const ApplyJob& job, const Output& output) {
  if (output.json) std::cout << to_json(applied, job);
  if (output.json || output.quiet) return ExitCode::kOk;
  std::vector<std::vector<std::string>> rows{{"weight", "rank", "norm", "growth, %", "lost by rounding, %"}};
  for (const AdaptedWeight& weight : applied.weights)
    rows.push_back({weight.name, std::to_string(weight.rank), short_number(weight.norm), percent_text(weight.growth),
                    percent_text(weight.rounded)});
  std::cout << "\n" << format_table(rows) << "\n  written: " << job.out.string() << "\n";
  return ExitCode::kOk;
}

ExitCode run_apply(const ApplyArguments& arguments, RankSession& session) {
  const Output& shown = arguments.made.shown;
  ApplyJob job{.edits = arguments.edits,
               .model = arguments.made.model,
               .out = arguments.made.output.folder,
               .if_exists = arguments.made.output.if_exists(),
               .overrides = arguments.made.overrides,
               .other_base = arguments.rebase   ? OtherBase::kRebase
                             : arguments.anyway ? OtherBase::kAdd
                                                : OtherBase::kRefuse};
  if (arguments.adapter) job.overrides.emplace_back("output.format=adapter");
  if (is_foreign_adapter(job.edits)) {
    if (session.communicator().size() > 1)
      throw ConfigError("an adapter is added by one process: run lancet apply without ranks");
    return show_adapted(apply_adapter(job), job, shown);
  }
  const MadeOutput made = run_apply_job(job, session.communicator());
  return session.communicator().is_root() ? show_made(made, shown) : ExitCode::kOk;
}

/// Returns a line for each of the first facts, and how many more there are.
std::string facts_text(const std::vector<EditRequest>& facts) {
  constexpr size_t kShownFacts = 5;
  std::string text;
  for (size_t i = 0; i < std::min(facts.size(), kShownFacts); ++i)
    text +=
        cat("    ", facts[i].id, "  ", one_line(facts[i].prompt.text, 60), " → ", one_line(facts[i].target, 20), "\n");
  if (facts.size() > kShownFacts) text += cat("    and ", facts.size() - kShownFacts, " more\n");
  return text;
}

ExitCode run_undo(const UndoArguments& arguments, RankSession& session) {
  const Output& shown = arguments.made.shown;
  UndoJob job = arguments.how.read(parse_undo_options);
  job.output = arguments.output;
  job.model = arguments.made.model;
  job.out = arguments.made.output.folder;
  job.if_exists = arguments.made.output.if_exists();
  job.selection.ids = arguments.ids;
  job.selection.where = arguments.where;
  job.overrides = arguments.made.overrides;
  const MadeOutput made = run_undo_job(job, session.communicator());
  if (!session.communicator().is_root()) return ExitCode::kOk;
  if (!shown.quiet && !shown.json) {
    std::cout << "  taken back (" << undo_mode_name(made.undone->mode)
              << "): " << counted(made.undone->edits.size(), "edit") << "\n"
              << facts_text(made.taken_back);
    if (!made.undone->approximation.empty())
      std::cout << "  not as if never edited: " << made.undone->approximation << "\n";
  }
  return show_made(made, shown);
}

}  // namespace

void add_apply(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ApplyArguments>();
  CLI::App& command = add_command(app, "apply",
                                  "Add the edits of an output to their base model again, which gives the same bytes.\n"
                                  "  lancet apply out/demo --to models/base --out out/again\n"
                                  "Or add an adapter of PEFT to its model, without measuring it.\n"
                                  "  lancet apply out/found --to models/base --out out/adapted");
  add_option(command, "edits", arguments->edits, "Output of lancet edit, its folder edits/, or an adapter of PEFT")
      .type("DIR")
      .required();
  add_made_options(command, arguments->made, "--to", "Folder for the edited model").required();
  add_flag(command, "--adapter", arguments->adapter, "Write a LoRA adapter instead of a checkpoint");
  const Argument rebase = add_flag(command, "--rebase", arguments->rebase,
                                   "On another base model: make the same edits again, with new keys and values");
  add_flag(command, "--add-anyway", arguments->anyway, "On another base model: add the stored changes as they are")
      .excludes(rebase);
  on_choice(command, action, [=] {
    return run_as_rank(arguments->made.ranks, arguments->made.shown,
                       [&](RankSession& session) { return run_apply(*arguments, session); });
  });
}

void add_undo(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<UndoArguments>();
  CLI::App& command = add_command(app, "undo",
                                  "Take back edits of an output: the last batch, or the edits that you name.\n"
                                  "  lancet undo out/demo\n"
                                  "  lancet undo out/demo --edits 17,23 --mode downdate");
  add_option(command, "output", arguments->output,
             "Output of lancet edit; it is replaced, unless --out names another folder")
      .type("DIR")
      .required();
  const Argument ids =
      add_option(command, "--edits", arguments->ids, "Ids of the edits to take back").separated_by(',').type("ID,...");
  add_option(
      command, "--where", arguments->where,
      "Edits whose measures fulfil this: 'specificity_prob.after < 0.5', 'success == false'; several: all of them")
      .repeats()
      .type("CONDITION")
      .excludes(ids);
  arguments->how.add(command, UndoSpec::kAll);
  add_made_options(command, arguments->made, "--model", "Folder for the model without the edits");
  on_choice(command, action, [=] {
    return run_as_rank(arguments->made.ranks, arguments->made.shown,
                       [&](RankSession& session) { return run_undo(*arguments, session); });
  });
}

}  // namespace lancet::cli
