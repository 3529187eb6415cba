#include "emulated_graphs.h"

#include <ATen/record_function.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <torch/types.h>

#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>

#include "lancet/core/strings.h"

namespace lancet::testing {

using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;

/// What a run of a step's function did.
struct StepTrace {
  std::vector<std::string> operations;  ///< name, and arguments: tensors by where they come from, numbers as they are
  std::vector<WeakStorage> taken;       ///< memory that it did not make, in the order in which it took it
  std::vector<std::string> problems;
};

namespace {

/// Nested calls are the operation's own business.
thread_local int depth = 0;

/// Notes what a function does on this thread, and on those on which autograd goes on with it.
class Recorder {
 public:
  Recorder() {
    if (active.exchange(this) != nullptr) throw std::logic_error("two captures at the same time");
    depth = 0;
    handle_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&begin_call, &end_call)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
  }
  ~Recorder() {
    at::removeCallback(handle_);
    active = nullptr;
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  StepTrace trace() { return std::move(trace_); }

 private:
  struct Call : at::ObserverContext {
    bool has_device = false;  ///< an argument lies on an accelerator
    bool has_host = false;
  };

  static std::unique_ptr<at::ObserverContext> begin_call(const at::RecordFunction& function) {
    auto call = std::make_unique<Call>();
    Recorder* recorder = active;
    if (recorder != nullptr) recorder->begin(function, *call);
    ++depth;
    return call;
  }

  static void end_call(const at::RecordFunction& function, at::ObserverContext* context) {
    --depth;
    Recorder* recorder = active;
    if (recorder != nullptr && depth == 0) recorder->end(function, static_cast<Call&>(*context));
  }

  void begin(const at::RecordFunction& function, Call& call) {
    const std::string name = function.name();
    if (name == "aten::_local_scalar_dense" || (depth == 0 && name == "aten::item")) {
      const at::Tensor& x = function.inputs()[0].toTensor();
      if (!x.is_cpu() || depth == 0) trace_.problems.push_back(name + " reads a number on the host");
    }
    if (depth > 0) return;
    std::ostringstream text;
    text << name << "(";
    const auto schema = function.operator_schema();
    size_t place = 0;
    for (const c10::IValue& input : function.inputs()) {
      const bool is_written = schema && place < schema->arguments().size() &&
                              schema->arguments()[place].alias_info() != nullptr &&
                              schema->arguments()[place].alias_info()->isWrite();
      add(input, name, is_written, call, text);
      ++place;
    }
    if (call.has_device && call.has_host) trace_.problems.push_back(name + " takes tensors of the host to a device");
    trace_.operations.push_back(text.str());
  }

  void end(const at::RecordFunction& function, const Call& call) {
    for (const c10::IValue& output : function.outputs())
      visit(output, [&](const at::Tensor& x) { made(x, function, call); });
  }

  void made(const at::Tensor& x, const at::RecordFunction& function, const Call& call) {
    if (!x.defined() || !x.has_storage()) return;
    if (x.is_cpu() && call.has_device) trace_.problems.push_back(cat(function.name(), " brings a tensor to the host"));
    if (!x.is_cpu() && call.has_host && !call.has_device)
      trace_.problems.push_back(cat(function.name(), " sends a tensor to a device"));
    c10::StorageImpl* const storage = x.storage().unsafeGetStorageImpl();
    if (!taken_.contains(storage) && made_.try_emplace(storage, made_.size()).second)
      held_.push_back(x.storage().getWeakStorageImpl());
  }

  template <typename F>
  static void visit(const c10::IValue& value, const F& f) {
    if (value.isTensor()) f(value.toTensor());
    if (value.isTensorList())
      for (const at::Tensor& x : value.toTensorVector()) f(x);
    if (value.isOptionalTensorList())
      for (const std::optional<at::Tensor>& x : value.toOptionalTensorVector())
        if (x) f(*x);
  }

  void add(const c10::IValue& value, const std::string& name, bool is_written, Call& call, std::ostream& text) {
    if (value.isTensor() || value.isTensorList() || value.isOptionalTensorList())
      visit(value, [&](const at::Tensor& x) { add_tensor(x, name, is_written, call, text); });
    else if (!value.isGenerator() && !value.isStorage())
      text << value;
    text << ", ";
  }

  void add_tensor(const at::Tensor& x, const std::string& name, bool is_written, Call& call, std::ostream& text) {
    if (!x.defined() || !x.has_storage()) {
      text << "none ";
      return;
    }
    if (x.is_cpu() && x.dim() == 0 && x.unsafeGetTensorImpl()->is_wrapped_number()) {  // a kernel's argument
      text << number(x) << " ";
      return;
    }
    (x.is_cpu() ? call.has_host : call.has_device) = true;
    c10::StorageImpl* const storage = x.storage().unsafeGetStorageImpl();
    const auto own = made_.find(storage);
    if (own != made_.end()) {
      text << "made " << own->second;
    } else {
      const auto [at, is_new] = taken_.try_emplace(storage, taken_.size());
      if (is_new) trace_.taken.push_back(x.storage().getWeakStorageImpl());
      text << "taken " << at->second;
      if (is_written) trace_.problems.push_back(name + " writes to memory that the function did not make");
    }
    text << "+" << x.storage_offset() << " " << x.sizes() << x.strides() << x.scalar_type() << " ";
  }

  /// Reads the number without an operation.
  static std::string number(const at::Tensor& x) {
    const void* at = x.const_data_ptr();
    std::ostringstream text;
    text.precision(std::numeric_limits<double>::max_digits10);
    if (x.scalar_type() == at::kDouble)
      text << *static_cast<const double*>(at);
    else if (x.scalar_type() == at::kLong)
      text << *static_cast<const int64_t*>(at);
    else if (x.scalar_type() == at::kBool)
      text << *static_cast<const bool*>(at);
    else
      throw std::logic_error("a number of an unexpected type");
    return text.str();
  }

  static std::atomic<Recorder*> active;

  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
  StepTrace trace_;
  std::map<c10::StorageImpl*, size_t> made_, taken_;
  std::vector<WeakStorage> held_;  // so that no address comes twice
};

std::atomic<Recorder*> Recorder::active{nullptr};

std::vector<Tensor> run_recorded(const StepFunction& function, StepTrace& trace) {
  Recorder recorder;
  std::vector<Tensor> outputs = function();
  trace = recorder.trace();
  if (!trace.problems.empty()) throw std::logic_error("a graph cannot be: " + trace.problems.front());
  return outputs;
}

}  // namespace

class EmulatedStepGraph : public StepGraph {
 public:
  EmulatedStepGraph(EmulatedGraphs& maker, StepFunction function) : maker_(maker), function_(std::move(function)) {
    for (const Tensor& output : run_recorded(function_, captured_)) {
      if (output.requires_grad()) throw std::logic_error("an output of a graph requires a gradient");
      outputs_.push_back(torch::full_like(output, std::numeric_limits<double>::quiet_NaN()));
    }
    if (maker_.failing_ > 0) {
      --maker_.failing_;
      TORCH_CHECK_WITH(OutOfMemoryError, false, "emulated graphs: out of memory");
    }
    ++maker_.captures_;
    ++maker_.live_;
  }
  ~EmulatedStepGraph() override { --maker_.live_; }
  EmulatedStepGraph(const EmulatedStepGraph&) = delete;
  EmulatedStepGraph& operator=(const EmulatedStepGraph&) = delete;

