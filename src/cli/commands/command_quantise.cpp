// `lancet quantise`: a quantised checkpoint in which edits hold.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/export/quantise_job.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

struct QuantiseArguments {
  std::string model, edits, format;
  std::string corpus = std::string(kSelfCorpus);
  int64_t bits = 4;
  int64_t tokens = QuantiseJob().tokens;
  TypedOptions rounding, run;
  OutputArguments output;
};

QuantiseJob make_quantise_job(const QuantiseArguments& arguments) {
  if (arguments.bits != 4 && arguments.bits != 8)
    throw ConfigError(cat("--bits ", arguments.bits, ": expected 4 or 8"));
  QuantiseJob job{.model = arguments.model,
                  .edits = arguments.edits,
                  .out = arguments.output.folder,
                  .if_exists = arguments.output.if_exists(),
                  .format = arguments.format == quantised_format_name(QuantisedFormat::kGptq)
                                ? QuantisedFormat::kGptq
                                : QuantisedFormat::kCompressedTensors,
                  .bits = arguments.bits,
                  .tokens = arguments.tokens,
                  .covariance_weight = arguments.rounding.value(OutputSpec::kCovarianceWeight),
                  .run = parse_run(arguments.run)};
  if (arguments.corpus != kSelfCorpus) job.corpus = arguments.corpus;
  return job;
}

std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f", 100 * share);
  return text;
}

/// Returns the mean errors over all matrices.
std::string losses_text(const QuantiseReport& report) {
  std::vector<std::vector<std::string>> rows{{"error, %", "to the nearest", "as written"}};
  const auto mean = [&](const auto& value_of) {
    double sum = 0, count = 0;
    for (const QuantisedMatrix& matrix : report.matrices)
      if (const std::optional<double> value = value_of(matrix)) {
        sum += *value;
        ++count;
      }
    return count > 0 ? share_text(sum / count) : std::string("n/a");
  };
  using Optional = std::optional<double>;
  rows.push_back({"by what matters", mean([](const QuantisedMatrix& m) { return Optional(m.nearest_error); }),
                  mean([](const QuantisedMatrix& m) { return Optional(m.error); })});
  if (!report.requests.empty())
    rows.push_back({"at the edits", mean([](const QuantisedMatrix& m) { return m.nearest_residual; }),
                    mean([](const QuantisedMatrix& m) { return m.residual; })});
  return cat(format_table(rows), "  means over ", count_text(report.matrices.size()), " matrices", "\n");
}

std::string quantise_text(const QuantiseReport& report, const QuantiseJob& job) {
  std::string out = "\n";
  if (report.after) out += before_after_text(*report.before, *report.after, "quantised") + "\n";
  out += losses_text(report);
  for (const std::string& module : report.in_full_precision)
    out += cat("  in full precision, its inputs are not in whole groups of ", kQuantisedGroup, ": ", module, "\n");
  return out + cat("  written: ", job.out.string(), ", ",
                   percent(static_cast<double>(report.bytes_after) / static_cast<double>(report.bytes_before)),
                   " of the model's bytes\n");
}

ExitCode run_quantise(const QuantiseArguments& arguments, const Output& output) {
  begin(output);
  const QuantiseJob job = make_quantise_job(arguments);
  const QuantiseReport report = run_quantise_job(job);
  if (output.json)
    std::cout << to_json(report, job);
  else if (!output.quiet)
    std::cout << quantise_text(report, job);
  return ExitCode::kOk;
}

}  // namespace

void add_quantise(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<QuantiseArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(app, "quantise",
                  "Quantise a model in full precision so that its edits hold, and write the checkpoint.\n"
                  "  lancet quantise out/demo --format gptq --bits 4 --out out/demo-gptq");
  add_option(command, "model", arguments->model, "Model folder, usually an output of lancet edit")
      .required()
      .type("DIR");
  add_option(command, "--format", arguments->format, "Format of the output")
      .required()
      .one_of(
          {quantised_format_name(QuantisedFormat::kGptq), quantised_format_name(QuantisedFormat::kCompressedTensors)});
  add_option(command, "--bits", arguments->bits, "Bits of each number: 4 or 8").shows_default();
  add_option(command, "--edits", arguments->edits,
             "Output of lancet edit whose requests should hold; default: the model itself, if it is such an output")
      .type("DIR");
  add_output_folder(command, arguments->output, "Folder for the quantised model").required();
  add_option(command, "--corpus", arguments->corpus,
             "File with text, in the form of statistics.corpus; self: the model writes the text")
      .type("FILE")
      .shows_default();
  add_option(command, "--tokens", arguments->tokens, "Largest number of tokens of text")
      .between(1, 1'000'000'000)
      .shows_default();
  arguments->rounding.add(command, {&OutputSpec::kCovarianceWeight});
  arguments->run.add(command, {&RunSpec::kDevices, &RunSpec::kDType});
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_quantise(*arguments, *output); });
}

}  // namespace lancet::cli
