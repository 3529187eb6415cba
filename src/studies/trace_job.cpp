#include "lancet/studies/trace_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/reporter.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/io/files.h"
#include "lancet/io/output_folder.h"
#include "lancet/pipeline/earlier_output.h"
#include "lancet/pipeline/edit_job.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/memory.h"

namespace lancet {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraceFile = "trace.json";
constexpr OutputKind kTraceOutput{"trace"};
constexpr std::string_view kKnownFormat = "known";  // a record's target is what is true
constexpr double kNoiseDeviations = 3;              // Meng et al. 2022, appendix B

std::vector<EditRequest> read_facts(const TraceJob& job) {
  if (!job.facts.empty()) {
    RequestFile file = load_request_file(job.facts, {});
    if (file.format == kKnownFormat)
      for (EditRequest& fact : file.requests) fact.target_true = fact.target;
    return std::move(file.requests);
  }
  EditRequest request;
  request.id = "0";
  request.subject = job.subject;
  request.prompt = fill_prompt(job.prompt, job.subject, "--prompt");
  return {request};
}

/// Returns the token's spelling in the vocabulary, with spaces as spaces: " Games". A predicted id can be one of the
/// padded embedding's, which has no spelling.
std::string token_text(const Tokenizer& tokenizer, TokenId id) {
  constexpr std::string_view kSpace = "\u2581";
  if (id >= tokenizer.vocab_size()) return cat("(no token: ", id, ")");
  std::string text = tokenizer.piece(id);
  for (size_t at = 0; (at = text.find(kSpace, at)) != std::string::npos;) text.replace(at, kSpace.size(), " ");
  return text;
}

class TraceRun {
 public:
  TraceRun(const TraceJob& job, Communicator& ranks) : job_(job), ranks_(ranks) {}

  TraceReport run() {
    ranks_.run_collectively("open", [&] { open(); });
    check_same(ranks_, facts_to_agree_on());
    const CausalLM model = load_replica(*files_, job_.run, work(), ranks_);
    const MemoryWatch memory_watch(devices_with_memory(model.placement(), files_->config.n_layers));
    report_.content_hash = same_content_hash(ranks_, files_->checkpoint);
    report_.dtype = precision_text(model);
    report_.n_layers = files_->config.n_layers;
    const auto begun = std::chrono::steady_clock::now();
    choose_facts(model);
    set_noise(model);
    std::vector<TracedFact> traced;
    for (const ReportedFact& fact : report_.facts) traced.push_back(fact.traced);
    const std::vector<FactTrace> traces = trace_facts(model, traced, report_.options, ranks_);
    for (size_t i = 0; i < traces.size(); ++i) report_.facts[i].trace = traces[i];
    report_.summary = summarize(traced, traces, report_.options);
    if (!std::isfinite(report_.summary.total_effect))
      throw NumericError(cat("trace: the effect of noise of ", report_.options.noise,
                             " is not finite: try a smaller --noise, or --dtype f32"));
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    write_output();
    return std::move(report_);
  }

 private:
  void open() {
    if (ranks_.is_root()) check_folder();
    files_.emplace(open_model(job_.model, {}));
    if (ranks_.is_root()) check_apart(job_.out, files_->checkpoint.folder());
    requests_ = read_facts(job_);
    const auto size = static_cast<int64_t>(requests_.size());
    if (job_.range.skip >= size)
      throw ConfigError(cat("--skip ", job_.range.skip, ": leaves none of the ", size, " facts of ",
                            job_.facts.empty() ? std::string("the command line") : job_.facts.string()));
    end_ = job_.range.skip + std::min(job_.range.limit.value_or(size), size - job_.range.skip);
    check_lengths(*files_, {requests_.begin() + job_.range.skip, requests_.begin() + end_});
    locate();
    report_.options = job_.options;
    if (job_.options.window >= files_->config.n_layers)
      log_warning(cat("--window ", job_.options.window, ": covers all of the model's ", files_->config.n_layers,
                      " layers, so that the maps of mlp and attention tell little about layers: try --window ",
                      std::max<int64_t>(1, files_->config.n_layers / 4)));
    if (!ranks_.is_root()) return;
    lock_.emplace(job_.out, kTraceOutput);
    check_folder();  // again: meanwhile another run may have ended, or a killed run's output may have been repaired
  }

  void check_folder() const {
    std::error_code error;
    if (fs::exists(job_.out, error))
      throw ConfigError(cat("--out: ", job_.out.string(), ": exists already: choose another name"));
    check_output_target(job_.out, IfExists::kError, kTraceOutput);
  }

  /// Finds the subject's tokens in every fact of the file. Facts that are not traced count for the noise, too.
  void locate() {
    std::vector<std::string> problems;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const EditRequest& request = requests_[i];
      const std::string where = cat("fact ", request.id, ", prompt '", request.prompt.text, "'");
      try {
        if (request.subject.empty()) throw ConfigError(cat(where, ": has no subject, whose tokens are corrupted"));
        const bool is_taken = static_cast<int64_t>(i) >= job_.range.skip && static_cast<int64_t>(i) < end_;
        if (is_taken && request.target_true) {
          ContinuedPrompt continued =
              continue_prompt(*files_->tokenizer, request.prompt.text, *request.target_true, where);
          prompts_.push_back(find_subject(request.prompt, std::move(continued.prompt)));
          true_token_[i] = continued.target.front();
        } else {
          prompts_.push_back(find_subject(*files_->tokenizer, request.prompt));
        }
      } catch (const Error& error) {
        problems.emplace_back(error.what());
      }
    }
    if (!problems.empty()) throw ConfigError(join(problems, "\n"));
  }

