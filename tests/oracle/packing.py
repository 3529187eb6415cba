"""Matrices in full precision to files of quantised formats, in plain Python: every number's scale is named, scales are found of their numbers,
and numbers are rounded one by one or, as GPTQ does (arXiv 2210.17323, algorithm 1), column by column with the inverse of H, and then again
by coordinate descent (QuantEase, arXiv 2309.01885).
"""
import functools
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from quantised import FLOAT8, FP4, MODULE, NAME, NF4, awq, bitsandbytes_4, bitsandbytes_8, compressed, fp8, pack, pack_awq

F32 = torch.float32
INT8_FACTOR = torch.tensor(7.874015718698502e-3)


@dataclass
class Format:
    """`ids`: of each number [out, in] which scale it has, 0 ... n - 1."""

    kind: str  # "whole", "table", "float8"
    ids: torch.Tensor
    by_columns: bool = True  # groups are of neighbouring columns
    bits: int = 8
    free_zeros: bool = False
    least_zero: int = 0
    type: torch.dtype = F32  # that readers compute in
    scale_type: torch.dtype = F32
    table: list = None
    factor: bool = False  # bitsandbytes' int8
    powers_of_two: bool = False
    nested: dict = field(default_factory=dict)  # "table", "offset", and "own": of each scale its own scale

    @property
    def n(self):
        return int(self.ids.max()) + 1


def of_groups(rows, g_idx, groups):
    """Ids of scales that are stored as [groups, rows]."""
    return g_idx[None, :].long() * rows + torch.arange(rows)[:, None]


def rounded_to(format, scales):
    """Scales as readers get them; of nested ones also the places."""
    if format.powers_of_two:
        return torch.tensor([2.0 ** math.ceil(math.log2(scale)) if scale > 0 else 1.0 for scale in scales.double()]), None
    if not format.nested:
        read = scales.to(format.scale_type).float()
        if format.kind == "whole" and not format.factor:
            tiny = 2.0**-24 if format.scale_type == torch.float16 else 2.0**-126
            read[read == 0] = tiny
        return read, None
    own, table = format.nested["own"], format.nested["table"]
    places = nearest(table, (scales - format.nested["offset"]) / own.clamp(min=1e-38))
    return table[places] * own + format.nested["offset"], places


def nearest(table, values):
    """Of each value the place of the number of a table in order that is nearest; of two the lower. `table` f32: halves of sums of f32."""
    return torch.searchsorted((table[:-1] + table[1:]) * torch.tensor(0.5), values)


@functools.cache
def codes_and_borders(table):
    """Codes in the order of their numbers, of two for one number the first; and what lies halfway between these numbers."""
    order = sorted(range(16), key=lambda code: (table[code], code))
    order = [code for i, code in enumerate(order) if i == 0 or table[code] != table[order[i - 1]]]
    numbers = torch.tensor([table[code] for code in order])
    return torch.tensor(order), torch.tensor([(np.float32(a) + np.float32(b)) / np.float32(2) for a, b in zip(numbers, numbers[1:])])


def scale_of(format, least, most, part=1.0):
    """Of extremes with 0 within, f32: scales and zero points."""
    part = torch.tensor(part)
    if format.free_zeros:
        scales, places = rounded_to(format, (most - least) * part / (2**format.bits - 1))
        zeros = ((least * -part) / scales).round().clamp(format.least_zero, 2**format.bits - 1)
        return scales, zeros, places
    reach = {"whole": (2**format.bits - 1) / 2, "table": 1.0, "float8": 448.0}[format.kind] if not format.factor else 1.0
    scales, places = rounded_to(format, torch.maximum(most, -least) * part / reach)
    return scales, torch.full_like(scales, 2 ** (format.bits - 1)), places


def codes_and_values(format, numbers, scales, zeros):
    """Codes of numbers, and what readers make of them: all f32, elementwise."""
    if format.kind == "table":
        order, borders = codes_and_borders(tuple(format.table))
        divisors = torch.where(scales.abs() < 1e-38, torch.tensor(1e-38), scales)
        scaled = (numbers * (1 / divisors)).clamp(-1, 1)
        codes = order[torch.searchsorted(borders, scaled)]  # of two that are as near the lower
        return codes, torch.tensor(format.table)[codes] * scales
    if format.kind == "float8":
        scaled = (numbers / torch.where(scales == 0, torch.tensor(1.0), scales)).clamp(-448, 448)
        positive, codes = FLOAT8[:127], torch.zeros_like(numbers, dtype=torch.long)
        borders = (positive[:-1] + positive[1:]) / 2  # exact in f32
        below = torch.searchsorted(borders, scaled.abs())  # how many borders are below
        at_border = torch.searchsorted(borders, scaled.abs(), right=True) > below
        codes = below + (at_border & (below % 2 == 1)).long()  # ties go to the even mantissa
        codes = codes + 128 * torch.signbit(scaled).long()
        return codes, (FLOAT8[codes].to(format.type) * scales.to(format.type)).float()
    divisors = torch.where(scales == 0, torch.tensor(1.0), scales)
    if format.factor:
        codes = ((numbers * (1 / divisors * 127)).round() + 128).clamp(1, 255)
        return codes.long(), (codes - 128) * scales * INT8_FACTOR
    codes = ((numbers / divisors).round() + zeros).clamp(0, 2**format.bits - 1)
    return codes.long(), ((codes - zeros).to(format.type) * scales.to(format.type)).float()


