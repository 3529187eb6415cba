// `lancet push`: loads edits into a running server, and takes them back.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/push/push_job.h"
#include "lancet/spec/adapter_spec.h"
#include "servers/server_arguments.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

constexpr size_t kShownPrompts = 12;
constexpr size_t kPromptWidth = 44, kAnswerWidth = 24;

struct PushArguments {
  PushJob job;
  std::string to;
  ServerArguments server;
  TypedOptions adapter;
  bool undo = false, list = false;
};

std::string table_of_shares(const PushReport& report) {
  std::vector<std::vector<std::string>> rows{{"metric, %", "before", "after", "prompts"}};
  for (const char* metric : kPushMetrics) {
    const PushShares shares = push_shares(report.asked, metric);
    if (shares.count > 0)
      rows.push_back({metric, shares.before ? percent_text(shares.before) : "-", percent_text(shares.after),
                      std::to_string(shares.count)});
  }
  return format_table(rows);
}

/// Rows that do not hold come first.
std::string table_of_answers(const PushReport& report) {
  std::vector<const AskedPrompt*> shown;
  for (const AskedPrompt& each : report.asked) shown.push_back(&each);
  std::stable_partition(shown.begin(), shown.end(), [](const AskedPrompt* each) { return !each->holds(); });
  std::vector<std::vector<std::string>> rows{{"prompt", "before", "after", "shall be", "holds"}};
  for (size_t i = 0; i < std::min(kShownPrompts, shown.size()); ++i)
    rows.push_back({one_line(shown[i]->prompt, kPromptWidth), one_line(shown[i]->before, kAnswerWidth),
                    one_line(shown[i]->after, kAnswerWidth),
                    one_line(shown[i]->target.empty() ? "as before" : shown[i]->target, kAnswerWidth),
                    shown[i]->holds() ? "yes" : "NO"});
  const size_t left = shown.size() - (rows.size() - 1);
  return format_table(rows) + (left > 0 ? cat("  and ", counted(left, "prompt"), ": --json shows all\n") : "");
}

std::string push_text(const PushReport& report) {
  const PushRecord& record = report.record;
  std::string text = cat("\n", table_of_answers(report), "\n", table_of_shares(report));
  for (const std::string& note : report.notes) text += cat("  note: ", note, "\n");
  if (!report.unmet.empty())
    return cat(text,
               record.state == PushState::kTakenBack ? "  taken back: " : "  NOT taken back: ", record.adapter.name,
               "\n");
  text += cat("  serves: ", record.adapter.name, " at ", record.server, " (", record.kind, "), rank ", record.rank);
  if (record.replaced) text += cat(", in place of ", record.replaced->name);
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f", report.seconds);
  return text + cat("\n  read from: ", record.adapter.path, "\n  pushed and asked in ", seconds.data(), " s\n");
}

ExitCode run_push(const PushArguments& arguments, const Output& output) {
  begin(output);
  PushJob job = arguments.job;
  if (arguments.to.empty()) throw ConfigError("lancet push: expected --to URL, or --undo or --list");
  job.access = read_server_access(arguments.to, arguments.server);
  job.largest_rank = arguments.adapter.value(AdapterSpec::kRank);
  const std::string where = job.output.string();
  set_stop_words([where] { return cat("whether the server has the adapter says lancet push ", where, " --list"); });
  const PushReport report = run_push_job(job);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << push_text(report);
  if (!report.unnoted.empty()) log_error(report.unnoted);
  for (const std::string& unmet : report.unmet) log_error(cat("accept: ", unmet));
  if (!report.unmet.empty()) return ExitCode::kNumeric;
  return report.unnoted.empty() ? ExitCode::kOk : ExitCode::kCheckpoint;
}

/// Throws: ConfigError for options that have no meaning if nothing is pushed.
void refuse_options_of_a_push(const PushArguments& arguments, const char* command) {
  const PushJob& job = arguments.job;
  const PushJob usual{};
  std::vector<std::string> given;
  if (job.server != usual.server) given.emplace_back("--server");
  if (!job.name.empty()) given.emplace_back("--name");
  if (!job.instead_of.empty()) given.emplace_back("--instead-of");
  if (!job.accept.empty()) given.emplace_back("--accept");
  if (job.most_asked != usual.most_asked) given.emplace_back("--asked");
  if (!job.adapter_dir.empty()) given.emplace_back("--adapter-dir");
  if (!job.server_path.empty()) given.emplace_back("--server-path");
  if (!job.model.empty()) given.emplace_back("--model");
  if (arguments.adapter.value(AdapterSpec::kRank) != usual.largest_rank) given.emplace_back("--rank");
  if (!given.empty()) throw ConfigError(cat("lancet push ", command, ": ", join(given), ": nothing is pushed by it"));
}

