// `lancet plan`: where a job's layers would lie and what each device would hold, without a GPU and without weights.
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "lancet/core/strings.h"
#include "lancet/pipeline/cached_statistics.h"
#include "lancet/plan/job_plan.h"
#include "lancet/plan/model_session.h"
#include "terminal.h"

namespace lancet::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct PlanArguments {
  JobArguments job;
  std::string devices;
};

/// The folder's tokenizer; null where lengths have to be assumed.
std::unique_ptr<Tokenizer> find_tokenizer(const fs::path& folder, std::vector<std::string>& notes) {
  try {
    return open_tokenizer(folder);
  } catch (const TokenizerError& error) {
    notes.push_back(cat("no tokenizer could be read, so lengths are assumed: ", error.what()));
    return nullptr;
  }
}

struct Task {
  ModelConfig config;
  Workload work;
  RunOptions run;
  std::vector<std::string> notes;
};

/// What is in the cache is neither written nor read again; weights are read to see it where that takes a few seconds.
void count_statistics(const ResolvedJob& job, Task& task) {
  constexpr uint64_t kMostBytes = uint64_t{4} << 30;
  const bool packs_by_moments = task.work.packing == Packing::kByMoments;  // which are kept apart
  const CachedStatistics found =
      packs_by_moments ? CachedStatistics::kMissing : find_cached_statistics(job, kMostBytes);
  if (found == CachedStatistics::kThere) {
    task.work = without_text(std::move(task.work));
    task.notes.emplace_back("statistics are in the cache: no text is written or read for them");
    return;
  }
  task.notes.push_back(cat("statistics are counted as if none were in the cache",
                           found == CachedStatistics::kMissing ? ""
                                                               : ": of a model of more than 4 GiB that is not looked "
                                                                 "for, since its weights would be read"));
}

Task task_of_job(const JobArguments& arguments) {
  const ResolvedJob job = read_job(arguments, JobPurpose::kEdit);
  DescribedModel model = describe_model(job.model, job.ignore_config_keys);
  Task task{std::move(model.config), {}, job.run, {}};
  const RequestFile file = load_requests(job.requests);
  warn_of_skipped(file.skipped);
  const std::vector<EditRequest>& requests = file.requests;
  const std::unique_ptr<Tokenizer> tokenizer = find_tokenizer(model.folder, task.notes);
  WorkTexts texts{.tokenizer = tokenizer.get(), .requests = requests};
  if (tokenizer)
    texts.evaluation = EvaluationPlan(*tokenizer, requests, job.evaluation, task.config.max_positions).size();
  task.work = edit_work(job, task.config, texts, task.notes);
  if (task.work.statistics_tokens > 0) count_statistics(job, task);
  return task;
}

Task task_of_model(const PlanArguments& arguments) {
  Task task{describe_model(arguments.job.model, {}).config, {}, parse_run(arguments.job.run), {}};
  task.work = typical_work(task.run, task.config, task.notes);
  return task;
}

std::string size_text(int64_t bytes) { return bytes == 0 ? "-" : binary_bytes_text(static_cast<uint64_t>(bytes)); }

std::string table_of(const JobPlan& plan) {
  std::vector<std::vector<std::string>> rows{{"stage", "layers", "weights", "unpacked", "edited", "evaluate", "values",
                                              "prefix cache", "training", "statistics", "solve", "kept", "total",
                                              "budget", ""}};
  for (const StageEstimate& s : plan.parts())
    rows.push_back({s.stage.device.str(), s.stage.layers() > 0 ? cat(s.stage.begin, "-", s.stage.end - 1) : "-",
                    size_text(s.weights), size_text(s.unpacked), size_text(s.edited), size_text(s.evaluate),
                    size_text(s.value_activations), size_text(s.value_prefix), size_text(s.training),
                    size_text(s.statistics), size_text(s.solve), size_text(s.kept), size_text(s.total()),
                    s.budget >= DeviceBudget::kUnknown ? "unknown" : size_text(s.budget),
                    s.total() <= s.budget ? "" : "too much"});
  return format_table(rows);
}