  void replay() override {
    for (const WeakStorage& storage : captured_.taken)
      if (storage.expired()) throw std::logic_error("a graph would take memory that is gone");
    StepTrace now;
    const std::vector<Tensor> outputs = run_recorded(function_, now);
    compare(now);
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].copy_(outputs.at(i));
    ++maker_.replays_;
  }

  const std::vector<Tensor>& outputs() const override { return outputs_; }

 private:
  void compare(const StepTrace& now) const {
    for (size_t i = 0; i < std::max(now.taken.size(), captured_.taken.size()); ++i)
      if (i >= now.taken.size() || i >= captured_.taken.size() ||
          now.taken[i]._unsafe_get_target() != captured_.taken[i]._unsafe_get_target())
        throw std::logic_error(cat("a graph would take what was there at its capture: tensor ", i, " was replaced"));
    for (size_t i = 0; i < std::max(now.operations.size(), captured_.operations.size()); ++i) {
      const std::string then = i < captured_.operations.size() ? captured_.operations[i] : "nothing";
      const std::string today = i < now.operations.size() ? now.operations[i] : "nothing";
      if (then != today)
        throw std::logic_error(
            cat("a graph would do what was done at its capture: operation ", i, " was ", then, ", is ", today));
    }
  }

  EmulatedGraphs& maker_;
  StepFunction function_;
  StepTrace captured_;
  std::vector<Tensor> outputs_;
};

/// A stream of its own from here to the end of the scope; before and after it streams wait for each other.
class OwnStream {
 public:
  explicit OwnStream(at::Device device)
      : before_(c10::impl::getDeviceGuardImpl(device.type())->getStream(device)),
        own_(c10::impl::getDeviceGuardImpl(device.type())->getStreamFromGlobalPool(device)),
        guard_(own_) {
    wait(own_, before_);
  }
  ~OwnStream() { wait(before_, own_); }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;

  c10::Stream before() const { return before_; }

 private:
  static void wait(c10::Stream waiting, c10::Stream other) {
    c10::Event done(other.device_type());
    done.record(other);
    done.block(waiting);
  }

  c10::Stream before_, own_;
  c10::StreamGuard guard_;
};

class EmulatedStepGraphs : public StepGraphs {
 public:
  EmulatedStepGraphs(EmulatedGraphs& maker, at::Device device) : maker_(maker) {
    ++maker_.batches_;
    if (!device.is_cpu()) stream_.emplace(device);
  }
  std::unique_ptr<StepGraph> capture(const StepFunction& function) override {
    return std::make_unique<EmulatedStepGraph>(maker_, function);
  }
  void hand_over(const Tensor& tensor) override {
    ++maker_.handed_over_;
    if (!tensor.is_cpu() && !maker_.forgets_streams_) tensor.record_stream(stream_->before());
  }

 private:
  EmulatedGraphs& maker_;
  std::optional<OwnStream> stream_;
};

std::unique_ptr<StepGraphs> EmulatedGraphs::begin(at::Device device) {
  return std::make_unique<EmulatedStepGraphs>(*this, device);
}

}  // namespace lancet::testing