def find(format, numbers, ids, importance, search):
    """Scales, zero points and places of all scales that occur in `ids` [k]: numbers [k] and their ids, importance [k]."""
    flat, places_of = ids.flatten(), ids.flatten()
    least, most = torch.zeros(format.n), torch.zeros(format.n)
    least.scatter_reduce_(0, flat, numbers.flatten(), "amin")
    most.scatter_reduce_(0, flat, numbers.flatten(), "amax")
    best = scale_of(format, least, most)
    if not search:
        return best

    def error(found):
        values = codes_and_values(format, numbers, found[0][ids], found[1][ids])[1]
        return torch.zeros(format.n, dtype=torch.float64).scatter_add_(0, places_of, ((values - numbers) ** 2 * importance).double().flatten())

    least_error = error(best)
    for i in range(1, 16):
        found = scale_of(format, least, most, 1 - 0.02 * i)
        now = error(found)
        better = now < least_error
        best = tuple(None if a is None else torch.where(better, a, b) for a, b in zip(found, best))
        least_error = torch.minimum(now, least_error)
    return best


@dataclass
class Packed:
    codes: torch.Tensor  # [out, in]
    scales: torch.Tensor  # [n] f32
    zeros: torch.Tensor
    places: torch.Tensor
    values: torch.Tensor


def choose_own(format, weight):
    """bitsandbytes' scales of scales: of blocks of the list, the largest distance to the offset."""
    if not format.nested:
        return
    largest = torch.zeros(format.n).scatter_reduce_(0, format.ids.flatten(), weight.abs().flatten(), "amax")
    size, apart = format.nested["block"], (largest - format.nested["offset"]).abs()
    own = torch.stack([block.max() for block in apart.split(size)])
    format.nested["stored"] = own
    format.nested["own"] = own.repeat_interleave(size)[: format.n]


def plain(format, weight, search=False):
    choose_own(format, weight)
    scales, zeros, places = find(format, weight, format.ids, torch.ones_like(weight), search)
    codes, values = codes_and_values(format, weight, scales[format.ids], zeros[format.ids])
    return Packed(codes, scales, zeros, places, values)


def choose_again(format, weight, H, packed, sweeps=4):
    """Each column's codes beside the errors of all others, of which the best number by trace(E H E^T) is its nearest; in place."""
    for _ in range(sweeps):
        for c in range(weight.shape[1]):
            at, now = format.ids[:, c], packed.values[:, c].double()
            slope = (weight.double() - packed.values.double()) @ H[:, c]
            wanted = now + slope / H[c, c]
            codes, values = codes_and_values(format, wanted.float(), packed.scales[at], packed.zeros[at])
            nearer = (values.double() - wanted).abs() < (now - wanted).abs()
            packed.codes[:, c] = torch.where(nearer, codes, packed.codes[:, c])
            packed.values[:, c] = torch.where(nearer, values, packed.values[:, c])
    return packed


def gptq_sweep(format, weight, H, search=False, damping=0.01):
    """Column by column; also the distance of each code's number to where another code begins, for telling ties."""
    choose_own(format, weight.float())
    importance = (H.diagonal() / H.diagonal().mean()).float()[None].expand(weight.shape)
    H = H.double() + damping * H.double().diagonal().mean() * torch.eye(len(H), dtype=torch.float64)
    U = torch.linalg.cholesky(torch.linalg.inv(H), upper=True)
    w, values, codes = weight.double().clone(), torch.zeros_like(weight), torch.zeros(weight.shape, dtype=torch.long)
    scales, zeros, places = find(format, weight.float(), format.ids, importance, search)
    if format.by_columns:
        scales, zeros = torch.zeros_like(scales), torch.zeros_like(zeros)
    for c in range(weight.shape[1]):
        if format.by_columns and (c == 0 or format.ids[0, c] != format.ids[0, c - 1]):
            mine = (format.ids == format.ids[:, c : c + 1]).any(0)
            found = find(format, w[:, mine].float(), format.ids[:, mine], importance[:, mine], search)
            now = format.ids[:, c].unique()
            scales[now], zeros[now] = found[0][now], found[1][now]
            if places is not None:
                places[now] = found[2][now]
        at = format.ids[:, c]
        codes[:, c], values[:, c] = codes_and_values(format, w[:, c].float(), scales[at], zeros[at])
        error = (w[:, c] - values[:, c].double()) / U[c, c]
        w[:, c + 1 :] -= error[:, None] * U[c, c + 1 :][None]
    return choose_again(format, weight, H, Packed(codes, scales, zeros, places, values))


# ---- Formats by their variants in quantised.py, and their tensors -----------------------------------------------------------------------


