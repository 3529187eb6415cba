// Attention of full rows, causal: rows of one length, and rows of another length each time, as documents and decoded
// tokens make them. On a GPU with and without cuDNN's kernels, which plan anew for every shape.
#include <ATen/Context.h>
#include <torch/types.h>

#include <string>

#include "benches.h"
#include "lancet/core/strings.h"
#include "lancet/kernels/attention.h"
#include "lancet/models/batching.h"
#include "machine.h"

namespace lancet::bench {
namespace {

constexpr int64_t kWidth = 128;
/// Calls of one iteration; changing lengths are kWidth, kWidth + 1, ...
constexpr int64_t kCalls = 16;

/// torch's switch for cuDNN's attention, set back at the end.
class CudnnAttention {
 public:
  explicit CudnnAttention(bool on) : before_(at::globalContext().userEnabledCuDNNSDP()) {
    at::globalContext().setSDPUseCuDNN(on);
  }
  ~CudnnAttention() { at::globalContext().setSDPUseCuDNN(before_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

 private:
  bool before_;
};

struct AttentionCase {
  bool cudnn = false;
  bool changing = false;
};

void run_attention(benchmark::State& state, const Subject& subject, AttentionCase attention) {
  const torch::NoGradGuard no_grad;
  const CudnnAttention cudnn(attention.cudnn);
  const ModelConfig& config = subject.model.config();
  const Placement& placement = subject.model.placement();
  const auto options = torch::TensorOptions(placement.weight_dtype()).device(placement.head_device());
  const int64_t rows = kForwardTokens / kWidth, widest = kWidth + kCalls;
  const Tensor query = torch::randn({rows, widest, config.n_heads, config.head_dim}, options);
  const Tensor key = torch::randn({rows, widest, config.n_kv_heads, config.head_dim}, options);
  const Tensor value = torch::randn_like(key);
  const auto attend = [&](int64_t width) {
    return grouped_attention(query.narrow(1, 0, width), {key.narrow(1, 0, width), value.narrow(1, 0, width)}, {}, {},
                             usual_rule(config.head_dim));
  };
  wait_for(attend(kWidth - 1));  // libraries are loaded; a shape of its own
  double first_s = 0;            // every shape is new
  double seconds = 0;
  for (auto _ : state) {
    const double now = seconds_of([&] {
      Tensor last;
      for (int64_t call = 0; call < kCalls; ++call) last = attend(attention.changing ? kWidth + call : kWidth);
      wait_for(last);
    });
    if (first_s == 0) first_s = now;
    state.SetIterationTime(now);
    seconds += now;
  }
  count(state, {.tokens = static_cast<double>(rows * kWidth * kCalls)},
        seconds / static_cast<double>(state.iterations()));
  state.counters["first_ms"] = 1e3 * first_s;
  state.counters["calls"] = kCalls;
}

}  // namespace

void register_attention(const Subject& subject) {
  const bool on_host = subject.model.placement().is_host_only();
  for (const bool cudnn : {false, true})
    for (const bool changing : {false, true}) {
      if (on_host && cudnn) continue;
      const std::string name = cat("attention/", changing ? "changing" : "equal",
                                   on_host ? ""
                                   : cudnn ? "/cudnn"
                                           : "/no_cudnn");
      benchmark::RegisterBenchmark(name.c_str(),
                                   [&subject, attention = AttentionCase{cudnn, changing}](benchmark::State& state) {
                                     run_attention(state, subject, attention);
                                   })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
}

}  // namespace lancet::bench
