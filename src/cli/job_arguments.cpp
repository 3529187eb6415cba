#include "commands.h"
#include "lancet/core/stderr_reporter.h"
#include "lancet/core/strings.h"
#include "lancet/job_setup/parse_job.h"
#include "stop_signals.h"

namespace lancet::cli {

void add_output_options(CLI::App& command, Output& output, const std::string& json) {
  add_flag(command, "-q,--quiet", output.quiet,
           "No progress, no summary of what lies in files: only warnings, errors, and results written nowhere else");
  add_flag(command, "--json", output.json, json);
}

void begin(const Output& output) {
  stderr_reporter().set_verbosity(output.quiet || output.json ? Verbosity::kQuiet : Verbosity::kNormal);
  end_on_signals();
}

Argument add_job_file(CLI::App& command, JobArguments& arguments) {
  Argument file =
      add_option(command, "job", arguments.file, "Job file (YAML or JSON); its paths are relative to its folder")
          .type("FILE");
  add_option(command, "--set", arguments.overrides,
             "Change a key of the job: --set run.dtype=f32 --set model=DIR; paths are relative to the current folder")
      .repeats()
      .type("KEY=VALUE");
  return file;
}

Argument add_job(CLI::App& command, JobArguments& arguments) {
  Argument file = add_job_file(command, arguments);
  arguments.run.add(command, RunSpec::kAll);
  return file;
}

JobConfig read_job(const JobArguments& arguments, JobPurpose purpose) {
  const CompletedJob text = read_job_text(arguments, purpose);
  JobConfig job = parse_job(text.tree, text.source.base, text.source.name, purpose);
  if (purpose != JobPurpose::kEvaluate) tell_defaults(text, job);
  return job;
}

JobConfig load_job(const JobArguments& arguments, JobPurpose purpose, RankSession& session) {
  JobConfig job;
  session.communicator().run_collectively("parse", [&] { job = read_job(arguments, purpose); });
  session.set_timeout(std::chrono::seconds(job.run.timeout_s));
  job.run.on_host = session.on_host();
  return job;
}

}  // namespace lancet::cli
