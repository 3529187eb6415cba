// `lancet trace`: finds the layers that recall a model's facts.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/studies/trace_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

struct TraceArguments {
  std::string model, facts, prompt, subject, out;
  std::string kinds = "hidden,mlp,attention";
  std::optional<double> noise;
  TraceOptions options;
  bool keep_unknown = false;
  TypedOptions range, run;
};

std::vector<TraceKind> parse_kinds(const std::string& text) {
  const TraceOptions all;
  std::vector<TraceKind> kinds;
  for (const std::string& name : split(text, ',')) {
    bool is_known = false;
    for (const TraceKind kind : all.kinds) {
      if (name != trace_kind_name(kind)) continue;
      is_known = true;
      if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end())
        throw ConfigError(cat("--kinds ", text, ": ", name, " stands twice"));
      kinds.push_back(kind);
    }
    if (!is_known)
      throw ConfigError(cat("--kinds ", text, ": '", name, "': expected hidden, mlp, attention, or some of them"));
  }
  return kinds;
}

TraceJob make_job(const TraceArguments& arguments) {
  const bool is_file = !arguments.facts.empty();
  if (is_file && !(arguments.prompt.empty() && arguments.subject.empty()))
    throw ConfigError("lancet trace: expected either --facts FILE or --prompt and --subject, got both");
  if (!is_file && (arguments.prompt.empty() || arguments.subject.empty()))
    throw ConfigError("lancet trace: expected --facts FILE, or --prompt and --subject");
  const RequestRange range = arguments.range.read([](ConfigSection section) {
    return RequestRange{.skip = read(section, RequestsSpec::kSkip), .limit = read_given(section, RequestsSpec::kLimit)};
  });
  if (!is_file && (range.skip > 0 || range.limit))
    throw ConfigError("lancet trace: --skip and --limit choose among the facts of --facts FILE");
  TraceJob job{.model = arguments.model,
               .facts = arguments.facts,
               .range = range,
               .prompt = arguments.prompt,
               .subject = arguments.subject,
               .out = arguments.out,
               .unknown = arguments.keep_unknown ? UnknownFacts::kKeep : UnknownFacts::kLeaveOut,
               .options = arguments.options,
               .noise = arguments.noise,
               .run = parse_run(arguments.run)};
  job.options.kinds = parse_kinds(arguments.kinds);
  return job;
}

std::string fixed(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.4f", value);
  return text;
}

std::string summary_text(const TraceReport& report, const TraceJob& job) {
  const TraceSummary& summary = report.summary;
  std::vector<std::vector<std::string>> rows{{"put back", "peak at layer", "average indirect effect"}};
  for (const KindSummary& kind : summary.kinds)
    rows.push_back(
        {cat(trace_kind_name(kind.kind), kind.kind == TraceKind::kHidden
                                             ? std::string()
                                             : cat(", ", counted(static_cast<size_t>(report.options.window), "layer"))),
         cat(kind.peak_layer), fixed(kind.peak)});
  std::string out =
      cat("\n  at the last subject token, over ", counted(report.facts.size(), "fact"),
          report.unknown > 0 ? cat(" (", report.unknown, " that the model does not know left out)") : "", ":\n",
          format_table(rows), "  average total effect ", fixed(summary.total_effect), ": from ", fixed(summary.clean),
          " to ", fixed(summary.corrupted), " with noise of ", fixed(report.options.noise), "\n");
  if (!summary.suggested_layers.empty()) {
    std::vector<std::string> layers;
    for (const int64_t layer : summary.suggested_layers) layers.push_back(cat(layer));
    out += cat("  suggested layers: [", join(layers), "], those around the peak of mlp with at least ", kSuggestedShare,
               " of it: a measurement of where states restore the fact, not of where edits work best\n");
  }
  return out + cat("  written: ", job.out.string(), "\n");
}

ExitCode run_trace(const TraceArguments& arguments, const Output& output, RankSession& session) {
  Communicator& communicator = session.communicator();
  TraceJob job;
  communicator.run_collectively("parse", [&] { job = make_job(arguments); });
  session.set_timeout(std::chrono::seconds(job.run.timeout_s));
  job.run.on_host = session.on_host();
  const TraceReport report = run_trace_job(job, communicator);
  if (!communicator.is_root()) return ExitCode::kOk;
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << summary_text(report, job);
  return ExitCode::kOk;
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<TraceArguments>();
  auto output = std::make_shared<Output>();
  auto ranks = std::make_shared<RankArguments>();
  CLI::App& command = add_command(
      app, "trace",
      "Causal tracing: find the layers and tokens that recall facts; draws heat maps, and suggests layers to edit.\n"
      "  lancet trace --model DIR --facts FILE --out DIR\n"
      "  lancet trace --model DIR --prompt \"The capital of {} is\" --subject France --out DIR");
  add_option(command, "--model", arguments->model, "Model folder").required();
  add_option(command, "--facts", arguments->facts,
             "File with facts: a request file, or records with prompt, subject and attribute");
  add_option(command, "--prompt", arguments->prompt, "One fact: its prompt, with {} in the place of the subject");
  add_option(command, "--subject", arguments->subject, "One fact: its subject");
  add_option(command, "--out", arguments->out, "Folder for trace.json, trace.csv and the heat maps").required();
  add_option(command, "--kinds", arguments->kinds, "Which clean states are restored").shows_default();
  TraceOptions& options = arguments->options;
  add_option(command, "--samples", options.samples, "Number of noise samples for each fact")
      .between(1, 1000000)
      .shows_default();
  add_option(command, "--noise", arguments->noise,
             "Standard deviation of the noise; default: 3 times that of the embeddings of the subjects' tokens")
      .positive();
  add_option(command, "--window", options.window,
             "Number of layers whose mlp or attention outputs are restored together")
      .between(1, 1000000)
      .shows_default();
  arguments->range.add(command, {&RequestsSpec::kSkip, &RequestsSpec::kLimit});
  add_flag(command, "--keep-unknown", arguments->keep_unknown,
           "Also trace facts whose true answer in the file is not what the model predicts");
  add_option(command, "--seed", options.seed, "Seed of the noise").shows_default();
  arguments->run.add(command, {&RunSpec::kDevices, &RunSpec::kDType, &RunSpec::kQuantiseBase});
  add_output_options(command, *output);
  add_rank_options(command, *ranks);
  on_choice(command, action, [=] {
    return run_as_rank(*ranks, *output, [&](RankSession& session) { return run_trace(*arguments, *output, session); });
  });
}

}  // namespace lancet::cli
