"""RECT, REVIVE and PRUNE: what is left of a change."""
import math

import torch


def rect(weight, delta, keep):
    """The share `keep` of the entries that are largest in relation to the weight's."""
    ratio = (delta / (weight + 1e-8)).abs()
    order = ratio.flatten().argsort(descending=True)
    mask = torch.zeros_like(ratio).flatten()
    mask[order[: int(keep * len(order))]] = 1
    return delta * mask.view_as(ratio)


def revive(unedited, delta, energy):
    """Without the directions that carry the share `energy` of the unedited weight's squared singular values."""
    left, s, right = torch.linalg.svd(unedited.double(), full_matrices=False)
    k = int(((s**2).cumsum(0) <= energy * (s**2).sum()).sum()) + 1
    u, v = left[:, :k], right[:k].T
    return (torch.eye(len(u), dtype=u.dtype) - u @ u.T) @ delta @ (torch.eye(len(v), dtype=v.dtype) - v @ v.T)


def prune(weight, change, log_base):
    """A weight's whole change, whose singular values above the weight's largest one are drawn towards it."""
    left, s, right = torch.linalg.svd(change, full_matrices=False)
    most = torch.linalg.matrix_norm(weight, 2)
    s = torch.where(s > most, (s.log() - most.log()) / math.log(log_base) + most, s)
    return (left * s) @ right
