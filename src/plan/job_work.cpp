// Computes the work of a job, which determines its memory and time, from its options and texts.
#include <ATen/Parallel.h>

#include <algorithm>
#include <set>
#include <stdexcept>

#include "lancet/core/strings.h"
#include "lancet/editor_parts/automatic_choices.h"
#include "lancet/models/batching.h"
#include "lancet/plan/job_plan.h"
#include "lancet/quant/quantise.h"
#include "lancet/spec/named_values.h"

namespace lancet {
namespace {

/// The shape that is assumed for requests with unknown texts, and for contexts that are not generated yet.
constexpr ValueShape kAssumedPrompt{
    .contexts = 6, .row_tokens = 20, .prefix_tokens = 12, .suffix_tokens = 8, .target_tokens = 4, .drift_rows = 1};
constexpr int64_t kAssumedRequests = 100, kAssumedProbesPerRequest = 14, kAssumedContextTokens = 12,
                  kAssumedChatTokens = 40, kAssumedAnswerTokens = 8;

constexpr Named<Quantiser> kQuantisers[] = {
    {"int8", Quantiser::kInt8}, {"nf4", Quantiser::kNf4}, {"fp8", Quantiser::kFloat8}};
static_assert(are_named_so(RunSpec::kQuantiseBaseNames, kQuantisers));

std::optional<Quantiser> base_quantiser(const RunOptions& run) {
  if (run.quantise_base.empty()) return std::nullopt;
  for (const auto& [name, value] : kQuantisers)
    if (name == run.quantise_base) return value;
  throw std::logic_error(cat("run.quantise_base: ", run.quantise_base));
}

Workload basic_work(const RunOptions& run, const ModelConfig& config) {
  Workload work;
  work.dtype = to_scalar_type(run.dtype.value_or(config.dtype));
  work.host_threads = run.threads > 0 ? run.threads : at::get_num_threads();
  work.step_launch = run.step_launch;
  work.quantise_rule.quantiser = base_quantiser(run);
  work.solve_on = run.solve_on;
  return work;
}

void add_statistics(const ResolvedJob& job, const ModelConfig& config, Workload& work) {
  work.statistics_layers = target_layers(*job.editor, config);
  work.takes_gradients = job.needs.curvature;
  if (!job.statistics || !job.statistics->takes_text()) return;
  work.statistics_tokens = job.statistics->token_budget(config.least_tokens());
  work.document_tokens = std::min(job.statistics->document_tokens, config.max_positions);
  work.samples_text = job.statistics->from == StatisticsFrom::kSelf;
}

/// Returns the shape for methods without a subject: one row for each request, with the target after the prompt.
ValueShape training_shape(std::span<const TokenizedRequest> requests) {
  ValueShape shape;
  for (const TokenizedRequest& request : requests) {
    const auto target = static_cast<int64_t>(request.target.size());
    shape.row_tokens = std::max(shape.row_tokens, static_cast<int64_t>(request.prompt.size()) + target - 1);
    shape.target_tokens = std::max(shape.target_tokens, target);
  }
  return shape;
}

void add_schedule(const ResolvedJob& job, const ModelConfig& config, Workload& work) {
  work.batch = job.schedule.largest_batch(work.requests);
  work.measured_between = job.schedule.measured_between(work.requests);
  work.history_keys = std::min(history_keys(job, work.requests), 2 * config.largest_keys().size());
}

/// With chunks, a request has a column in each change, and a key for later batches, for each of its chunks. The keys of
/// its other tokens are kept in place within its batch.
void add_chunks(std::span<const PreparedRequest> chunks, Workload& work) {
  int64_t most_chunks = 1;
  for (const PreparedRequest& chunk : chunks) most_chunks = std::max(most_chunks, chunk.chunk + 1);
  work.changes *= most_chunks;
  const int64_t in_a_batch = work.batch > 0 ? work.batch : work.requests;
  work.history_keys = work.history_keys * most_chunks + in_a_batch * (work.values.row_tokens + 1);
}

/// Adds the contexts around every prompt, which make rows longer.
void add_contexts(const ContextOptions& contexts, ValueShape& shape) {
  const bool has_chat = !contexts.chat.empty();
  if (!contexts.templates.empty() || (contexts.generate == 0 && !has_chat)) return;
  // generated contexts end in ". "
  const int64_t before = std::max(contexts.length + 2, has_chat ? kAssumedChatTokens : 0);
  const int64_t after = has_chat ? kAssumedAnswerTokens : 0;
  shape.contexts = contexts.generate + 1 + (has_chat ? 1 : 0);
  shape.row_tokens += before + after;
  shape.prefix_tokens += before;
  shape.suffix_tokens += after;
  shape.distinct_tokens = shape.distinct_prefix_tokens = 0;  // not known
}

EvaluationSize assumed_evaluation(int64_t requests, const ValueShape& prompt) {
  const int64_t rows = requests * kAssumedProbesPerRequest;
  return {.scoring =
              ScoringSize::of_whole_documents(rows * prompt.row_tokens, prompt.row_tokens, rows * prompt.target_tokens),
          .generation = {requests, prompt.row_tokens + 12, prompt.row_tokens, {}}};
}

std::string prompt_assumption(const ValueShape& prompt) {
  return cat("prompts of ", prompt.row_tokens, " tokens with their targets, ", prompt.suffix_tokens,
             " of them from the subject's last one on; targets of ", prompt.target_tokens);
}

}  // namespace

QuantiseRule quantise_rule(const ResolvedJob& job, const ModelConfig& config) {
  return {job.has_editor() ? job.editor->targets(config) : std::vector<WeightId>(), base_quantiser(job.run)};
}

int64_t history_keys(const ResolvedJob& job, int64_t n_requests) {
  return job.needs.history ? n_requests - job.schedule.largest_batch(n_requests) : 0;
}

Workload edit_work(const ResolvedJob& job, const ModelConfig& config, const WorkTexts& texts,
                   std::vector<std::string>& assumptions) {
  Workload work = basic_work(job.run, config);
  const Editor& editor = *job.editor;
  work.quantise_rule = quantise_rule(job, config);
  work.edited_layers = target_layers(editor, config);
  std::sort(work.edited_layers.begin(), work.edited_layers.end());
  if (job.output && job.output->format == OutputFormat::kQuantised)
    work.packing = job.output->rounding == OutputRounding::kNearest ? Packing::kPlain : Packing::kByMoments;
  work.changes = job.needs.changes;
  work.solve_matrices = job.needs.solve_matrices;
  if (job.needs.statistics) add_statistics(job, config, work);
  work.requests = texts.n_requests.value_or(static_cast<int64_t>(texts.requests.size()));
  add_schedule(job, config, work);
  const ContextOptions contexts = editor.contexts() != nullptr ? *editor.contexts() : ContextOptions{.generate = 0};
  const std::vector<std::string>& templates = contexts.templates;
  if (texts.tokenizer != nullptr && editor.values() != nullptr) {
    const std::vector<std::string> plain{"{}"};
    const TargetForm form = target_form(editor.target_rule(), config, *texts.tokenizer);
    const std::vector<PreparedRequest> prepared =
        prepare_requests(*texts.tokenizer, texts.requests, templates.empty() ? plain : templates, form);
    work.values = value_shape(prepared);
    if (form.chunk_tokens > 0) add_chunks(prepared, work);
    work.evaluation = texts.evaluation;
  } else if (texts.tokenizer != nullptr) {
    work.values = training_shape(tokenize_requests(*texts.tokenizer, texts.requests,
                                                   target_form(editor.target_rule(), config, *texts.tokenizer).end));
    work.evaluation = texts.evaluation;
  } else {
    work.values = kAssumedPrompt;
    work.values.contexts = std::max<int64_t>(1, static_cast<int64_t>(templates.size()));
    if (!templates.empty()) {
      work.values.row_tokens += kAssumedContextTokens;
      work.values.prefix_tokens += kAssumedContextTokens;
    }
    work.evaluation = assumed_evaluation(work.requests, kAssumedPrompt);
    assumptions.push_back("assumed: " + prompt_assumption(kAssumedPrompt));
  }
  add_contexts(contexts, work.values);
  if (templates.empty() && !contexts.chat.empty())
    assumptions.push_back(cat("assumed: a chat template of ", kAssumedChatTokens, " tokens before a prompt and ",
                              kAssumedAnswerTokens, " after it"));
  if (templates.empty() && contexts.generate > 0)
    assumptions.push_back(cat("assumed: generated contexts of ", contexts.length + 2, " tokens"));
  work.backward = job.needs.backward;
  if (const ValueOptions* values = editor.values()) {
    work.optimizes_values = work.requests > 0;
    // the layers below are run once; for some sites and families this does not include the edited layer
    if (const std::vector<int64_t> layers = editor.value_layers(config); !layers.empty()) {
      work.steps_from = *std::ranges::min_element(layers);
      work.values_at = first_step_layer(config, values->site, work.steps_from) - 1;
    }
    work.value_batch = values->batch;
    work.value_steps = values->most_steps();
    work.values = in_groups(work.values, values->contexts_per_step);
  }
  return work;
}

Workload without_text(Workload work) {
  work.statistics_tokens = 0;
  work.document_tokens = 0;
  work.samples_text = false;
  return work;
}

Workload united(const Workload& one, const Workload& other) {
  const auto both = [](const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
    std::set<int64_t> layers(a.begin(), a.end());
    layers.insert(b.begin(), b.end());
    return std::vector<int64_t>(layers.begin(), layers.end());
  };
  // 0 means all requests
  const auto larger = [](int64_t a, int64_t b) { return a > 0 && b > 0 ? std::max(a, b) : 0; };
  Workload work = one;
  work.batch = larger(one.batch, other.batch);
  work.edited_layers = both(one.edited_layers, other.edited_layers);
  work.quantise_rule.add_edited(other.quantise_rule.edited);
  work.statistics_layers = both(one.statistics_layers, other.statistics_layers);
  work.history_keys = std::max(one.history_keys, other.history_keys);
  work.changes = std::max(one.changes, other.changes);
  work.solve_matrices = std::max(one.solve_matrices, other.solve_matrices);
  work.statistics_tokens = std::max(one.statistics_tokens, other.statistics_tokens);
  work.document_tokens = std::max(one.document_tokens, other.document_tokens);
  work.samples_text = one.samples_text || other.samples_text;
  work.takes_gradients = one.takes_gradients || other.takes_gradients;
  if (other.backward) {
    const BackwardNeeds& ours = one.backward ? *one.backward : *other.backward;
    work.backward = {std::max(ours.batch, other.backward->batch), ours.trains_dense || other.backward->trains_dense,
                     ours.projects || other.backward->projects, ours.whitens || other.backward->whitens};
  }
  if (one.optimizes_values) work.values_at = one.value_layer();
  if (!other.optimizes_values) return work;
  work.values_at = other.value_layer();
  if (!one.optimizes_values) {
    work.values = other.values;
    work.steps_from = other.steps_from;
    work.value_batch = other.value_batch;
  } else {
    work.values_at = std::min(one.value_layer(), other.value_layer());  // more layers are above the lower one
    work.steps_from = std::min(one.steps_from, other.steps_from);
    const auto raise = [&](int64_t ValueShape::*size) {
      work.values.*size = std::max(one.values.*size, other.values.*size);
    };
    for (int64_t ValueShape::*size :
         {&ValueShape::contexts, &ValueShape::groups, &ValueShape::row_tokens, &ValueShape::prefix_tokens,
          &ValueShape::suffix_tokens, &ValueShape::mean_suffix_tokens, &ValueShape::distinct_tokens,
          &ValueShape::distinct_prefix_tokens, &ValueShape::all_distinct_tokens,
          &ValueShape::all_distinct_prefix_tokens, &ValueShape::target_tokens, &ValueShape::drift_rows})
      raise(size);
    work.value_batch = larger(one.value_batch, other.value_batch);
  }
  work.optimizes_values = true;
  work.value_steps = std::max(one.value_steps, other.value_steps);
  return work;
}

Workload statistics_work(const ResolvedJob& job, const ModelConfig& config) {
  Workload work = basic_work(job.run, config);
  work.quantise_rule = quantise_rule(job, config);
  add_statistics(job, config, work);
  return work;
}

Workload evaluation_work(const RunOptions& run, const ModelConfig& config, const EvaluationSize& evaluation) {
  Workload work = basic_work(run, config);
  work.evaluation = evaluation;
  return work;
}

Workload typical_work(const RunOptions& run, const ModelConfig& config, std::vector<std::string>& assumptions) {
  Workload work = basic_work(run, config);
  work.edited_layers = automatic_layers(config);
  for (const int64_t layer : work.edited_layers) work.quantise_rule.edited.push_back({WeightKind::kDown, layer});
  work.statistics_layers = work.edited_layers;
  work.statistics_tokens = kMostTokens;
  work.document_tokens = std::min(StatisticsOptions().document_tokens, config.max_positions);
  work.requests = kAssumedRequests;
  work.values = kAssumedPrompt;
  work.values.row_tokens += kAssumedContextTokens;
  work.values.prefix_tokens += kAssumedContextTokens;
  work.optimizes_values = !work.edited_layers.empty();
  if (work.optimizes_values) work.steps_from = work.edited_layers.back();
  work.value_steps = ValueOptions().most_steps();
  work.evaluation = assumed_evaluation(work.requests, kAssumedPrompt);
  assumptions.push_back(cat("assumed: MEMIT of ", work.requests, " requests at layers ", work.edited_layers.front(),
                            "-", work.edited_layers.back(), ", ", work.values.contexts, " contexts, statistics over ",
                            work.statistics_tokens, " tokens in documents of at most ", work.document_tokens,
                            ", all metrics"));
  assumptions.push_back("assumed: " + prompt_assumption(kAssumedPrompt));
  return work;
}

}  // namespace lancet
