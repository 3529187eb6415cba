#include "evaluation_config.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/job/schedule.h"
#include "lancet/requests/request.h"
#include "lancet/spec/job_spec.h"
#include "lancet/spec/read_option.h"
#include "lancet/text/chat_template.h"
#include "request_config.h"

namespace lancet {
namespace {

constexpr std::string_view kJudge = EvaluateSpec::kJudge.key;
constexpr std::string_view kNoJudge =
    "'judge': expected a section judge beside the list that names it: metrics: [..., judge], judge: {command: [...]}";

constexpr std::string_view kNoText =
    "'mirage': expected a section side_effects with text beside it: metrics: [mirage], side_effects: {text: FILE}";

bool is_among(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the protocols of a list of names, in which a set (kProtocolSets) stands for its protocols. Reports a problem
/// for unknown names, and for names that occur twice.
std::vector<std::string> named_protocols(ConfigSection& section, std::string_view key,
                                         const std::vector<std::string>& names, const JobTables& tables) {
  std::vector<std::string> known, protocols;
  for (const ProtocolNames& row : tables.protocols) known.emplace_back(row.name);
  for (const ProtocolSet& set : kProtocolSets) known.emplace_back(set.name);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (!is_among(known, name)) {
      const std::string near = nearest(name, known);
      section.problem(
          key, cat("'", name, "': expected ", join(known), near.empty() ? "" : cat(". Did you mean ", near, "?")));
    } else if (std::find(names.begin(), names.begin() + static_cast<int64_t>(i), name) !=
               names.begin() + static_cast<int64_t>(i)) {
      section.problem(key, cat("'", name, "': stands twice"));
    }
    const auto set = std::find_if(std::begin(kProtocolSets), std::end(kProtocolSets),
                                  [&](const ProtocolSet& one) { return one.name == name; });
    std::vector<std::string> all{name};
    if (set != std::end(kProtocolSets)) all.assign(set->protocols.begin(), set->protocols.end());
    for (const std::string& one : all)
      if (!is_among(protocols, one)) protocols.push_back(one);
  }
  return protocols;
}

SideEffectOptions parse_side_effects(ConfigSection section, const std::filesystem::path& base) {
  SideEffectOptions side_effects;
  if (section.has(SideEffectsSpec::kText.key)) {
    side_effects.text.emplace();
    side_effects.text->text = read(section, SideEffectsSpec::kText, base);
    side_effects.text->tokens = read(section, SideEffectsSpec::kTokens);
    side_effects.text->document_tokens = read(section, SideEffectsSpec::kDocumentTokens);
  }
  if (section.has(SideEffectsSpec::kProbes.key)) {
    ConfigSection probes = section.section(SideEffectsSpec::kProbes.key);
    side_effects.probes.emplace();
    side_effects.probes->path = read(probes, RequestsSpec::kPath, base);
    const RequestFileOptions file = parse_file_options(probes);
    side_effects.probes->skip = file.range.skip;
    side_effects.probes->limit = file.range.limit;
    side_effects.probes->format = file.format;
    probes.finish();
  }
  if (section.has(SideEffectsSpec::kChoices.key)) side_effects.choices = read(section, SideEffectsSpec::kChoices, base);
  section.finish();
  return side_effects;
}

TaskOptions parse_tasks(ConfigSection& evaluate, const std::filesystem::path& base) {
  constexpr std::string_view kKey = EvaluateSpec::kLmEval.key;
  TaskOptions options;
  if (const ConfigTree* tasks = evaluate.raw(kKey); tasks->kind == ConfigTree::Kind::kList) {
    options.tasks = evaluate.texts(kKey);
  } else {
    ConfigSection section = evaluate.section(kKey);
    options.tasks = read(section, TasksSpec::kTasks);
    if (section.has(TasksSpec::kInclude.key)) options.include = read(section, TasksSpec::kInclude, base);
    if (section.has(TasksSpec::kShots.key)) options.shots = read(section, TasksSpec::kShots);
    if (section.has(TasksSpec::kLimit.key)) options.limit = read(section, TasksSpec::kLimit);
    section.finish();
  }
  return options;
}

CounterFactFiles parse_counterfact(ConfigSection section, const std::filesystem::path& base) {
  CounterFactFiles files;
  files.snippets = read(section, CounterFactSpec::kSnippets, base);
  if (section.has(CounterFactSpec::kIdf.key)) files.idf = read(section, CounterFactSpec::kIdf, base);
  if (section.has(CounterFactSpec::kVocabulary.key))
    files.vocabulary = read(section, CounterFactSpec::kVocabulary, base);
  if (files.idf.empty() != files.vocabulary.empty())
    section.problem(files.idf.empty() ? "vocabulary" : "idf", "expected idf and vocabulary together, or none of them");
  section.finish();
  return files;
}

std::filesystem::path parse_mquake(ConfigSection section, const std::filesystem::path& base) {
  std::filesystem::path examples = read(section, MquakeSpec::kExamples, base);
  section.finish();
  return examples;
}

JudgeOptions parse_judge(ConfigSection section, const std::filesystem::path& base) {
  JudgeOptions judge;
  if (section.has(JudgeSpec::kCommand.key)) {
    judge.command = read(section, JudgeSpec::kCommand);
    if (judge.command.empty() || judge.command.front().empty())
      section.problem(JudgeSpec::kCommand.key, "expected a program and its arguments: [python3, judge.py]");
    refuse_replaced(section, JudgeSpec::kCommand, "command judges");
  } else if (section.has(JudgeSpec::kUrl.key)) {
    judge.url = read(section, JudgeSpec::kUrl);
    judge.model = read(section, JudgeSpec::kModel);
    if (section.has(JudgeSpec::kTokenEnv.key)) judge.token_env = read(section, JudgeSpec::kTokenEnv);
    judge.tokens = read(section, JudgeSpec::kTokens);
    judge.may_be_remote = read(section, JudgeSpec::kRemote);
  } else {
    section.problem(JudgeSpec::kCommand.key, "expected command: [PROGRAM, ...], or url and model of a server");
  }
  if (section.has(JudgeSpec::kPrompt.key)) judge.prompt = read(section, JudgeSpec::kPrompt, base);
  judge.seconds = read(section, JudgeSpec::kSeconds);
  section.finish();
  return judge;
}

LongFormOptions parse_long_form(ConfigSection section) {
  LongFormOptions options;
  options.tokens = read(section, LongFormSpec::kTokens);
  options.as_chat = read(section, LongFormSpec::kChat);
  section.finish();
  return options;
}

/// Returns an empty text for the model's own template.
std::string parse_chat_template(ConfigSection& section) {
  const std::string text = read(section, EvaluateSpec::kChatTemplate);
  if (text == EvaluateSpec::kChatTemplate.fallback) return "";
  try {
    ChatTemplate::by_hand(text);
  } catch (const ConfigError& error) {
    section.problem(EvaluateSpec::kChatTemplate.key, cat(error.what(), ", or 'model'"));
  }
  return text;
}

}  // namespace

EvaluationOptions parse_evaluation(ConfigSection& job, const std::filesystem::path& base,
                                   const std::filesystem::path& model, const JobTables& tables) {
  EvaluationOptions options;
  options.chat_template.model = model;
  const ConfigTree* evaluate = job.raw(JobSpec::kEvaluate.key);
  if (evaluate == nullptr || evaluate->kind != ConfigTree::Kind::kMap) {
    const std::vector<std::string> names = job.texts(
        JobSpec::kEvaluate.key, std::vector<std::string>(std::begin(kDefaultProtocols), std::end(kDefaultProtocols)));
    options.protocols = named_protocols(job, JobSpec::kEvaluate.key, names, tables);
    if (is_among(names, kMirage.name)) job.problem(JobSpec::kEvaluate.key, kNoText);
    if (is_among(options.protocols, kJudge)) job.problem(JobSpec::kEvaluate.key, kNoJudge);
    return options;
  }
  ConfigSection section = job.section(JobSpec::kEvaluate.key);
  const auto has_options_of = [&](std::string_view protocol) {
    if (!section.has(protocol)) return false;
    if (!is_among(options.protocols, protocol))
      section.problem(protocol, cat("it is for the protocol of that name: add ", protocol, " to metrics"));
    return true;
  };
  const std::vector<std::string> names = read(section, EvaluateSpec::kMetrics);
  options.protocols = named_protocols(section, EvaluateSpec::kMetrics.key, names, tables);
  options.generated_tokens = read(section, EvaluateSpec::kTokens);
  options.distractor = read(section, EvaluateSpec::kDistractor);
  options.chat_template.by_hand = parse_chat_template(section);
  options.thinking_tokens = read(section, EvaluateSpec::kThinkingTokens);
  options.target_end = read<JudgedEnd>(section, EvaluateSpec::kTargetEnd);
  options.standing = read(section, EvaluateSpec::kStanding);
  constexpr std::string_view kSideEffects = EvaluateSpec::kSideEffects.key,
                             kCounterFact = EvaluateSpec::kCounterFact.key, kMquake = EvaluateSpec::kMquake.key;
  if (section.has(kSideEffects)) options.side_effects = parse_side_effects(section.section(kSideEffects), base);
  if (is_among(names, kMirage.name) && !options.side_effects.text) section.problem(EvaluateSpec::kMetrics.key, kNoText);
  if (section.has(EvaluateSpec::kLmEval.key)) options.side_effects.tasks = parse_tasks(section, base);
  if (has_options_of(kCounterFact)) options.counterfact = parse_counterfact(section.section(kCounterFact), base);
  if (has_options_of(EvaluateSpec::kBelief.key)) {
    ConfigSection belief = section.section(EvaluateSpec::kBelief.key);
    options.belief_orders = read<OptionOrders>(belief, BeliefSpec::kOrders);
    belief.finish();
  }
  if (has_options_of(kMquake)) options.multihop_examples = parse_mquake(section.section(kMquake), base);
  if (has_options_of(kJudge))
    options.judge = parse_judge(section.section(kJudge), base);
  else if (is_among(options.protocols, kJudge))
    section.problem(EvaluateSpec::kMetrics.key, kNoJudge);
  if (has_options_of(EvaluateSpec::kLongForm.key))
    options.long_form = parse_long_form(section.section(EvaluateSpec::kLongForm.key));
  section.finish();
  return options;
}

const ProtocolNames* JobTables::find_protocol_of(std::string_view metric) const {
  const auto found = std::find_if(protocols.begin(), protocols.end(),
                                  [metric](const ProtocolNames& row) { return is_metric_of(row.metrics, metric); });
  return found == protocols.end() ? nullptr : &*found;
}

void check_metric(ConfigSection& section, std::string_view key, const std::string& name, const JobTables& tables) {
  if (const ProtocolNames* row = tables.find_protocol_of(name)) {
    if (std::find(row->no_shares.begin(), row->no_shares.end(), name) != row->no_shares.end())
      section.problem(key, cat("'", name, "': is no share from 0 to 1: expected a metric that is one"));
    return;
  }
  std::vector<std::string> names;
  for (const ProtocolNames& row : tables.protocols) names.insert(names.end(), row.metrics.begin(), row.metrics.end());
  const std::string near = nearest(name, names);
  section.problem(key, cat("'", name, "': unknown metric: expected ", join(names),
                           near.empty() ? "" : cat(". Did you mean ", near, "?")));
}

namespace {

/// Returns the metrics under `key` with their shares. Reports a problem for metrics that `evaluation` does not measure.
MetricShares read_measured(ConfigSection& section, std::string_view key, const EvaluationOptions& evaluation,
                           const JobTables& tables) {
  MetricShares shares = section.number_map(key);
  for (const auto& [name, share] : shares) {
    check_metric(section, key, name, tables);
    const ProtocolNames* row = tables.find_protocol_of(name);
    if (row == nullptr) continue;
    if (std::find(evaluation.protocols.begin(), evaluation.protocols.end(), row->name) == evaluation.protocols.end())
      section.problem(key, cat("'", name, "': is not measured: add ", row->name, " to evaluate"));
    if (share < 0 || share > 1) section.problem(key, cat("'", name, "': ", share, ": expected a share from 0 to 1"));
  }
  return shares;
}

}  // namespace

MetricShares parse_accept(ConfigSection& job, const EvaluationOptions& evaluation, const JobTables& tables) {
  return read_measured(job, JobSpec::kAccept.key, evaluation, tables);
}

std::vector<ExpectedFigures> parse_expected(ConfigSection& job, const std::vector<std::string>& compared,
                                            const EvaluationOptions& evaluation, const JobTables& tables) {
  const ConfigTree* labels = job.raw(JobSpec::kExpect.key);
  std::vector<ExpectedFigures> expected;
  if (labels == nullptr) return expected;
  ConfigSection section = job.section(JobSpec::kExpect.key);
  for (const auto& [label, unread] : labels->entries) {
    if (!compared.empty() && std::find(compared.begin(), compared.end(), label) == compared.end())
      section.problem(label, cat("expected a label of compare: ", join(compared)));
    expected.push_back({label, read_measured(section, label, evaluation, tables)});
  }
  section.finish();
  return expected;
}

ScheduleOptions parse_schedule(ConfigSection section) {
  ScheduleOptions schedule;
  schedule.batch = read(section, ScheduleSpec::kBatch);
  schedule.order = read<BatchOrder>(section, ScheduleSpec::kOrder);
  schedule.measure_every = read(section, ScheduleSpec::kMeasureEvery);
  schedule.save_every = read(section, ScheduleSpec::kSaveEvery);
  if (section.has(ScheduleSpec::kDriftAlarm.key)) {
    ConfigSection alarm = section.section(ScheduleSpec::kDriftAlarm.key);
    schedule.drift_alarm = {read(alarm, DriftAlarmSpec::kTextKl),
                            read<DriftAlarm::Action>(alarm, DriftAlarmSpec::kAction)};
    alarm.finish();
    if (schedule.measure_every == 0)
      section.problem(ScheduleSpec::kMeasureEvery.key,
                      "expected 1 or more with drift_alarm, which goes by what is measured");
  }
  section.finish();
  return schedule;
}

int64_t ScheduleOptions::n_batches(int64_t n_requests) const {
  const int64_t together = std::max<int64_t>(1, largest_batch(n_requests));
  return (n_requests + together - 1) / together;
}

int64_t ScheduleOptions::measured_between(int64_t n_requests) const {
  const auto n = static_cast<size_t>(n_batches(n_requests));
  int64_t measured = 0;
  for (size_t i = 0; i < n; ++i)
    if (measures_after(i, n)) measured += (i == 0 ? 1 : 2) * largest_batch(n_requests);
  return measured;
}

std::vector<std::vector<int64_t>> plan_schedule(const ScheduleOptions& schedule, int64_t n_requests, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(n_requests));
  std::iota(order.begin(), order.end(), 0);
  if (schedule.order == BatchOrder::kShuffled) {
    // not std::shuffle, which gives other orders in other standard libraries
    std::mt19937_64 random(seed);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  }
  const auto batch = static_cast<size_t>(std::max<int64_t>(1, schedule.largest_batch(n_requests)));
  std::vector<std::vector<int64_t>> batches;
  for (size_t begin = 0; begin < order.size(); begin += batch) {
    const size_t end = std::min(begin + batch, order.size());
    batches.emplace_back(order.begin() + static_cast<int64_t>(begin), order.begin() + static_cast<int64_t>(end));
  }
  return batches;
}

}  // namespace lancet
