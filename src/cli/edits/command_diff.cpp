// `lancet diff`: the difference of two checkpoints, and the difference as an adapter.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/diff/diff_job.h"
#include "lancet/diff/edits_diff.h"
#include "lancet/spec/adapter_spec.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

struct DiffArguments {
  std::string before, after;
  bool edits = false;
  TypedOptions adapter, run;
  OutputArguments output;
};

/// Returns "3.2, 1.1, 0.4".
std::string first_values(const ChangeSpectrum& spectrum) {
  constexpr size_t kShown = 3;
  std::vector<std::string> values;
  for (const double value : std::span(spectrum.values).first(std::min(spectrum.values.size(), kShown)))
    values.push_back(short_number(value));
  return join(values) + (spectrum.values.size() > kShown ? ", ..." : "");
}

std::string weights_table(const DiffReport& report, bool writes) {
  std::vector<std::vector<std::string>> rows{{"weight", "change", "of it, %", "rank", "by", "in rank, %", "values"}};
  if (writes) rows.front().push_back("lost, %");
  for (const DifferentWeight& weight : report.different) {
    if (weight.spectrum && weight.spectrum->rank == 0) continue;  // these are counted below the table
    std::vector<std::string> row{weight.name, short_number(weight.size.norm),
                                 short_number(100 * weight.size.relative())};
    if (const auto& spectrum = weight.spectrum)
      for (const std::string& cell :
           {cat(spectrum->rank, spectrum->is_low_rank() ? "" : " (dense)"), std::string(rank_rule_name(spectrum->rule)),
            percent_text(spectrum->energy(spectrum->rank)), first_values(*spectrum)})
        row.push_back(cell);
    else
      row.resize(rows.front().size() - (writes ? 1 : 0), "-");
    if (writes) row.push_back(short_number(100 * weight.lost_norm / weight.size.norm));
    rows.push_back(std::move(row));
  }
  return format_table(rows);
}

std::string listed(const std::string& what, const std::vector<std::string>& names) {
  constexpr size_t kShown = 8;
  if (names.empty()) return "";
  const std::string more = names.size() > kShown ? cat(" and ", count_text(names.size() - kShown), " more") : "";
  return cat("  ", what, ": ", join(std::span(names).first(std::min(names.size(), kShown))), more, "\n");
}

std::string other_differences(const DiffReport& report) {
  std::string out = listed("in the first alone", report.only_before) + listed("in the second alone", report.only_after);
  for (const OtherShape& weight : report.other_shapes)
    out += cat("  of another shape: ", weight.name, ": ", shape_text(weight.before), ", then ",
               shape_text(weight.after), "\n");
  for (const DifferentKey& key : report.config)
    out += cat("  config.json: ", key.key, ": ", one_line(key.before.empty() ? "none" : key.before, 60), ", then ",
               one_line(key.after.empty() ? "none" : key.after, 60), "\n");
  std::vector<std::string> other, only_before, only_after;
  for (const DifferentFile& file : report.files)
    (file.difference == FileDifference::kOther        ? other
     : file.difference == FileDifference::kOnlyBefore ? only_before
                                                      : only_after)
        .push_back(file.name);
  return out + listed("files of other content", other) + listed("files of the first alone", only_before) +
         listed("files of the second alone", only_after);
}

std::string adapter_text(const DiffReport& report, const DiffJob& job) {
  if (!report.adapter) return "";
  std::string out;
  for (const DifferentWeight& weight : report.different)
    if (!weight.left_out.empty() && !(weight.spectrum && weight.spectrum->rank == 0))
      out += cat("  not in the adapter: ", weight.name, ": ", weight.left_out, "\n");
  return out + cat("  written: ", job.out.string(), ", an adapter of rank ", report.adapter->rank, " for ",
                   counted(report.adapter->modules, "module"), ", ",
                   bytes_text(static_cast<uint64_t>(report.adapter->file_bytes)), "\n");
}

