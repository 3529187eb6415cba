"""Decides how a model of any family is watched and changed: transformers computes, in float64 throughout or in float32, and
paths name the places.

Where things lie is data (`FAMILIES`); nothing is shared with the engine. Every weight is [d_out, d_in] here, whatever its file says.

Rules that differ from Llama's:
* A norm behind the MLP (Gemma 2 and 3, OLMo 2): the block's output is not linear in the down projection. Values are found, and residuals
  measured, at the down projection's own output; residuals are spread over the layers as MEMIT spreads them, and at each
  edited layer the last layer's down projection is measured again, with what is edited so far.
* A block that adds a multiple of its MLP's output (Granite): residuals are of the block's output, and the down projection
  gets what has to be added to its own, which is more.
* Parallel blocks (GPT-J, NeoX, Cohere): no rule changes, keys depend on less.
* Conv1D (GPT-2) stores [d_in, d_out]: so does the change of such a weight.
* Experts (Qwen3-MoE): a layer's output is the sum of W_e (g_e k_e) over the experts e of a token, with router weights g_e. The
  key of a layer is all g_e k_e, one behind the other, zeros where a token does not reach e; its second moment is kept for each
  expert alone, over all tokens, and counts no products across experts. Values are found at the block's output. An MLP that
  all tokens go through beside (Qwen2-MoE) is a part of the layer's output that no method edits.
* Layers without attention (Qwen3.5, Bamba, Jamba): what the mixer puts out takes the place of attention's output.
* Layers of one part (Nemotron-H): those without an MLP are run, and have no place that a method names.
"""
import contextlib
import json
import sys
from pathlib import Path

import torch
from bench import Bench, Editable, padded, untouched

sys.path.insert(0, str(Path(__file__).parents[1]))
from double_precision import double_precision, load_double  # noqa: E402

LLAMA = dict(layers="model.layers", norm="model.norm", attn="self_attn.o_proj", mlp="mlp")
LLAMA |= dict(gate="mlp.gate_proj", up="mlp.up_proj", down="mlp.down_proj")
GPT = dict(layers="transformer.h", norm="transformer.ln_f", mlp="mlp")
FEED_FORWARD = dict(layers="model.layers", norm="model.final_layernorm", mlp="feed_forward")
FEED_FORWARD |= {kind: f"feed_forward.{kind}_proj" for kind in ("gate", "up", "down")}
NEOX = dict(layers="gpt_neox.layers", norm="gpt_neox.final_layer_norm", attn="attention.dense", mlp="mlp")
NEOX |= dict(up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h")
FAMILIES = {  # by model type: paths of modules, those below `layers` within a layer
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "phi3": {place: path for place, path in LLAMA.items() if place not in ("gate", "up")},  # fused
    "gemma": LLAMA,
    "gemma2": LLAMA | dict(linear_place="mlp"),
    "gemma3_text": LLAMA | dict(linear_place="mlp"),
    "olmo2": LLAMA | dict(linear_place="mlp"),
    "granite": LLAMA | dict(block_scale=lambda config: config.residual_multiplier, logits_scale=lambda config: 1 / config.logits_scaling),
    "cohere": LLAMA | dict(logits_scale=lambda config: config.logit_scale),
    "gpt2": GPT | dict(attn="attn.c_proj", up="mlp.c_fc", down="mlp.c_proj"),
    "bloom": GPT | dict(attn="self_attention.dense", up="mlp.dense_h_to_4h", down="mlp.dense_4h_to_h"),
    "gptj": GPT | dict(attn="attn.out_proj", up="mlp.fc_in", down="mlp.fc_out"),
    "gpt_neox": NEOX,
    "qwen3_moe": LLAMA | dict(experts="mlp.experts", keys="mlp.experts.keys"),
    "qwen2_moe": LLAMA | dict(experts="mlp.experts", keys="mlp.experts.keys"),
    "gpt_oss": LLAMA | dict(experts="mlp.experts", keys="mlp.experts.keys"),
    "deepseek_v3": LLAMA | dict(experts="mlp.experts", keys="mlp.experts.keys"),
    "qwen3_5_text": LLAMA | dict(mixer="linear_attn.out_proj"),
    "bamba": FEED_FORWARD | dict(attn="self_attn.o_proj", mixer="mamba.out_proj"),
    "jamba": FEED_FORWARD | dict(attn="self_attn.o_proj", mixer="mamba.out_proj"),
    "falcon_h1": FEED_FORWARD
    | dict(block_scale=lambda config: config.mlp_multipliers[1], logits_scale=lambda config: config.lm_head_multiplier),
    "nemotron_h": dict(layers="model.layers", norm="model.norm_f", mlp="mixer", up="mixer.up_proj", down="mixer.down_proj")
    | dict(experts="mixer.experts", keys="mixer.experts.keys"),
}


class Expert(torch.nn.Module):
    """One expert with the names that files have of experts in tensors of their own."""

    def __init__(self, gate_up, down):
        super().__init__()
        for name, weight in zip(("gate_proj", "up_proj"), gate_up.chunk(2)):
            self.add_module(name, linear(weight))
        self.down_proj, self.offset = linear(down), 0

    def key(self, x):
        return torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x)


