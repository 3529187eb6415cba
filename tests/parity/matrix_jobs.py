"""Jobs on quantised matrices that are gathered before they are run, the files that such jobs read, and equality to the bit."""
import json

import pytest
import torch
from engine import ROOT, answer_jobs
from safetensors.torch import save_file

QUANTISED_FIXTURES = ROOT / "tests" / "fixtures" / "quantised"


class Jobs:
    """Jobs for one run of a program, each with a folder of its own."""

    def __init__(self, program, root):
        self.program, self.root, self.jobs, self.answers = program, root, {}, {}

    def new_folder(self):
        folder = self.root / f"{len(self.jobs)}"
        folder.mkdir()
        return folder

    def run(self):
        self.answers = answer_jobs(self.program, self.jobs, self.root)
        return self

    def answer(self, key):
        answer = self.answers[key]
        assert "error" not in answer, answer
        return answer

    def refusal(self, key, exit_code=3):
        answer = self.answers[key]
        assert answer.get("exit_code") == exit_code, answer
        return answer["error"]


def write_quantised(folder, config, tensors):
    """A checkpoint of these tensors, as far as readers of quantised matrices look at one."""
    (folder / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "quantization_config": config}))
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", metadata={"format": "pt"})


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8)


def assert_same_bits(ours, theirs, what):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (what, ours.shape, theirs.shape, ours.dtype, theirs.dtype)
    if not torch.equal(bits(ours), bits(theirs)):
        differ, most = (bits(ours) != bits(theirs)).sum(), (ours.double() - theirs.double()).abs().max()
        pytest.fail(f"{what}: {differ} of {bits(ours).numel()} bytes differ, numbers by at most {most:.3g}")
