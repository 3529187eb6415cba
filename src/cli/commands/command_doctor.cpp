#include <iostream>
#include <memory>
#include <set>

#include "commands.h"
#include "lancet/doctor/device_checks.h"
#include "lancet/doctor/doctor.h"

namespace lancet::cli {
namespace {

constexpr const char* kNoDevices = "none";

/// Returns the findings about the job. If the job cannot be read, that is the finding.
std::vector<Finding> job_findings(const JobArguments& arguments, MachineFacts& facts) {
  if (arguments.file.empty()) {
    if (!arguments.overrides.empty()) throw ConfigError("--set: expected a job file beside it");
    return {};
  }
  try {
    return diagnose_job(read_job(arguments, JobPurpose::kEdit), facts);
  } catch (const Error& error) {
    return {{FindingState::kProblem, "job", error.what(), "", error.exit_code()}};
  }
}

/// Returns a line for each finding, and below it what to do.
std::string findings_text(const std::vector<Finding>& findings) {
  size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.topic.size());
  std::string out;
  for (const Finding& finding : findings) {
    const std::string state(state_name(finding.state));
    const std::string head = "  " + state + std::string(9 - state.size(), ' ') + finding.topic +
                             std::string(width - finding.topic.size() + 2, ' ');
    const std::string margin = "\n" + std::string(head.size(), ' ');
    out += head;
    for (const char c : finding.what) out += c == '\n' ? margin : std::string(1, c);
    if (!finding.remedy.empty()) out += margin + "→ " + finding.remedy;
    out += "\n";
  }
  return out;
}

std::string conclusion(const std::vector<Finding>& findings) {
  int64_t counts[3] = {};
  for (const Finding& finding : findings) ++counts[static_cast<size_t>(finding.state)];
  const auto n = [](int64_t count, const char* word) {
    return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
  };
  return n(counts[2], "problem") + ", " + n(counts[1], "note");
}

/// The job's first problem decides the exit code, because `lancet edit` would end with it.
ExitCode code_of(const std::vector<Finding>& of_job, const std::vector<Finding>& all) {
  for (const std::vector<Finding>* findings : {&of_job, &all})
    for (const Finding& finding : *findings)
      if (finding.state == FindingState::kProblem) return finding.code;
  return ExitCode::kOk;
}

/// `devices`: these are checked one by one and together.
ExitCode run_doctor(const JobArguments& arguments, const std::string& devices, const Output& output) {
  begin(output);
  std::optional<std::vector<at::Device>> checked;  // wrong names are reported before any work
  if (devices != kNoDevices) checked = devices_to_check(devices);
  MachineFacts facts = collect_machine_facts();
  if (checked) facts.device_checks = check_devices(*checked);
  const std::vector<Finding> of_job = job_findings(arguments, facts);
  std::vector<Finding> findings = diagnose(facts);
  findings.insert(findings.end(), of_job.begin(), of_job.end());
  if (output.json)
    std::cout << to_json(findings, facts);
  else
    std::cout << findings_text(findings) << "\n  " << conclusion(findings) << "\n";
  return code_of(of_job, findings);
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<JobArguments>();
  auto devices = std::make_shared<std::string>(kNoDevices);
  auto output = std::make_shared<Output>();
  CLI::App& command =
      add_command(app, "doctor",
                  "Check this machine, and a job's model and folders, and say what to do.\n"
                  "Exit code for a problem of this machine: 4; for a problem of the job: that of lancet edit.\n"
                  "  lancet doctor\n"
                  "  lancet doctor job.yaml\n"
                  "  lancet doctor --devices all");
  add_job_file(command, *arguments);
  add_option(command, "--devices", *devices,
             "Also check that these devices compute and copy correctly: all (every GPU), none, or names as in "
             "run.devices, separated by commas")
      .shows_default();
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_doctor(*arguments, *devices, *output); });
}

}  // namespace lancet::cli
