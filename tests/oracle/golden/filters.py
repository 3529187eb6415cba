"""RECT and PRUNE: what is left of a change."""
import math

import torch


def rect(weight, delta, keep):
    """The share `keep` of the entries that are largest in relation to the weight's."""
    ratio = (delta / (weight + 1e-8)).abs()
    order = ratio.flatten().argsort(descending=True)
    mask = torch.zeros_like(ratio).flatten()
    mask[order[: int(keep * len(order))]] = 1
    return delta * mask.view_as(ratio)


def prune(weight, change, log_base):
    """A weight's whole change, whose singular values above the weight's largest one are drawn towards it."""
    left, s, right = torch.linalg.svd(change, full_matrices=False)
    most = torch.linalg.matrix_norm(weight, 2)
    s = torch.where(s > most, (s.log() - most.log()) / math.log(log_base) + most, s)
    return (left * s) @ right
