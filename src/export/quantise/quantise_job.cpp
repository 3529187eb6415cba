#include "lancet/export/quantise_job.h"

#include <algorithm>
#include <chrono>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/models/batching.h"
#include "lancet/plan/model_session.h"
#include "lancet/requests/prepared_request.h"
#include "lancet/runtime/memory.h"
#include "lancet/statistics/self_corpus.h"
#include "layer_packer.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kQuantiseRecord = "quantise.json";
constexpr const char* kRequestsFile = "requests.jsonl";
constexpr OutputKind kQuantiseOutput{"quantise"};

/// The file with the edits' requests; empty: the model is no output of an edit.
fs::path find_requests(const QuantiseJob& job) {
  const fs::path folder = job.edits.empty() ? job.model : job.edits;
  std::error_code error;
  if (fs::is_regular_file(folder / kRequestsFile, error)) return folder / kRequestsFile;
  if (job.edits.empty()) return {};
  throw ConfigError(cat("--edits ", job.edits.string(), ": expected a folder that lancet edit wrote, with a ",
                        kRequestsFile, "; there is none"));
}

/// A prompt up to the token that an edit is looked up at: the subject's last one, or without a subject the last one.
std::vector<TokenId> ids_to_lookup(const Tokenizer& tokenizer, const EditRequest& request) {
  if (request.subject.empty()) return tokenizer.ids(request.prompt.text);
  LocatedPrompt located = locate_subject(tokenizer, request.prompt);
  located.ids.resize(static_cast<size_t>(located.lookup) + 1);
  return located.ids;
}

std::vector<TokenBatch> text_batches(const CorpusTokens& corpus, const CausalLM& model) {
  std::vector<TokenBatch> batches;
  for (const std::vector<int64_t>& documents :
       plan_packs(corpus.documents, statistics_chunk_tokens(model.config(), model.placement().weight_dtype()),
                  longest_usual_text(model.config()))) {
    std::vector<std::span<const TokenId>> parts;
    for (const int64_t document : documents) parts.emplace_back(corpus.documents[static_cast<size_t>(document)]);
    batches.push_back(make_packed_batch(parts));
  }
  return batches;
}

std::vector<TokenBatch> prompt_batches(const std::vector<std::vector<TokenId>>& prompts, const CausalLM& model) {
  std::vector<int64_t> lengths;
  for (const std::vector<TokenId>& ids : prompts) lengths.push_back(static_cast<int64_t>(ids.size()));
  const int64_t tokens = statistics_chunk_tokens(model.config(), model.placement().weight_dtype());
  std::vector<TokenBatch> batches;
  for (const std::vector<int64_t>& rows : plan_batches(lengths, {.tokens = tokens})) {
    std::vector<std::vector<TokenId>> ids;
    for (const int64_t row : rows) ids.push_back(prompts[static_cast<size_t>(row)]);
    batches.push_back(make_batch(ids));
  }
  return batches;
}

/// The stages of one run.
class QuantiseRun {
 public:
  explicit QuantiseRun(const QuantiseJob& job) : job_(job) {}

  QuantiseReport run() {
    open();
    lock_.emplace(job_.out, kQuantiseOutput);
    check_folder();  // again: another run may have ended before the lock, or a killed one been made good
    OutputFolder folder(job_.out, job_.if_exists, kQuantiseOutput);
    write_packed(folder.staging());
    measure_written(folder.staging());
    write_text_file(folder.staging() / kQuantiseRecord, to_json(report_, job_));
    folder.commit();
    return std::move(report_);
  }

 private:
  /// What can fail before any weight is read.
  void open() {
    check_folder();
    files_.emplace(open_model(job_.model, {}));
    if (files_->checkpoint.gguf() != nullptr)
      throw ConfigError(cat(job_.model.string(), ": is a GGUF file: expected a model folder in full precision; ",
                            "llama.cpp's llama-quantize makes another GGUF file of this one"));
    if (files_->config.quantised)
      throw ConfigError(cat(job_.model.string(), ": is quantised already (", files_->config.quantised->method(),
                            "): expected a model in full precision; lancet edit keeps a quantised model's format by "
                            "output.format: quantised"));
    check_apart(job_.out, files_->checkpoint.folder());
    plan_ = plan_packing(*files_, job_.format, job_.bits);
    report_.in_full_precision = plan_.in_full_precision;
    report_.requests_file = find_requests(job_);
    if (!report_.requests_file.empty()) {
      report_.requests = load_request_file(report_.requests_file, {}).requests;
      refuse_long_requests(*files_->tokenizer, report_.requests, files_->config.max_positions);
      for (const EditRequest& request : report_.requests)
        prompts_.push_back(ids_to_lookup(*files_->tokenizer, request));
      EvaluationOptions options;
      options.protocols = {"efficacy", "paraphrase", "specificity"};
      evaluation_.emplace(*files_->tokenizer, report_.requests, options, files_->config.max_positions);
    }
    open_text();
  }

