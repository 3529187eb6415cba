// `lancet apply`, `lancet undo`: models made of edits that are data, and of fewer of them.
#include <iostream>
#include <memory>

#include "commands.h"
#include "edits/made_output.h"
#include "lancet/core/strings.h"
#include "lancet/core/words.h"
#include "lancet/history/apply_adapter.h"
#include "lancet/history/apply_job.h"
#include "lancet/history/undo_job.h"
#include "table.h"

namespace lancet::cli {
namespace {

struct ApplyArguments {
  std::string edits, model, out;
  bool adapter = false, rebase = false, anyway = false, replace = false;
  std::vector<std::string> overrides;
};

struct UndoArguments {
  std::string output, model, out, mode = "auto";  // auto is no mode: the job chooses one
  std::vector<std::string> ids, where, overrides;
  int64_t last = 1;
  bool replace = false;
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

ExitCode run_apply(const ApplyArguments& arguments, const Output& output, RankSession& session) {
  ApplyJob job{.edits = arguments.edits,
               .model = arguments.model,
               .out = arguments.out,
               .if_exists = arguments.replace ? IfExists::kReplace : IfExists::kError,
               .overrides = arguments.overrides,
               .other_base = arguments.rebase   ? OtherBase::kRebase
                             : arguments.anyway ? OtherBase::kAdd
                                                : OtherBase::kRefuse};
  if (arguments.adapter) job.overrides.emplace_back("output.format=adapter");
  if (is_foreign_adapter(job.edits)) {
    if (session.communicator().size() > 1)
      throw ConfigError("an adapter is added by one process: run lancet apply without ranks");
    return show_adapted(apply_adapter(job), job, output);
  }
  const MadeOutput made = run_apply_job(job, session.communicator());
  return session.communicator().is_root() ? show_made(made, output) : ExitCode::kOk;
}

ExitCode run_undo(const UndoArguments& arguments, const Output& output, RankSession& session) {
  UndoJob job{.output = arguments.output,
              .model = arguments.model,
              .out = arguments.out,
              .if_exists = arguments.replace ? IfExists::kReplace : IfExists::kError,
              .selection = {.ids = arguments.ids, .where = arguments.where, .last_batches = arguments.last},
              .mode = find_undo_mode(arguments.mode),
              .overrides = arguments.overrides};
  const MadeOutput made = run_undo_job(job, session.communicator());
  if (!session.communicator().is_root()) return ExitCode::kOk;
  if (!output.quiet && !output.json) {
    std::cout << "  taken back (" << undo_mode_name(made.undone->mode)
              << "): " << counted(made.undone->edits.size(), "edit") << "\n";
    if (!made.undone->approximation.empty())
      std::cout << "  not as if never edited: " << made.undone->approximation << "\n";
  }
  return show_made(made, output);
}

}  // namespace

void add_apply(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ApplyArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(app, "apply",
                                  "Add the edits of an output to their base model again: the same bytes.\n"
                                  "  lancet apply out/demo --to models/base --out out/again\n"
                                  "Or the change of an adapter of PEFT to its model, which is not measured.\n"
                                  "  lancet apply out/found --to models/base --out out/adapted");
  add_option(command, "edits", arguments->edits, "Output of lancet edit, its folder edits/, or an adapter of PEFT")
      .type("DIR")
      .required();
  add_option(command, "--to", arguments->model, "Base model; where the edits' base lay").type("DIR");
  add_option(command, "--out", arguments->out, "Folder for the edited model").type("DIR").required();
  add_flag(command, "--adapter", arguments->adapter, "Write a LoRA adapter in the place of a checkpoint");
  const Argument rebase = add_flag(command, "--rebase", arguments->rebase,
                                   "On another base: make the same edits again there, with keys and values of its own");
  add_flag(command, "--add-anyway", arguments->anyway, "On another base: add the stored changes to it as they are")
      .excludes(rebase);
  add_flag(command, "--replace", arguments->replace, "Replace an earlier output there");
  add_made_overrides(command, arguments->overrides);
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output, [&](RankSession& session) { return run_apply(*arguments, *output, session); });
  });
}

void add_undo(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<UndoArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(app, "undo",
                                  "Take edits of an output back: the last batch, or the ones that are named.\n"
                                  "  lancet undo out/demo\n"
                                  "  lancet undo out/demo --edits 17,23 --mode downdate");
  add_option(command, "output", arguments->output, "Output of lancet edit; replaced at once, unless --out is there")
      .type("DIR")
      .required();
  add_option(command, "--out", arguments->out, "Folder for the model without the edits").type("DIR");
  add_option(command, "--last", arguments->last, "How many of the last batches").positive().shows_default();
  const Argument ids = add_option(command, "--edits", arguments->ids, "Ids of edits").separated_by(',').type("ID,...");
  add_option(command, "--where", arguments->where,
             "Edits by how they were measured: 'specificity_prob.after < 0.5', 'success == false'; several: all hold")
      .repeats()
      .type("CONDITION")
      .excludes(ids);
  add_option(command, "--mode", arguments->mode,
             "last: of the last batches, exact; downdate: out of their batches' solves, in seconds; replay: everything "
             "after them is edited again")
      .one_of({"auto", "last", "downdate", "replay"})
      .shows_default();
  add_option(command, "--model", arguments->model, "Base model; where the edits' base lay").type("DIR");
  add_flag(command, "--replace", arguments->replace, "Replace an earlier output in --out");
  add_made_overrides(command, arguments->overrides);
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output, [&](RankSession& session) { return run_undo(*arguments, *output, session); });
  });
}

}  // namespace lancet::cli