ExitCode run_undo(const PushArguments& arguments, const Output& output) {
  begin(output);
  refuse_options_of_a_push(arguments, "--undo");
  const PushRecord record = undo_push(arguments.job.output, read_server_access(arguments.to, arguments.server));
  if (output.json)
    std::cout << to_json(record);
  else if (!output.quiet)
    std::cout << cat("  taken back: ", record.adapter.name, " at ", record.server,
                     record.replaced ? cat("; again: ", record.replaced->name) : std::string(), "\n");
  return ExitCode::kOk;
}

ExitCode run_list(const PushArguments& arguments, const Output& output) {
  begin(output);
  refuse_options_of_a_push(arguments, "--list");
  const std::vector<ListedPush> listed =
      list_pushes(arguments.job.output, read_server_access(arguments.to, arguments.server));
  if (output.json) {
    std::cout << to_json(listed);
    return ExitCode::kOk;
  }
  std::vector<std::vector<std::string>> rows{{"adapter", "server", "state", "since", "is there"}};
  for (const ListedPush& each : listed)
    rows.push_back({each.record.adapter.name, each.record.server, push_state_name(each.record.state), each.record.when,
                    !each.is_there   ? "?"
                    : *each.is_there ? "yes"
                                     : "no"});
  std::cout << (listed.empty() ? cat("  nothing was pushed of ", arguments.job.output.string(), "\n")
                               : format_table(rows));
  return ExitCode::kOk;
}

/// Parses "efficacy=0.9,specificity=0.8". Returns what is wrong with it.
std::string take_thresholds(const std::string& text, PushJob& job) {
  for (const std::string& part : split(text, ',')) {
    const size_t mark = part.find('=');
    const std::string metric = part.substr(0, mark);
    if (!is_push_metric(metric) || mark == std::string::npos)
      return cat("expected METRIC=SHARE with efficacy, paraphrase or specificity, got '", part, "'");
    char* end = nullptr;
    const std::string number = part.substr(mark + 1);
    const double share = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !(share >= 0 && share <= 1))
      return cat(metric, ": expected a share from 0 to 1, got '", number, "'");
    job.accept.emplace_back(metric, share);
  }
  return {};
}

void add_push_options(CLI::App& command, PushArguments& arguments) {
  PushJob& job = arguments.job;
  add_option(command, "output", job.output, "Output of lancet edit").required().type("DIR");
  add_option(command, "--to", arguments.to, "The server's address: http://HOST:PORT").type("URL");
  add_option(command, "--server", job.server, "Program of the server; auto: found out by asking the server")
      .one_of(server_kinds())
      .shows_default();
  add_option(
      command, "--name", job.name,
      "Name of the adapter for requests; default: a made-up name. In vLLM, the base model's name gives the adapter to "
      "every request");
  add_option(command, "--instead-of", job.instead_of,
             "Adapter that is removed once this one answers; default: the last one of this output");
  add_option(
      command, "--accept", [&job](const std::string& text) { return take_thresholds(text, job); },
      "Lowest acceptable shares: efficacy=0.9,specificity=0.8; below them the push is taken back")
      .type("METRIC=SHARE,...");
  add_option(command, "--asked", job.most_asked, "Largest number of prompts of each kind to ask, from the latest edits")
      .positive()
      .shows_default();
  add_option(command, "--adapter-dir", job.adapter_dir,
             "Folder for the adapter, which the server must be able to read; default: beside the output")
      .type("DIR");
  add_option(command, "--server-path", job.server_path,
             "Path of that folder on the server, if it is mounted elsewhere");
  arguments.adapter.add(command, {&AdapterSpec::kRank});
  add_option(command, "--model", job.model, "Base model of the edits, if it is no longer where it was").type("DIR");
}

}  // namespace

void add_push(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<PushArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(app, "push",
                  "Load the edits of an output into a running vLLM, SGLang or llama.cpp server, check its answers, "
                  "or take the edits back.\n"
                  "  lancet push out/demo --to http://localhost:8000 --accept efficacy=0.9\n"
                  "  lancet push out/demo --undo");
  add_push_options(command, *arguments);
  add_server_options(command, arguments->server);
  const Argument list =
      add_flag(command, "--list", arguments->list, "List what was pushed and when, and whether the server has it");
  add_flag(command, "--undo", arguments->undo, "Take back the last push, and load again what it replaced")
      .excludes(list);
  add_output_options(command, *output);
  on_choice(command, action, [=] {
    if (arguments->undo) return run_undo(*arguments, *output);
    return arguments->list ? run_list(*arguments, *output) : run_push(*arguments, *output);
  });
}

}  // namespace lancet::cli