Json bytes_json(const StageEstimate& s) {
  return {{"weights", s.weights},
          {"loading", s.loading},
          {"unpacked", s.unpacked},
          {"edited", s.edited},
          {"evaluate", s.evaluate},
          {"value_activations", s.value_activations},
          {"value_prefix", s.value_prefix},
          {"training", s.training},
          {"statistics", s.statistics},
          {"solve", s.solve},
          {"kept", s.kept},
          {"total", s.total()},
          {"budget", s.budget}};
}

Json plan_json(const JobPlan& plan, const Task& task) {
  Json stages = Json::array();
  for (const StageEstimate& s : plan.stages) {
    Json stage{{"device", s.stage.device.str()}, {"first_layer", s.stage.begin}, {"last_layer", s.stage.end - 1}};
    stage.update(bytes_json(s));
    stages.push_back(std::move(stage));
  }
  return {{"format", "lancet-plan-1"},
          {"fits", plan.fits()},
          {"dtype", dtype_name(to_dtype(task.work.dtype))},
          {"stages", stages},
          {"solve_on", plan.placement.solve_on() == SolveOn::kHost ? "host" : "device"},
          {"host", plan.host ? bytes_json(*plan.host) : Json()},
          {"idle", plan.idle},
          {"value_requests", plan.value_requests},
          {"notes", task.notes}};
}

ExitCode run_plan(const PlanArguments& arguments, const Output& output) {
  begin(output);
  const bool from_job = !arguments.job.file.empty();
  if (from_job == !arguments.job.model.empty())
    throw ConfigError("lancet plan: expected either a job file or --model DIR");
  const Task task = from_job ? task_of_job(arguments.job) : task_of_model(arguments);
  const DeviceChoice choice =
      arguments.devices.empty() ? find_devices(task.run.devices) : assume_devices(arguments.devices);
  const JobPlan plan = choose_plan(task.config, task.work, choice, task.run.balance);
  if (output.json) {
    std::cout << plan_json(plan, task).dump(1) << "\n";
  } else {
    std::cout << table_of(plan);
    std::cout << "  total: weights, matrices unpacked at a time, edited weights, and the largest of evaluate, values "
                 "with their prefix cache, training, statistics, solve; or weights and what loading takes, if more\n";
    if (plan.placement.solve_on() == SolveOn::kHost)
      std::cout << "  solves, second moments and the exact edited weights lie on the CPU"
                << (task.run.solve_on == SolveOn::kAuto ? ": the devices have no room for them\n"
                                                        : " (run.solve_on)\n");
    if (plan.value_requests > 0)
      std::cout << "  values: " << counted(static_cast<size_t>(plan.value_requests), "request") << " a batch, "
                << plan.placement.batches_under_way() << " of them at a time; " << dtype_name(to_dtype(task.work.dtype))
                << "\n";
    for (const std::string& device : plan.idle) std::cout << "  " << device << ": no layer is needed there\n";
    for (const std::string& note : task.notes) std::cout << "  " << note << "\n";
  }
  if (!plan.fits()) throw PlacementError(refusal_text(task.config, task.work, choice, task.run.balance));
  return ExitCode::kOk;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<PlanArguments>();
  auto output = std::make_shared<Output>();
  CLI::App& command = add_command(app, "plan",
                                  "Show what each device would hold; loads no weights, and needs no GPU.\n"
                                  "  lancet plan job.yaml --devices 8x80GiB\n"
                                  "  lancet plan --model DIR --devices 80GiB,cpu=256GiB");
  add_job_file(command, arguments->job);
  add_option(command, "--model", arguments->job.model,
             "Model folder or its config.json, instead of a job: a typical edit is assumed")
      .type("FILE");
  add_option(command, "--devices", arguments->devices,
             "Devices to assume: 8x80GiB, 24GiB,80GiB or 80GiB,cpu=256GiB; default: the job's run.devices");
  arguments->job.run.add(command, {&RunSpec::kDType, &RunSpec::kQuantiseBase});
  add_output_options(command, *output);
  on_choice(command, action, [=] { return run_plan(*arguments, *output); });
}

}  // namespace lancet::cli