std::string diff_text(const DiffReport& report, const DiffJob& job) {
  std::string out =
      cat("\n  ", counted(report.equal_bytes, "weight"), " of equal bytes, ", count_text(report.equal_numbers),
          " of equal numbers, ", count_text(report.different.size()), " differ\n");
  const auto is_noise = [](const DifferentWeight& weight) { return weight.spectrum && weight.spectrum->rank == 0; };
  const auto noise = static_cast<size_t>(std::ranges::count_if(report.different, is_noise));
  if (noise < report.different.size()) out += weights_table(report, !job.out.empty());
  if (noise > 0) out += cat("  in ", counted(noise, "more weight"), " nothing stands out of rounding\n");
  return out + other_differences(report) + adapter_text(report, job);
}

std::string edit_lines(const std::string& what, const std::vector<EditRequest>& edits) {
  std::string out;
  for (const EditRequest& edit : edits)
    out += cat("  ", what, ": ", one_line(edit.prompt.text, 60), " -> ", one_line(edit.target, 30), "\n");
  return out;
}

std::string edits_text(const EditsDiff& diff) {
  std::string out = cat("\n  ", counted(diff.common, "edit"), " in both, ", count_text(diff.only_before.size()),
                        " in the first alone, ", count_text(diff.only_after.size()), " in the second alone, ",
                        count_text(diff.contradictions.size()), " that contradict each other\n");
  if (!diff.has_one_base())
    out += cat("  of two models: ", diff.base_before.folder, " and ", diff.base_after.folder, "\n");
  out += edit_lines("first", diff.only_before) + edit_lines("second", diff.only_after);
  for (const auto& [before, after] : diff.contradictions)
    out += cat("  contradiction: ", one_line(before.prompt.text, 60), " -> ", one_line(before.target, 30), ", and ",
               one_line(after.target, 30), "\n");
  return out;
}

ExitCode run_edits_diff(const DiffArguments& arguments, const Output& output) {
  if (!arguments.output.folder.empty())
    throw ConfigError("lancet diff --edits compares journals: expected no --out, got one");
  const EditsDiff diff = compare_edits(arguments.before, arguments.after);
  if (output.json)
    std::cout << to_json(diff, arguments.before, arguments.after);
  else if (!output.quiet)
    std::cout << edits_text(diff);
  return ExitCode::kOk;
}

ExitCode run_diff(const DiffArguments& arguments, const Output& output) {
  begin(output);
  if (arguments.edits) return run_edits_diff(arguments, output);
  const DiffJob job{.before = arguments.before,
                    .after = arguments.after,
                    .out = arguments.output.folder,
                    .if_exists = arguments.output.if_exists(),
                    .largest_rank = arguments.adapter.value(AdapterSpec::kRank),
                    .run = parse_run(arguments.run)};
  const DiffReport report = run_diff_job(job);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << diff_text(report, job);
  return ExitCode::kOk;
}

}  // namespace

void add_diff(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<DiffArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(app, "diff",
                  "Show in what two checkpoints of one architecture differ, or write the difference as an adapter.\n"
                  "  lancet diff data/demo-model out/demo\n"
                  "  lancet diff data/demo-model out/demo --out out/found\n"
                  "  lancet diff out/one out/other --edits");
  add_option(command, "before", arguments->before, "Model folder").required().type("DIR");
  add_option(command, "after", arguments->after, "Model folder, which is compared with the first")
      .required()
      .type("DIR");
  add_output_folder(command, arguments->output, "Folder for the differences of low rank, as an adapter of PEFT");
  arguments->adapter.add(command, {&AdapterSpec::kRank});
  add_flag(command, "--edits", arguments->edits, "Compare the edits of two outputs, not their weights");
  arguments->run.add(command, {&RunSpec::kDevices});
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_diff(*arguments, *output); });
}

}  // namespace lancet::cli
