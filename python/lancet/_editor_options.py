"""Options of an editor (docs/options.md). Made by tools/python_options.py of their declarations: not to be edited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, Union


class EditorOptions(TypedDict, total=False):
    """What `lancet.open`, `Session.edit` and `lancet.edit` take besides their own keywords. None: not given."""

    preset: Union[str, float, bool, None]
    layers: Union[Literal['auto'], Sequence[int], None]
    values: Union[Mapping[str, Any], None]
    contexts: Union[Sequence[str], Mapping[str, Any], None]
    entities: Union[Mapping[str, Any], None]
    covariance_weight: Union[float, None]
    identity_weight: Union[float, None]
    history: Union[bool, None]
    slack: Union[float, None]
    null_space_below: Union[Literal['auto'], float, Mapping[str, Any], None]
    ridge: Union[float, None]
    refresh: Union[int, None]
    passes: Union[int, None]
    residual_above: Union[Literal['auto'], float, None]
    residual_below: Union[Literal['auto'], float, None]
    neurons: Union[float, None]
    covariance: Union[bool, None]
    keys: Union[Literal['prefix', 'prompt', 'original'], None]
    blue: Union[bool, None]
    equal_keys: Union[Literal['warn', 'mean', 'split'], None]
    compat: Union[Literal['none', 'memit', 'easyedit'], None]
    norm_anchor: Union[Mapping[str, Any], None]
    targets: Union[Literal['last', 'replay'], None]
    error_feedback: Union[bool, None]
    text_budget: Union[float, None]
    modules: Union[Literal['auto'], Mapping[str, Any], None]
    lr: Union[float, None]
    batch: Union[int, None]
    tokens: Union[Literal['answer', 'all'], None]
    warm_up: Union[int, None]
    steps: Union[int, None]
    weight_decay: Union[float, None]
    stop_loss: Union[float, None]
    norm_constraint: Union[float, None]
    order: Union[Literal['given', 'breadth-first'], None]
    revisit: Union[int, None]
    margin: Union[float, None]
    whiten: Union[float, None]
    energy: Union[float, None]
    projected: Union[Literal['gradients', 'steps'], None]
    neighbours: Union[int, None]
    neighbour_weight: Union[float, None]
    target_end: Union[Literal['none', 'eos', 'auto'], None]
    rect: Union[Mapping[str, Any], None]
    revive: Union[Mapping[str, Any], None]
    prune: Union[Mapping[str, Any], None]
    repair: Union[Mapping[str, Any], None]