class CutExpert(Expert):
    """gpt-oss's: matrices [d_in, d_out], gates and ups in turn, both cut, all with biases."""

    def __init__(self, fused, number):
        turns = fused.gate_up_proj[number].T
        super().__init__(torch.cat([turns[::2], turns[1::2]]), fused.down_proj[number].T)
        self.biases, self.offset = fused.gate_up_proj_bias[number].detach(), fused.down_proj_bias[number].detach()
        self.slope, self.limit = fused.alpha, fused.limit

    def key(self, x):
        gate = (self.gate_proj(x) + self.biases[::2]).clamp(max=self.limit)
        up = (self.up_proj(x) + self.biases[1::2]).clamp(-self.limit, self.limit)
        return gate / (1 + torch.exp(-self.slope * gate)) * (1 + up)


class UngatedExpert(Expert):
    """Nemotron-H's: a squared ReLU, and no gate."""

    def __init__(self, up, down):
        torch.nn.Module.__init__(self)
        self.up_proj, self.down_proj, self.offset = linear(up), linear(down), 0

    def key(self, x):
        return torch.nn.functional.relu(self.up_proj(x)).square()


def linear(weight):
    module = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    module.weight = torch.nn.Parameter(weight.detach().clone(), requires_grad=False)
    return module


def experts_of(fused):
    if hasattr(fused, "gate_up_proj_bias"):
        return [CutExpert(fused, number) for number in range(len(fused.gate_up_proj))]
    if not hasattr(fused, "gate_up_proj"):
        return [UngatedExpert(*weights) for weights in zip(fused.up_proj, fused.down_proj)]
    return [Expert(*weights) for weights in zip(fused.gate_up_proj, fused.down_proj)]


class PlainExperts(torch.nn.ModuleList):
    """Every expert computes every token; what a token is not routed to has the weight 0."""

    def __init__(self, fused):
        super().__init__(experts_of(fused))
        self.keys = torch.nn.Identity()  # a place to watch: the keys of all experts, one behind the other

    def forward(self, x, chosen, weights):
        experts = [self[e] for e in range(len(self) - 1)]
        share = torch.zeros(len(x), len(experts), dtype=x.dtype).scatter(1, chosen, weights)
        keys = torch.cat([share[:, [e]] * expert.key(x) for e, expert in enumerate(experts)], 1)
        parts = self.keys(keys).chunk(len(experts), 1)
        return sum(expert.down_proj(part) + share[:, [e]] * expert.offset for e, (expert, part) in enumerate(zip(experts, parts)))


