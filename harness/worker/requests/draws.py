"""Whole numbers that are drawn: where their range is small evenly, else by magnitude; both ends are among them."""

import torch

EVEN = 1 << 17
"""Ranges up to this wide are drawn evenly: of wider ones, hardly any number would be small."""


def range_of(dtype):
    info = torch.iinfo(dtype)
    return info.min, info.max


def whole_numbers(sizes, dtype, span, generator):
    """Return a tensor of whole numbers from ``span[0]`` to ``span[1]``; two or more hold both ends."""
    low, high = span
    if high - low < EVEN:
        drawn = torch.randint(low, high + 1, list(sizes), generator=generator).to(dtype)
    else:
        drawn = _by_magnitude(list(sizes), low, high, generator).to(dtype)
    flat = drawn.view(-1)
    if flat.numel() > 1:
        places = torch.randperm(flat.numel(), generator=generator)[:2] if flat.numel() < EVEN else (0, 1)
        flat[int(places[0])], flat[int(places[1])] = low, high
    return drawn


def _by_magnitude(sizes, low, high, generator):
    drawn = []
    for end in (high, low):
        bits = max(0, min(62, abs(end).bit_length() - 1))  # a float64 may round up to what no int64 holds
        exponents = torch.rand(sizes, generator=generator, dtype=torch.float64) * bits
        drawn.append(torch.pow(2.0, exponents).to(torch.int64) - 1)
    if low >= 0:
        return drawn[0].clamp(min=low)
    return torch.where(torch.rand(sizes, generator=generator) < 0.5, drawn[0], -drawn[1])
