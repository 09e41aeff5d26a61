"""Whether an answer holds a value: a guess at requests is a better one if there is something to compare."""

import torch


def holds_value(answer):
    """Return whether a finite number, a text or a truth value is anywhere in ``answer``; NaN and emptiness are none."""
    if isinstance(answer, torch.Tensor):
        return _holds_number(answer)
    if isinstance(answer, dict):
        return any(holds_value(item) for item in answer.values())
    if isinstance(answer, (tuple, list)):
        return any(holds_value(item) for item in answer)
    if isinstance(answer, (float, complex)):
        return abs(answer) < float("inf")
    return isinstance(answer, (bool, int, str, torch.device))


def _holds_number(tensor):
    try:
        tensor = tensor.detach()
        if tensor.layout != torch.strided:
            tensor = tensor.to_dense()
        if tensor.is_quantized:
            tensor = tensor.int_repr()
        if tensor.is_floating_point() and tensor.element_size() < 2:  # float8 has no isfinite
            tensor = tensor.to(torch.float32)
        return bool(torch.isfinite(tensor).any())
    except (RuntimeError, NotImplementedError):  # of a kind that cannot be asked: it may hold one
        return True
