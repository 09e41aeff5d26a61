"""What differs from recorded values beyond rounding. A part of ``reproduce.py``."""

from gate_worker.values.recorded import Opaque, RecordedValues


class Values(RecordedValues):
    """Recorded values, sparse ones as they were."""

    def tensor(self, spec):
        tensor = super().tensor(spec)
        if spec.get("layout", "sparse_coo") != "sparse_coo":
            raise TypeError("a tensor of layout %s cannot be made anew" % spec["layout"])
        return tensor.to_sparse() if "layout" in spec else tensor


class Comparison:
    """Says in words what differs beyond rounding: |difference| <= factor of the dtype x largest expected value."""

    def __init__(self, torch, tolerances, *, strides=False):
        self.torch, self.tolerances, self.strides = torch, tolerances, strides

    def differences(self, actual, expected, path):
        if isinstance(expected, self.torch.Tensor):
            if not isinstance(actual, self.torch.Tensor):
                return ["%s: a tensor was expected" % path]
            return self.of_tensors(actual, expected, path)
        if isinstance(expected, (list, tuple)):
            if not isinstance(actual, (list, tuple)) or len(actual) != len(expected):
                return ["%s: %d items were expected" % (path, len(expected))]
            parts = [self.differences(*pair, "%s[%d]" % (path, i)) for i, pair in enumerate(zip(actual, expected))]
            return [problem for part in parts for problem in part]
        if isinstance(expected, dict):
            return self.of_dicts(actual, expected, path)
        if isinstance(expected, Opaque):
            same = type(actual).__name__ == expected.name
            return [] if same else ["%s: a %s was expected" % (path, expected.name)]
        return self.of_plain(actual, expected, path)

    def of_plain(self, actual, expected, path):
        same = type(actual) is type(expected) and (actual == expected or repr(actual) == repr(expected))  # NaN
        if not same and isinstance(expected, (float, complex)) and isinstance(actual, type(expected)):
            same = abs(actual - expected) <= self.tolerances.get("float64", 0.0) * abs(expected)
        return [] if same else ["%s: expected %r, got %r" % (path, expected, actual)]

    def of_dicts(self, actual, expected, path):
        if not isinstance(actual, dict):
            return ["%s: a dict was expected" % path]
        tensors = any(isinstance(key, self.torch.Tensor) for key in expected)  # these have no order and no equals
        if not tensors and set(actual) != set(expected):
            return ["%s: expected the keys %s, got %s" % (path, sorted(expected, key=repr), sorted(actual, key=repr))]
        if tensors:
            return self.differences(list(actual.items()), list(expected.items()), path)
        parts = [self.differences(actual[key], value, "%s[%r]" % (path, key)) for key, value in expected.items()]
        return [problem for part in parts for problem in part]

    def of_tensors(self, actual, expected, path):
        torch = self.torch
        for what in ("dtype", "shape", "layout"):
            if getattr(actual, what) != getattr(expected, what):
                return ["%s: expected %s %s, got %s" % (path, what, getattr(expected, what), getattr(actual, what))]
        if self.strides and actual.stride() != expected.stride():
            return ["%s: expected strides %s, got %s" % (path, expected.stride(), actual.stride())]
        actual, expected = actual.detach().cpu(), expected.cpu()
        if expected.layout != torch.strided:
            actual, expected = actual.to_dense(), expected.to_dense()
        factor = self.tolerances.get(str(expected.dtype).replace("torch.", ""), 0.0)
        if expected.is_quantized:
            actual, expected = actual.int_repr(), expected.int_repr()
            factor = None
        if expected.is_complex():
            actual, expected = torch.view_as_real(actual.resolve_conj()), torch.view_as_real(expected)
        wide = torch.float64 if expected.is_floating_point() else torch.int64
        return self.of_numbers(actual.to(wide), expected.to(wide), path, factor)

    def of_numbers(self, actual, expected, path, factor):
        torch = self.torch
        if expected.is_floating_point():
            finite = torch.isfinite(expected)
            infinite = [torch.where(torch.isinf(part), part, torch.zeros_like(part)) for part in (actual, expected)]
            if not torch.equal(torch.isnan(actual), torch.isnan(expected)) or not torch.equal(*infinite):
                return ["%s: NaN or Inf in other places" % path]
            actual, expected = actual[finite], expected[finite]
        if not expected.numel():
            return []
        largest = float(expected.abs().max())
        allowed = 1.0 if factor is None else factor * largest
        off = float((actual - expected).abs().max())
        if off <= allowed:
            return []
        return ["%s: off by %.3g, the largest value is %.3g, rounding explains %.3g" % (path, off, largest, allowed)]
