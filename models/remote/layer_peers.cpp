#include "lancet/models/layers_on_ranks.h"

#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include <optional>
#include <utility>

#include "lancet/core/error.h"
#include "lancet/core/progress.h"
#include "lancet/core/strings.h"
#include "lancet/core/version.h"
#include "layer_messages.h"

namespace lancet {
namespace {

class NumberedPass final : public HeldPass {
 public:
  NumberedPass(std::shared_ptr<LayerPeers> peers, int64_t rank, int64_t number)
      : peers_(std::move(peers)), rank_(rank), number_(number) {}
  ~NumberedPass() override { peers_->release(rank_, number_); }
  NumberedPass(const NumberedPass&) = delete;
  NumberedPass& operator=(const NumberedPass&) = delete;

  int64_t number() const { return number_; }

 private:
  std::shared_ptr<LayerPeers> peers_;
  int64_t rank_;
  int64_t number_;
};

/// A run on another rank, in autograd's graph.
struct RunElsewhere : torch::CustomClassHolder {
  RunElsewhere(std::shared_ptr<LayerPeers> of, int64_t by) : peers(std::move(of)), rank(by) {}
  ~RunElsewhere() override {
    if (number != kNoNumber) peers->release(rank, number);
  }

  /// Sends a gradient into the run. Returns the gradient of the last value that was sent, at the point where it leaves
  /// the run.
  Tensor gradient_of(const RankMessage& question) {
    count_progress();
    if (!talk) talk.emplace(peers->talk_with(rank));
    const RankMessage answer = talk->answer(question);
    if (answer.kind == kind_of(LayerAnswer::kDone)) talk.reset();
    return MessageReader(answer).tensor();
  }

  std::shared_ptr<LayerPeers> peers;
  int64_t rank;
  int64_t number = kNoNumber;           ///< number of the run there, if a gradient may be needed
  Tensor result;                        ///< result of the part that ends now, until autograd has it
  std::optional<RankLinks::Talk> talk;  ///< open while the rank waits for a gradient in the middle
};

enum class PartEnd : int64_t { kAtSite, kAtOutput };

/// The part of a run from the last value that was sent to the next value through which a gradient flows, or to the
/// output. A second value connects the parts, because the rank takes gradients part by part, in the reverse order.
struct PartOfRun : torch::autograd::Function<PartOfRun> {
  static torch::autograd::tensor_list forward(torch::autograd::AutogradContext* context, const Tensor& given,
                                              const Tensor& tie, const c10::intrusive_ptr<RunElsewhere>& run,
                                              int64_t end) {
    context->saved_data["run"] = c10::IValue::make_capsule(run);
    context->saved_data["end"] = end;
    context->saved_data["device"] = given.device();
    return {std::exchange(run->result, {}), torch::zeros_like(tie)};
  }

  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               const torch::autograd::tensor_list& grads) {
    const auto run = c10::static_intrusive_pointer_cast<RunElsewhere>(context->saved_data["run"].toCapsule());
    const bool is_last = context->saved_data["end"].toInt() == static_cast<int64_t>(PartEnd::kAtOutput);
    const Tensor given = run->gradient_of(
        is_last ? RankMessage{.kind = kind_of(LayerRequest::kBackward), .numbers = {run->number}, .tensors = {grads[0]}}
                : RankMessage{.kind = kind_of(LayerRequest::kGoOn), .tensors = {grads[0]}});
    return {given.defined() ? given.to(context->saved_data["device"].toDevice()) : given, torch::zeros({}), Tensor(),
            Tensor()};
  }
};

/// What autograd on rank 0 knows of a run: its parts so far.
class RunParts {
 public:
  RunParts(c10::intrusive_ptr<RunElsewhere> run, Tensor input)
      : run_(std::move(run)), given_(std::move(input)), takes_gradients_(at::GradMode::is_enabled()) {}

  /// Passes a value through the hooks of a site, during that run. Returns the value that continues, and whether its
  /// gradient is needed.
  std::pair<Tensor, bool> at_site(const HookSet& hooks, HookSite site, Tensor value, bool needs_gradient) {
    if (needs_gradient) value = end_part(value, PartEnd::kAtSite);
    Tensor put = hooks.apply(site, value);
    const bool asks = takes_gradients_ && put.requires_grad();
    if (asks && !needs_gradient && has_source()) end_part(torch::zeros({}), PartEnd::kAtSite);
    if (asks || needs_gradient) given_ = put;
    return {std::move(put), asks};
  }

