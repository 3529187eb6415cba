#include "lancet/models/layers_on_ranks.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <exception>
#include <map>
#include <optional>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "lancet/models/causal_lm.h"
#include "lancet/models/model_files.h"
#include "lancet/runtime/rank_links.h"
#include "layer_messages.h"

namespace lancet {
namespace {

constexpr int64_t kRoot = 0;

/// Rank 0 said that the work is over, possibly in the middle of something.
struct Ended : std::exception {
  explicit Ended(int64_t with) : code(with) {}
  int64_t code;
};

/// What autograd knows of a run.
struct Gradients {
  bool are_taken = false;
  /// The first value whose gradient rank 0 needs: the input, or a value that was sent; undefined: none.
  Tensor source = {};
  Tensor anchor = {};  ///< everything whose gradient rank 0 may need later depends on this number
};

/// A run whose gradient may be needed.
struct KeptRun {
  Gradients gradients;
  Tensor output;
};

WeightId read_weight_id(MessageReader& message) {
  const auto kind = static_cast<WeightKind>(message.number());
  return {kind, message.number()};
}

/// Reads the placement as this rank sees it: its own layers on its devices, the others on none.
Placement read_placement(MessageReader& message, std::span<const std::string> devices, int64_t own_rank) {
  const auto type = static_cast<at::ScalarType>(message.number());
  std::vector<Stage> stages;
  for (int64_t n = message.number(), i = 0; i < n; ++i) {
    Stage& stage = stages.emplace_back(Stage{Placement::named(devices[static_cast<size_t>(i)])});
    stage.begin = message.number();
    stage.end = message.number();
    const int64_t rank = message.number();
    stage.rank = rank == own_rank ? Stage::kHere : rank;
  }
  Placement placement(std::move(stages), type);
  placement.put_elsewhere_on(placement.last_device_here().value_or(Placement::host()));
  placement.leave_ends_out();
  return placement;
}

QuantiseRule read_rule(MessageReader& message) {
  QuantiseRule rule;
  if (const int64_t quantiser = message.number(); quantiser != kNoNumber)
    rule.quantiser = static_cast<Quantiser>(quantiser);
  for (int64_t left = message.number(); left > 0; --left) rule.edited.push_back(read_weight_id(message));
  return rule;
}

class LayerServer {
 public:
  LayerServer(Communicator& ranks, const LayerService& service) : ranks_(ranks), service_(service) {}

  int64_t serve() {
    try {
      for (;;) {
        const RankMessage request = receive();
        count_progress();
        if (request.kind == kind_of(LayerRequest::kRelease))
          release(request);
        else
          answer(done(request));
      }
    } catch (const Ended& end) {
      return end.code;
    } catch (const CollectiveError&) {
      throw;
    } catch (...) {
      ranks_.send(kRoot, {.kind = RankLinks::kFailed});
      throw;
    }
  }

 private:
  RankMessage receive() {
    RankMessage request = ranks_.receive(kRoot);
    if (request.kind == kind_of(LayerRequest::kEnd)) throw Ended(MessageReader(request).number());
    return request;
  }

  void answer(const RankMessage& message) { ranks_.send(kRoot, message); }

  RankMessage done(const RankMessage& request) {
    MessageReader read(request);
    switch (static_cast<LayerRequest>(request.kind)) {
      case LayerRequest::kDevices:
        return devices();
      case LayerRequest::kLoad:
        return load(request, read);
      case LayerRequest::kHold:
        return hold(read);
      case LayerRequest::kRun:
        return run(read);
      case LayerRequest::kBackward:
        return backward(read);
      case LayerRequest::kWeight:
        return {.tensors = {model().weight(read_weight_id(read))}};
      case LayerRequest::kSetWeight: {
        const WeightId id = read_weight_id(read);
        model().put_weight(id, read.tensor());
        return {};
      }
      case LayerRequest::kIsFinite:
        return {.numbers = {model().is_finite(read_weight_id(read)) ? 1 : 0}};
      default:
        throw std::logic_error(cat("rank 0 asks for what there is not: ", request.kind));
    }
  }

  RankMessage devices() const {
    RankMessage message{.texts = {kVersion}};
    for (const DeviceBudget& device : service_.devices) {
      message.texts.push_back(device.device.str());
      message.numbers.insert(message.numbers.end(), {device.bytes, static_cast<int64_t>(device.speed * 1000)});
    }
    return message;
  }

  RankMessage load(const RankMessage& request, MessageReader& read) {
    held_.clear();
    runs_.clear();
    model_.reset();
    const std::string& folder = request.texts.at(0);
    const Placement placement = read_placement(read, std::span(request.texts).subspan(2), ranks_.rank());
    const QuantiseRule rule = read_rule(read);
    const ModelFiles files = open_model(folder, service_.ignore_config_keys);
    if (files.checkpoint.config_text() != request.texts.at(1))
      throw ConfigError(cat(folder,
                            "/config.json: expected the same as on rank 0, got another. Give every rank the "
                            "same model"));
    model_.emplace(CausalLM::load_part(files.checkpoint, files.config, placement, rule, nullptr));
    files.checkpoint.check_unchanged();
    return {.texts = {hash_of_layers(files.checkpoint, files.config, placement, Stage::kHere)}};
  }

  CausalLM& model() {
    if (!model_) throw std::logic_error("rank 0 asks for layers before they are loaded");
    return *model_;
  }

  RankMessage hold(MessageReader& read) {
    std::unique_ptr<OwnSequence> sequence = read_sequence(read, model().placement());
    sequence->prepared = model().prepare_pass(sequence->info, sequence->layers);
    sequence->info.prepared = sequence->prepared.get();
    held_.emplace(next_, std::move(sequence));
    return {.numbers = {next_++}};
  }