  void check_folder() const { check_new_output(job_.out, job_.if_exists, kQuantiseOutput); }

  void open_text() {
    if (job_.tokens < files_->config.least_tokens())
      throw ConfigError(cat("--tokens ", job_.tokens, ": expected at least ", files_->config.least_tokens(),
                            ", as many as this model's MLP keys have dimensions"));
    text_options_.corpus = job_.corpus;
    text_options_.tokens = job_.tokens;
    if (job_.corpus.empty()) {
      text_options_.from = StatisticsFrom::kSelf;
      text_options_.document_tokens = 256;
      own_text_ = plan_self_corpus(*files_->tokenizer, files_->config, text_options_, job_.run.seed);
    } else {
      corpus_ = read_corpus(*files_->tokenizer, text_options_, files_->config);
    }
  }

  Workload measuring_work() const {
    return evaluation_work(job_.run, files_->config, evaluation_ ? evaluation_->size() : EvaluationSize{});
  }

  Workload work() const {
    Workload work = measuring_work();
    work.packs_layers = true;
    work.statistics_tokens = job_.tokens;
    work.samples_text = own_text_.has_value();
    if (own_text_) work.document_tokens = own_text_->most_tokens;
    for (const std::vector<TokenId>& document : corpus_.documents)
      work.document_tokens = std::max(work.document_tokens, static_cast<int64_t>(document.size()));
    return work;
  }

  void write_packed(const fs::path& folder) {
    CausalLM model = load_model(*files_, job_.run, work());
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), files_->config.n_layers));
    report_.content_hash = files_->checkpoint.content_hash();
    report_.dtype = precision_text(model);
    report_.devices = model.placement().description();
    if (evaluation_) report_.before = evaluation_->run(model, "evaluate before", alone());
    const auto begun = std::chrono::steady_clock::now();
    if (own_text_) corpus_ = sample_corpus(model, *own_text_, alone());
    report_.tokens = corpus_.tokens;
    LayerPacker packer(*files_, plan_, job_.covariance_weight, model);
    pack_layers(model, packer);
    report_.matrices = packer.losses();
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    const std::vector<TensorExchange> exchanges = packer.exchanges();
    export_checkpoint(files_->checkpoint, {.exchanged = exchanges, .config_text = plan_.config_text}, folder);
    std::string lines;
    for (const EditRequest& request : report_.requests) lines += to_json_line(request) + "\n";
    if (!report_.requests_file.empty()) write_text_file(folder / kRequestsFile, lines);
  }

  void pack_layers(CausalLM& model, LayerPacker& packer) {
    LayerTexts text(model, text_batches(corpus_, model));
    LayerTexts prompts(model, prompt_batches(prompts_, model));
    report_.kept_bytes = text.kept_bytes() + prompts.kept_bytes();
    const int64_t n_layers = files_->config.n_layers;
    Progress progress("quantise", n_layers, "layers");
    for (int64_t layer = 0; layer < n_layers; ++layer) {
      LayerMoments moments(files_->config, layer, model.placement().solve_device(layer));
      text.see_inputs(layer,
                      [&](const SequenceInfo& sequence, const LayerInputs& inputs) { moments.add(sequence, inputs); });
      LayerKeys keys(files_->config, layer);
      prompts.see_inputs(layer,
                         [&](const SequenceInfo& sequence, const LayerInputs& inputs) { keys.add(sequence, inputs); });
      packer.pack_layer(layer, moments, prompts_.empty() ? nullptr : &keys);
      text.advance(layer);
      prompts.advance(layer);
      progress.advance(1);
    }
  }

  /// Opened and loaded as everybody else will.
  void measure_written(const fs::path& folder) {
    const ModelFiles written = open_model(folder, {});
    resolve_weights(written.config, written.checkpoint);
    report_.bytes_before = files_->checkpoint.tensor_bytes();
    report_.bytes_after = written.checkpoint.tensor_bytes();
    if (!evaluation_) return;
    RunOptions run = job_.run;
    if (!run.dtype) run.dtype = files_->config.dtype;
    const CausalLM model = load_model(written, run, measuring_work());
    report_.after = evaluation_->run(model, "evaluate after", alone(), &*report_.before);
  }

  const QuantiseJob& job_;
  std::optional<OutputLock> lock_;
  std::optional<ModelFiles> files_;
  PackingPlan plan_;
  std::vector<std::vector<TokenId>> prompts_;  ///< up to the lookup tokens
  std::optional<EvaluationPlan> evaluation_;
  StatisticsOptions text_options_;
  std::optional<SelfCorpusPlan> own_text_;
  CorpusTokens corpus_;
  QuantiseReport report_;
};

}  // namespace

std::string quantised_format_name(QuantisedFormat format) {
  return format == QuantisedFormat::kGptq ? "gptq" : "compressed-tensors";
}

QuantiseReport run_quantise_job(const QuantiseJob& job) { return QuantiseRun(job).run(); }

}  // namespace lancet