def mlp_of(layer):
    """The MLP or the experts of a layer; Nemotron-H has other parts under the same name."""
    part = getattr(layer, "mlp", getattr(layer, "mixer", None))
    return part if any(hasattr(part, name) for name in ("experts", "down_proj")) else None


def experts_in(layer):
    return getattr(mlp_of(layer), "experts", None)


def output(value):
    return value[0] if isinstance(value, tuple) else value


def load(folder, dtype):
    if dtype == torch.float64:
        return load_double(folder)
    from transformers import AutoModelForCausalLM

    plain = dict(attn_implementation="eager", experts_implementation="eager")
    return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, **plain).eval()


class Stop(Exception):
    pass


class Net:
    """A transformers model whose places call `touch`."""

    def __init__(self, folder, dtype=torch.float64):
        self.module, self.dtype = load(folder, dtype).requires_grad_(False), dtype
        self.paths = FAMILIES[self.module.config.model_type]
        self.layers = self.module.get_submodule(self.paths["layers"])
        self.touch, self.others = None, {}
        for number, layer in enumerate(self.layers):
            if experts_in(layer) is not None:
                mlp_of(layer).experts = PlainExperts(experts_in(layer))
            if self.paths["mlp"] != "mixer" or mlp_of(layer) is not None:
                self.watch(layer, number)

    def watch(self, layer, number):
        def behind(path, place):
            layer.get_submodule(path).register_forward_hook(lambda _, __, out: self.pass_on(place, number, out))

        def before(path, place):
            layer.get_submodule(path).register_forward_pre_hook(lambda _, args: (self.pass_on(place, number, args[0]), *args[1:]))

        if "attn" in self.paths:
            has_attention = hasattr(layer, self.paths["attn"].split(".")[0])
            behind(self.paths["attn" if has_attention else "mixer"], "attn")
        before(self.paths["mlp"], "mlp_in")
        if experts_in(layer) is not None:
            behind(self.paths["keys"], "key")
            return behind(self.paths["mlp"], "mlp")
        for kind in ("gate", "up"):
            if kind in self.paths:
                behind(self.paths[kind], kind)
        before(self.paths["down"], "key")
        behind(self.paths["down"], "mlp")

    def pass_on(self, place, layer, value):
        """Rows and tokens are two axes, also where an expert sees one."""
        if self.touch is None:
            return value
        if isinstance(value, tuple):  # the router's scores beside
            return (self.pass_on(place, layer, value[0]), *value[1:])
        rows = value.view(*self.shape, -1)
        return self.touch(place, layer, rows).view(value.shape)

    def scale_of(self, what):
        return self.paths.get(what + "_scale", lambda _: 1.0)(self.module.config)

    def precision(self):
        return double_precision() if self.dtype == torch.float64 else contextlib.nullcontext()

    def arguments(self, shape):
        """By layer, all that its forward takes beside the hidden states: masks and positions of rows of one length."""
        if shape not in self.others:
            found, hooks = [], []
            for layer in self.layers:
                hooks.append(layer.register_forward_pre_hook(lambda _, a, k: found.append((a[1:], k)), with_kwargs=True))
            self.module.base_model(torch.zeros(shape, dtype=torch.int64), use_cache=False)
            for hook in hooks:
                hook.remove()
            self.others[shape] = found
        return self.others[shape]

    def embed(self, ids):
        """What the first layer is given."""
        seen = []

        def stop(_, args):
            seen.append(args[0])
            raise Stop

        hook = self.layers[0].register_forward_pre_hook(stop)
        try:
            self.module.base_model(ids, use_cache=False)
        except Stop:
            return seen[0]
        finally:
            hook.remove()


