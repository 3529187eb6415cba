// `lancet merge`: joins the edits of several outputs.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "edits/made_output.h"
#include "lancet/core/strings.h"
#include "lancet/history/merge_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

struct MergeArguments {
  std::vector<std::string> edits, drop;
  std::string prefer;
  bool solve = false;
  MadeArguments made;
};

/// Returns the index of the preferred output, which is given by its path, or by its number from 1.
size_t preferred(const MergeArguments& arguments) {
  for (size_t i = 0; i < arguments.edits.size(); ++i)
    if (arguments.prefer == arguments.edits[i] || arguments.prefer == std::to_string(i + 1)) return i;
  throw ConfigError(
      cat("--prefer ", arguments.prefer, ": expected one of the outputs, ", join(arguments.edits), ", or its number"));
}

void print_merge(const MergedOutput& merged, const MergeJob& job) {
  for (const Conflict& conflict : merged.conflicts.conflicts)
    std::cout << "  resolved: " << conflict_line(conflict, job.edits) << "\n";
  if (!merged.dropped.empty())
    std::cout << "  left out: " << counted(merged.dropped.size(), "edit") << ": " << one_line(join(merged.dropped), 70)
              << "\n";
  if (!merged.interference.empty()) {
    std::vector<double> sizes;
    const Interference* worst = &merged.interference.front();
    for (const Interference& each : merged.interference) {
      sizes.push_back(each.largest);
      if (each.largest > worst->largest) worst = &each;
    }
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
    std::cout << "  what the other parts do at an edit's key: " << percent(sizes[sizes.size() / 2])
              << " of its change in the median, " << percent(worst->largest) << " for " << worst->id << " (layer "
              << worst->layer << ")\n";
  }
  if (!merged.approximation.empty()) std::cout << "  not each part by itself: " << merged.approximation << "\n";
}

ExitCode run_merge(const MergeArguments& arguments, RankSession& session) {
  const Output& shown = arguments.made.shown;
  MergeJob job{.edits = {arguments.edits.begin(), arguments.edits.end()},
               .model = arguments.made.model,
               .out = arguments.made.output.folder,
               .if_exists = arguments.made.output.if_exists(),
               .drop = arguments.drop,
               .solves = arguments.solve,
               .overrides = arguments.made.overrides};
  if (!arguments.prefer.empty()) job.prefer = preferred(arguments);
  const MergedOutput merged = run_merge_job(job, session.communicator());
  if (!session.communicator().is_root()) return ExitCode::kOk;
  if (!shown.quiet && !shown.json) print_merge(merged, job);
  return show_made(merged.made, shown);
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<MergeArguments>();
  CLI::App& command = add_command(app, "merge",
                                  "Join the edits of several outputs of one base model.\n"
                                  "  lancet merge out/a out/b --out out/both --solve");
  add_option(command, "edits", arguments->edits, "Outputs of lancet edit").type("DIR").required();
  add_option(command, "--prefer", arguments->prefer,
             "Output (or its number) whose edits stay if two edits contradict each other")
      .type("DIR");
  add_option(command, "--drop", arguments->drop, "Ids of edits to leave out").separated_by(',').type("ID,...");
  add_flag(command, "--solve", arguments->solve, "Solve for all edits together instead of adding their changes");
  add_made_options(command, arguments->made, "--to", "Folder for the edited model").required();
  on_choice(command, action, [=] {
    return run_as_rank(arguments->made.ranks, arguments->made.shown,
                       [&](RankSession& session) { return run_merge(*arguments, session); });
  });
}

}  // namespace lancet::cli