  std::vector<JobFact> facts_to_agree_on() const {
    std::string lines;
    for (const EditRequest& request : requests_) lines += to_json_line(request) + "\n";
    std::string kinds;
    for (const TraceKind kind : job_.options.kinds) kinds += cat(trace_kind_name(kind), " ");
    return {{"the version of lancet", std::string(kVersion)},
            {"the options",
             cat(kinds, job_.options.samples, " ", job_.options.window, " ", job_.options.seed, " ",
                 job_.noise.value_or(-1), " ", job_.range.skip, " ", end_, " ", static_cast<int>(job_.unknown))},
            {"the model's config.json", files_->checkpoint.config_text()},
            {"the dtype", std::string(dtype_name(job_.run.dtype.value_or(files_->config.dtype)))},
            {"how weights are kept", job_.run.quantise_base},
            {"the facts", std::move(lines)}};
  }

  Workload work() const {
    std::vector<TracedFact> all;
    int64_t longest = 0;
    for (int64_t i = job_.range.skip; i < end_; ++i) {
      all.push_back({prompts_[static_cast<size_t>(i)], 0, i});
      longest = std::max(longest, static_cast<int64_t>(all.back().prompt.ids.size()));
    }
    const int64_t together = std::max(kForwardTokens, job_.options.samples * longest);
    EvaluationSize size;
    size.scoring = {.tokens = together,
                    .pack_tokens = together,
                    .pack_places = together,
                    .run_places = together,
                    .document_tokens = longest,
                    .read_places = kForwardTokens};
    Workload work = evaluation_work(job_.run, files_->config, size);
    work.kept_tokens = kept_trace_tokens(all, job_.options.samples);
    return work;
  }

  /// Finds what the model says after each prompt, and whether it is what the file says.
  void choose_facts(const CausalLM& model) {
    std::vector<std::vector<TokenId>> ids;
    for (int64_t i = job_.range.skip; i < end_; ++i) ids.push_back(prompts_[static_cast<size_t>(i)].ids);
    const std::vector<Prediction> predictions = predict_next(model, ids, ranks_);
    for (size_t n = 0; n < predictions.size(); ++n) {
      const size_t i = static_cast<size_t>(job_.range.skip) + n;
      const auto known = true_token_.find(i);
      const bool is_unknown = known != true_token_.end() && known->second != predictions[n].token;
      if (is_unknown && job_.unknown == UnknownFacts::kLeaveOut) {
        ++report_.unknown;
        continue;
      }
      const EditRequest& request = requests_[i];
      ReportedFact fact;
      fact.id = request.id;
      fact.prompt = request.prompt.text;
      fact.subject = request.subject;
      fact.target_true = request.target_true;
      fact.object = token_text(*files_->tokenizer, predictions[n].token);
      for (const TokenId id : prompts_[i].ids) fact.tokens.push_back(token_text(*files_->tokenizer, id));
      fact.traced = {prompts_[i], predictions[n].token, static_cast<int64_t>(i)};
      report_.facts.push_back(std::move(fact));
    }
    if (report_.facts.empty())
      throw ConfigError(cat("none of the ", report_.unknown,
                            " facts is known to the model: its likeliest next token is never the first one of the "
                            "true answer. --keep-unknown traces what it predicts instead"));
  }

  void set_noise(const CausalLM& model) {
    std::vector<TokenId> tokens;
    for (const SubjectTokens& prompt : prompts_)
      tokens.insert(tokens.end(), prompt.ids.begin() + prompt.first, prompt.ids.begin() + prompt.end);
    report_.embedding_deviation = embedding_deviation(model, tokens);
    report_.options.noise = job_.noise.value_or(kNoiseDeviations * report_.embedding_deviation);
  }

  /// Writes the output. The folder appears only after it is complete and all ranks are still running.
  void write_output() {
    std::optional<OutputFolder> folder;
    ranks_.run_collectively("export", [&] {
      if (!ranks_.is_root()) return;
      folder.emplace(job_.out, IfExists::kError, kTraceOutput);
      write_text_file(folder->staging() / "trace.csv", to_csv(report_));
      for (size_t k = 0; k < report_.options.kinds.size(); ++k)
        write_text_file(folder->staging() / cat(trace_kind_name(report_.options.kinds[k]), ".svg"), to_svg(report_, k));
      write_text_file(folder->staging() / kTraceFile, to_json(report_, job_));
    });
    if (folder) folder->commit();
  }

  const TraceJob& job_;
  Communicator& ranks_;
  std::optional<OutputLock> lock_;  // on root
  std::optional<ModelFiles> files_;
  std::vector<EditRequest> requests_;     // requests of the whole file
  std::vector<SubjectTokens> prompts_;    // prompts of the whole file
  std::map<size_t, TokenId> true_token_;  // true tokens of the selected facts, if the file has them
  int64_t end_ = 0;                       // end of the selected facts
  TraceReport report_;
};

}  // namespace

TraceReport run_trace_job(const TraceJob& job, Communicator& communicator) {
  TraceReport report;
  communicator.run_collectively("trace facts", [&] { report = TraceRun(job, communicator).run(); });
  return report;
}

}  // namespace lancet