  Tensor output(Tensor output, int64_t number) {
    if (number == kNoNumber) return output;
    run_->number = number;
    return end_part(std::move(output), PartEnd::kAtOutput);
  }

 private:
  bool has_source() const { return given_.requires_grad() || tie_.requires_grad(); }

  Tensor end_part(Tensor result, PartEnd end) {
    run_->result = std::move(result);
    const torch::autograd::tensor_list ends = PartOfRun::apply(given_, tie_, run_, static_cast<int64_t>(end));
    tie_ = ends[1];
    return ends[0];
  }

  c10::intrusive_ptr<RunElsewhere> run_;
  Tensor given_;  ///< the value that was sent last
  Tensor tie_ = torch::zeros({});
  bool takes_gradients_;
};

void add_hooks(const HookSet& hooks, LayerRange layers, std::vector<HookSite>& sites, RankMessage& message) {
  const auto is_there = [&](HookSite site) { return site.layer >= layers.begin && site.layer < layers.end; };
  for (const HookSite site : hooks.sites())
    if (is_there(site)) sites.push_back(site);
  message.numbers.push_back(std::ssize(sites));
  for (const HookSite site : sites)
    message.numbers.insert(message.numbers.end(),
                           {static_cast<int64_t>(site.point), site.layer, hooks.replaces(site) ? 1 : 0});
  const bool stops = hooks.stop() && is_there(*hooks.stop());
  message.numbers.push_back(stops ? 1 : 0);
  if (stops)
    message.numbers.insert(message.numbers.end(), {static_cast<int64_t>(hooks.stop()->point), hooks.stop()->layer});
}

RankMessage weight_message(LayerRequest request, WeightId id) {
  return {.kind = kind_of(request), .numbers = {static_cast<int64_t>(id.kind), id.layer}};
}

int64_t rank_of(const Stage& stage) { return stage.is_here() ? 0 : stage.rank; }

}  // namespace

std::vector<DeviceBudget> LayerPeers::devices(RankLinks& links) {
  std::vector<DeviceBudget> devices;
  for (const int64_t rank : links.others()) {
    const RankMessage answer = RankLinks::Talk(links, rank).answer({.kind = kind_of(LayerRequest::kDevices)});
    if (answer.texts.empty() || answer.texts.front() != kVersion)
      throw CollectiveError(cat("rank ", rank, " runs another version of lancet: expected ", kVersion));
    MessageReader numbers(answer);
    for (size_t i = 1; i < answer.texts.size(); ++i) {
      DeviceBudget& device = devices.emplace_back(DeviceBudget{Placement::named(answer.texts[i])});
      device.bytes = numbers.number();
      device.speed = static_cast<double>(numbers.number()) / 1000;
      device.rank = rank;
    }
  }
  return devices;
}

void LayerPeers::begin_load(const Checkpoint& checkpoint, const Placement& placement, const QuantiseRule& rule) {
  RankMessage message{.kind = kind_of(LayerRequest::kLoad),
                      .texts = {checkpoint.folder().string(), checkpoint.config_text()}};
  message.numbers.push_back(static_cast<int64_t>(placement.weight_dtype()));
  message.numbers.push_back(std::ssize(placement.stages()));
  for (const Stage& stage : placement.stages()) {
    message.numbers.insert(message.numbers.end(), {stage.begin, stage.end, rank_of(stage)});
    message.texts.push_back(stage.device.str());
  }
  message.numbers.push_back(rule.quantiser ? static_cast<int64_t>(*rule.quantiser) : kNoNumber);
  message.numbers.push_back(std::ssize(rule.edited));
  for (const WeightId id : rule.edited)
    message.numbers.insert(message.numbers.end(), {static_cast<int64_t>(id.kind), id.layer});
  for (const int64_t rank : links_.others()) talk_with(rank).ask(message);
}

void LayerPeers::finish_load(const Checkpoint& checkpoint, const ModelConfig& config, const Placement& placement) {
  for (const int64_t rank : links_.others()) {
    const RankMessage answer = talk_with(rank).receive();
    if (answer.texts.size() != 1 || answer.texts.front() != hash_of_layers(checkpoint, config, placement, rank))
      throw ConfigError(cat("rank ", rank, ": the weights of its layers: expected the same as on rank 0, in ",
                            checkpoint.folder().string(), ", got others. Give every rank the same model"));
  }
}

