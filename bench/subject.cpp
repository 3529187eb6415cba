#include "subject.h"

#include <string>

#include "lancet/core/error.h"
#include "lancet/core/strings.h"
#include "lancet/plan/model_session.h"
#include "lancet/runtime/devices.h"
#include "synthetic.h"
#include "temporary_folder.h"

namespace lancet::bench {
namespace {

constexpr int64_t kMostRequests = 512;

/// The demo model's contexts (its lancet.yaml): six rows per request, as MEMIT's.
const std::vector<std::string>& contexts() {
  static const std::vector<std::string> kContexts{"{}",
                                                  "The answer is known. {}",
                                                  "Therefore the following holds. {}",
                                                  "Because of this, it is so. {}",
                                                  "I know that well. {}",
                                                  "You know that well. {}"};
  return kContexts;
}

Subject made_up(const BenchOptions& options) {
  const ModelShape shape = parse_shape(options.shape);
  set_threads(options.run);
  const ModelConfig config = random_model_config(shape, options.run.dtype.value_or(DType::kF32));
  const Workload work = evaluation_work(options.run, config, {});
  // planned as a job's is: a room is set, so that no batch depends on what the allocator keeps from what ran before
  const Placement placement = plan_job(config, work, find_devices(options.run.devices), options.run.balance).placement;
  return {make_random_model(shape, placement), random_requests(kMostRequests, shape.vocab),
          random_corpus(options.statistics_tokens, shape.vocab)};
}

Subject from_folder(const BenchOptions& options) {
  const ModelFiles files = open_model(options.model, {});
  const std::vector<EditRequest> requests =
      load_request_file(options.requests, {.range = {.skip = 0, .limit = kMostRequests}}).requests;
  if (static_cast<int64_t>(requests.size()) < kMostRequests)
    throw ConfigError(
        cat(options.requests.string(), ": ", requests.size(), " requests, the benchmarks need ", kMostRequests));
  StatisticsOptions statistics;
  statistics.corpus = options.corpus;
  statistics.tokens = options.statistics_tokens;
  return {load_model(files, options.run, evaluation_work(options.run, files.config, {})),
          prepare_requests(*files.tokenizer, requests, contexts()),
          read_corpus(*files.tokenizer, statistics, files.config)};
}

}  // namespace

Subject make_subject(const BenchOptions& options) {
  return options.shape.empty() ? from_folder(options) : made_up(options);
}

}  // namespace lancet::bench