class FamilyModel(Editable):
    """A Net with weights of its own."""

    def __init__(self, net, keep=None):
        self.net, self.keep, self.dtype, self.layers = net, keep, net.dtype, len(net.layers)
        self.linear_place, self.block_scale = net.paths.get("linear_place", "block"), net.scale_of("block")
        self.embedding = self
        conv1d = {name for name, module in net.module.named_modules() if type(module).__name__ == "Conv1D"}
        self.transposed = {name + ".weight" for name in conv1d}
        self.weights = {name: self.stored(name, tensor) for name, tensor in net.module.named_parameters()}

    def __getitem__(self, ids):
        with self.net.precision():
            return self.net.embed(ids)

    def stored(self, name, tensor):
        """From [d_out, d_in] to what the file has, and back."""
        return tensor.T if name in self.transposed else tensor

    def weight_name(self, kind, layer):
        return f"{self.net.paths['layers']}.{layer}.{self.net.paths[kind]}.weight"

    def names_of(self, kind, layer):
        if experts_in(self.net.layers[layer]) is None:
            return super().names_of(kind, layer)
        stem, experts = f"{self.net.paths['layers']}.{layer}.{self.net.paths['experts']}", len(experts_in(self.net.layers[layer])) - 1
        return [f"{stem}.{e}.{kind}_proj.weight" for e in range(experts)]

    def run_with(self, h, layers, touch):
        net, shape = self.net, tuple(h.shape[:2])
        with net.precision():
            for number in layers:
                stem = f"{net.paths['layers']}.{number}."
                mine = {name: self.stored(name, weight) for name, weight in self.weights.items() if name.startswith(stem)}
                mine = {name.removeprefix(stem): weight for name, weight in mine.items()}
                args, kwargs = net.arguments(shape)[number]
                net.touch, net.shape = touch, shape
                h = output(torch.func.functional_call(net.layers[number], mine, (h, *args), kwargs))
                net.touch = None
                h = touch("block", number, h)
        return h

    def run_layers(self, h, layers):
        return self.run_with(h, layers, untouched)

    def logits(self, h):
        with self.net.precision():
            module, cap = self.net.module, getattr(self.net.module.config, "final_logit_softcapping", None)
            logits = module.get_output_embeddings()(module.get_submodule(self.net.paths["norm"])(h)) * self.net.scale_of("logits")
            return logits if cap is None else cap * torch.tanh(logits / cap)


class FamilyBench(Bench):
    def __init__(self, folder, dtype=torch.float64):
        super().__init__(folder, dtype)
        self.net, self.name = Net(folder, dtype), folder.name

    def fresh(self, section):
        return FamilyModel(self.net, section.get("rect", {}).get("keep"))

    @torch.no_grad()
    def read_statistics(self, lines, layers, rows_per_batch=64):
        """Second moments of keys; of experts, a block for each on the diagonal."""
        model, rows = self.fresh({}), sorted((self.tokenizer.ids(line) for line in lines), key=len)
        self.covariances, self.tokens, self.layers = {}, 0, layers
        for start in range(0, len(rows), rows_per_batch):
            batch = rows[start : start + rows_per_batch]
            real = padded([[1] * len(row) for row in batch]).bool()
            self.tokens += int(real.sum())

            def touch(place, layer, value):
                if place == "key" and layer in layers:
                    flat = value[real].double()
                    self.covariances[layer] = self.covariances.get(layer, 0) + flat.T @ flat
                return value

            model.run_with(model.embedding[padded(batch)], range(max(layers) + 1), touch)
        for layer in layers:
            moment = self.covariances[layer] / self.tokens
            size = len(moment) // self.experts(layer)
            self.covariances[layer] = torch.block_diag(*(moment[i : i + size, i : i + size] for i in range(0, len(moment), size)))

    def experts(self, layer):
        experts = experts_in(self.net.layers[layer])
        return 1 if experts is None else len(experts) - 1


def bench_of(folder, dtype):
    """A Llama's forward is written out; the others' is transformers'."""
    if json.loads((Path(folder) / "config.json").read_text("utf-8"))["model_type"] == "llama":
        return Bench(folder, dtype)
    return FamilyBench(folder, dtype)