RankLinks::Talk LayerPeers::talk_with(int64_t rank) {
  RankLinks::Talk talk(links_, rank);
  RankMessage message{.kind = kind_of(LayerRequest::kRelease)};
  {
    const std::scoped_lock lock(mutex_);
    message.numbers = std::exchange(released_[rank], {});
  }
  if (!message.numbers.empty()) talk.tell(message);
  return talk;
}

void LayerPeers::release(int64_t rank, int64_t number) {
  const std::scoped_lock lock(mutex_);
  released_[rank].push_back(number);
}

std::shared_ptr<const HeldPass> LayerPeers::hold(const SequenceInfo& sequence, const PassElsewhere& pass) {
  RankMessage message{.kind = kind_of(LayerRequest::kHold)};
  add_sequence(sequence, pass.layers, pass.gives_outputs ? OutputUse::kTaken : OutputUse::kLeftOut, message);
  const RankMessage answer = talk_with(pass.rank).answer(message);
  return std::make_shared<NumberedPass>(shared_from_this(), pass.rank, MessageReader(answer).number());
}

Tensor LayerPeers::run(const Tensor& h_BTD, const SequenceInfo& sequence, const PassElsewhere& pass,
                       const HookSet& hooks, const HeldPass* held) {
  const bool takes_gradients = at::GradMode::is_enabled();
  RankMessage message{.kind = kind_of(LayerRequest::kRun)};
  message.numbers = {takes_gradients ? 1 : 0, takes_gradients && h_BTD.requires_grad() ? 1 : 0,
                     sequence.record != nullptr ? 1 : 0,
                     held != nullptr ? dynamic_cast<const NumberedPass&>(*held).number() : kNoNumber};
  message.tensors = {h_BTD};
  std::vector<HookSite> sites;
  add_hooks(hooks, pass.layers, sites, message);
  if (held == nullptr)
    add_sequence(sequence, pass.layers, pass.gives_outputs ? OutputUse::kTaken : OutputUse::kLeftOut, message);
  RunParts parts(c10::make_intrusive<RunElsewhere>(shared_from_this(), pass.rank), h_BTD);
  RankLinks::Talk talk = talk_with(pass.rank);
  RankMessage answer = talk.answer(message);
  while (answer.kind == kind_of(LayerAnswer::kSite)) {
    MessageReader at(answer);
    const HookSite site = sites.at(static_cast<size_t>(at.number()));
    const bool needs_gradient = at.number() != 0;
    const auto [value, asks] = parts.at_site(hooks, site, at.tensor().to(pass.device), needs_gradient);
    answer = talk.answer({.kind = kind_of(LayerRequest::kGoOn),
                          .numbers = {asks ? 1 : 0},
                          .tensors = {hooks.replaces(site) ? value : Tensor()}});
  }
  MessageReader read(answer);
  const int64_t number = read.number();
  Tensor output = read.tensor();
  if (sequence.record != nullptr) read_recorded(read, pass.layers, pass.device, *sequence.record);
  return output.defined() ? parts.output(output.to(pass.device), number) : output;
}

const Tensor& LayerPeers::weight(int64_t rank, WeightId id, at::Device device) {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto known = weights_.find(id); known != weights_.end()) return known->second;
  }
  const RankMessage answer = talk_with(rank).answer(weight_message(LayerRequest::kWeight, id));
  const Tensor weight = MessageReader(answer).tensor().to(device);
  const std::scoped_lock lock(mutex_);
  return weights_.try_emplace(id, weight).first->second;
}

void LayerPeers::set_weight(int64_t rank, WeightId id, Tensor value) {
  RankMessage message = weight_message(LayerRequest::kSetWeight, id);
  message.tensors = {value};
  if (RankLinks::Talk talk(links_, rank); !talk.is_over()) talk.answer(message);  // else nobody will use the result
  const std::scoped_lock lock(mutex_);
  weights_[id] = std::move(value);
}

bool LayerPeers::is_finite(int64_t rank, WeightId id) {
  const RankMessage answer = talk_with(rank).answer(weight_message(LayerRequest::kIsFinite, id));
  return MessageReader(answer).number() != 0;
}

}  // namespace lancet