  void release(const RankMessage& request) {
    for (const int64_t number : request.numbers) {
      held_.erase(number);
      runs_.erase(number);
    }
  }

  /// Returns hooks that ask rank 0, which has the real hooks. They borrow `gradients`.
  HookSet read_hooks(MessageReader& read, Gradients& gradients) {
    HookSet hooks;
    for (int64_t n = read.number(), i = 0; i < n; ++i) {
      const auto point = static_cast<HookPoint>(read.number());
      const HookSite site{point, read.number()};
      const auto ask = [this, i, &gradients](const Tensor& value) { return at_site(i, value, gradients); };
      // an observer may need a gradient of what it sees, which then goes through the value's place
      if (read.number() != 0 || gradients.are_taken)
        hooks.replace(site, ask);
      else
        hooks.observe(site, ask);
    }
    if (read.number() != 0) {
      const auto point = static_cast<HookPoint>(read.number());
      hooks.stop_at({point, read.number()});
    }
    return hooks;
  }

  /// Returns the value that continues.
  Tensor at_site(int64_t index, const Tensor& value, Gradients& gradients) {
    const bool needs_gradient = value.requires_grad();
    answer({.kind = kind_of(LayerAnswer::kSite), .numbers = {index, needs_gradient ? 1 : 0}, .tensors = {value}});
    const RankMessage reply = receive();
    MessageReader read(reply);
    const bool asks = read.number() != 0;
    const Tensor given = read.tensor();
    Tensor put = given.defined() ? given.to(value.device()) : value;
    if (asks && !needs_gradient && !gradients.source.defined()) return gradients.source = put.requires_grad_(true);
    if (!asks && !needs_gradient) return put;
    return ValueElsewhere::apply(value, gradients.anchor, c10::make_intrusive<PutValue>(*this, put));
  }

  /// A value that went through rank 0.
  struct PutValue : torch::CustomClassHolder {
    PutValue(LayerServer& by, Tensor put) : server(by), value(std::move(put)) {}
    LayerServer& server;
    Tensor value;  ///< the value that continues, until autograd has it
  };

  /// Returns the value that continues at a site as a function of the value that arrived there. Its gradient goes
  /// through rank 0.
  struct ValueElsewhere : torch::autograd::Function<ValueElsewhere> {
    static Tensor forward(torch::autograd::AutogradContext* context, const Tensor&, const Tensor&,
                          const c10::intrusive_ptr<PutValue>& put) {
      context->saved_data["put"] = c10::IValue::make_capsule(put);
      return std::exchange(put->value, {}).detach();
    }

    static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::tensor_list& grads) {
      const auto put = c10::static_intrusive_pointer_cast<PutValue>(context->saved_data["put"].toCapsule());
      put->server.answer({.kind = kind_of(LayerAnswer::kSite), .tensors = {grads[0]}});
      const RankMessage reply = put->server.receive();
      const Tensor gradient = MessageReader(reply).tensor();
      const bool is_wanted = context->needs_input_grad(0);
      return {is_wanted ? gradient.to(grads[0].device()) : Tensor(), torch::zeros({}), Tensor()};
    }
  };

  RankMessage run(MessageReader& read) {
    const at::AutoGradMode mode(read.number() != 0);
    const bool of_input = read.number() != 0, records = read.number() != 0;
    const int64_t held = read.number();
    Tensor h_BTD = read.tensor();
    Gradients gradients{.are_taken = at::GradMode::is_enabled(), .anchor = torch::zeros({}).requires_grad_(true)};
    const HookSet hooks = read_hooks(read, gradients);
    const std::unique_ptr<OwnSequence> own =
        held == kNoNumber ? read_sequence(read, model().placement()) : std::unique_ptr<OwnSequence>();
    const OwnSequence& sequence = own ? *own : *held_.at(held);
    KeyValues record;
    SequenceInfo info = sequence.info;
    if (records) info.record = &record;
    h_BTD = h_BTD.to(model().placement().device_of(sequence.layers.begin));
    if (of_input) gradients.source = h_BTD.requires_grad_(true);
    const Tensor output = model().run_layers(h_BTD, info, sequence.layers, hooks);
    RankMessage message{.kind = kind_of(LayerAnswer::kDone)};
    const bool is_kept = output.defined() && output.requires_grad();
    message.numbers = {is_kept ? next_ : kNoNumber};
    if (is_kept) runs_[next_++] = {gradients, output};
    message.tensors = {output};
    if (records) add_recorded(record, sequence.layers, message);
    return message;
  }

  RankMessage backward(MessageReader& read) {
    const auto at = runs_.find(read.number());
    if (at == runs_.end()) throw std::logic_error("rank 0 asks for the gradient of a run that is over");
    const KeptRun run = std::move(at->second);
    runs_.erase(at);
    const Tensor gradient = read.tensor().to(run.output.device());
    return {.tensors = {torch::autograd::grad({run.output}, {run.gradients.source, run.gradients.anchor}, {gradient},
                                              /*retain_graph=*/std::nullopt, /*create_graph=*/false,
                                              /*allow_unused=*/true)[0]}};
  }

  Communicator& ranks_;
  const LayerService& service_;
  std::optional<CausalLM> model_;
  int64_t next_ = 0;
  std::map<int64_t, std::unique_ptr<OwnSequence>> held_;
  std::map<int64_t, KeptRun> runs_;
};

}  // namespace

int64_t serve_layers(Communicator& ranks, const LayerService& service) { return LayerServer(ranks, service).serve(); }

void end_service(RankLinks& links, int64_t code) {
  links.end({.kind = kind_of(LayerRequest::kEnd), .numbers = {code}});
}

}  // namespace lancet