def tensors_of(made, key):
    return next((value for name, value in made.tensors.items() if name == key or name.endswith("." + key)), None)


def float8_format(made):
    rows, columns = made.weight.shape
    key = next(key for key in made.tensors if "weight_scale" in key)
    scales = made.tensors[key]
    block = made.config.get("weight_block_size") or ([1, columns] if scales.numel() == rows else [rows, columns])
    r, c = torch.arange(rows) // block[0], torch.arange(columns) // block[1]
    ids = r[:, None] * -(-columns // block[1]) + c[None]
    powers_of_two = bool((torch.frexp(scales.float())[0] == 0.5).all())
    return Format("float8", ids, scale_type=scales.dtype, powers_of_two=powers_of_two), lambda p: {
        NAME: p.codes.to(torch.uint8).view(torch.float8_e4m3fn), key: p.scales.to(scales.dtype).view(scales.shape)}


def bitsandbytes_4_format(made, kind, block=64, nested=False, **_):
    rows, columns = made.weight.shape
    ids = (torch.arange(rows * columns) // block).view(rows, columns)
    format = Format("table", ids, by_columns=columns % block == 0, table=NF4 if kind == "nf4" else [x + 0.0 for x in FP4])
    if nested:
        format.nested = {"table": tensors_of(made, "nested_quant_map"), "offset": torch.tensor(0.0123), "block": 256}

    def write(p):
        flat = p.codes.flatten()
        out = {NAME: (flat[0::2] * 16 + flat[1::2]).to(torch.uint8)[:, None]}
        if nested:
            return out | {f"{NAME}.absmax": p.places.to(torch.uint8), f"{NAME}.nested_absmax": format.nested["stored"]}
        return out | {f"{NAME}.absmax": p.scales}

    return format, write


def bitsandbytes_8_format(made):
    rows, columns = made.weight.shape
    format = Format("whole", torch.arange(rows)[:, None].expand(rows, columns), factor=True)
    return format, lambda p: {NAME: (p.codes - 128).to(torch.int8), f"{MODULE}.SCB": p.scales}


def gptq_format(made):
    rows, columns = made.weight.shape
    config, scales = made.config, tensors_of(made, "scales")
    groups = len(scales)
    size = columns if config["group_size"] == -1 else config["group_size"]
    in_turn = torch.arange(columns) // size
    g_idx = tensors_of(made, "g_idx")
    g_idx = in_turn if g_idx is None else g_idx
    first = config["checkpoint_format"] == "gptq"
    format = Format("whole", of_groups(rows, g_idx, groups), torch.equal(g_idx.long(), in_turn), config["bits"], not config["sym"],
                    int(first), scales.dtype, scales.dtype)

    def write(p):
        zeros = p.zeros.view(groups, rows).long()
        out = {"qweight": pack(p.codes.T, config["bits"]), "scales": p.scales.view(groups, rows).to(scales.dtype)}
        if not config["sym"] or config["bits"] != 3:  # symmetric files of 3 bits have two ways to say 4
            out["qzeros"] = pack((zeros - int(first)).T, config["bits"]).T.contiguous()
        return {f"{MODULE}.{key}": value for key, value in out.items()}

    return format, write


def awq_format(made):
    rows, columns = made.weight.shape
    scales = tensors_of(made, "scales")
    size = columns if made.config["group_size"] == -1 else made.config["group_size"]
    format = Format("whole", of_groups(rows, torch.arange(columns) // size, len(scales)), True, 4, True, 0, scales.dtype, scales.dtype)
    return format, lambda p: {f"{MODULE}.qweight": pack_awq(p.codes.T), f"{MODULE}.scales": p.scales.view(scales.shape).to(scales.dtype),
                              f"{MODULE}.qzeros": pack_awq(p.zeros.view(scales.shape).long())}


def compressed_format(made, bits, symmetric, group, order=None, **_):
    rows, columns = made.weight.shape
    scales = tensors_of(made, "weight_scale")
    groups, g_idx = columns // group, torch.arange(columns) // group
    if order == "mixed":
        g_idx = tensors_of(made, "weight_g_idx")
    ids = torch.arange(rows)[:, None] * groups + g_idx[None].long()
    format = Format("whole", ids, order != "mixed", bits, not symmetric, 0, scales.dtype, scales.dtype)

    def write(p):
        out = {"weight_packed": pack(p.codes.T, bits).T.contiguous(), "weight_scale": p.scales.view(rows, groups).to(scales.dtype)}
        if not symmetric:
            out["weight_zero_point"] = pack(p.zeros.view(rows, groups).long(), bits)
        return {f"{MODULE}.{key}": value for key, value in out.items()}

    return format, write


def format_of(made, function, options):
    """A variant's Format, and what makes its tensors of a Packed; those that it leaves out stay."""
    makers = {awq: awq_format, fp8: float8_format, bitsandbytes_8: bitsandbytes_8_format}
    if function is bitsandbytes_4:
        return bitsandbytes_4_format(made, **options)
    if function is compressed:
        return compressed_format(made, **options)
    return makers.get(function, gptq_format)(made)
