"""Numbers about differences. No verdict lives here; ``rule`` names which rule *could* decide."""

from collections.abc import Callable
from dataclasses import dataclass, replace

# Lower edges of |new - old| / max|old|. Before the first bin with an edge comes that of errors that are exactly zero,
# and 0.0 holds what is smaller than the next edge.
ERROR_EDGES = (0.0, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeDifference:
    """A difference of structure, with the path of the leaf, e.g. ``output['scores'][1]``.

    ``kind`` is ``"structure"`` (tree, length, missing, extra, shape, plain value) or ``"dtype"``.
    """

    path: str
    kind: str
    expected: str
    actual: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TensorMetrics:
    """Every number the judging chain needs about one tensor pair, computed in float64.

    Attributes:
        dtype: wire name, e.g. ``"float32"``.
        bit_equal: all bytes equal (NaNs in the same places with other payloads are not bit equal).
        nan_mismatches: elements of which one side is NaN; ``nan_appeared``: those of them that the new side has.
        inf_mismatches: other elements in which an infinity, or its sign, differs.
        max_abs: largest |actual - expected| over finite pairs; quanta for quantized tensors.
        max_rel: largest |actual - expected| / |expected|; inf where only the expected one is zero.
        max_ulp: largest distance in units in the last place, or None for dtypes without them.
        rel_l2: ||actual - expected|| / ||expected||; cosine: their cosine similarity; None where undefined.
        scale: max |expected| over finite elements.
        tolerance_abs: absolute bound that the scaled tolerance gives: factor x scale.
        mismatched: elements beyond ``tolerance_abs``.
        worst_index: index of ``max_abs``; with ``worst_expected`` and ``worst_actual``.
        noise_abs: largest |difference| between repeats of the old environment, or None.
        reference_old_abs, reference_new_abs: largest distance of the old and new output from the float64
            reference, or None where there is none.
        error_histogram: elements by |actual - expected| / scale, see ``ERROR_EDGES``; empty where bits are equal.
        top1_agreement: share of rows with the same arg-max over the last axis; None where bits are equal or the
            tensor is no head of scores (see ``harness/checks/outputs/metrics.py``).
        top5_agreement: the same for the set of the five largest; None with five classes or fewer.
        same_magnitudes: beyond tolerance, and only signs differ: all magnitudes are within it.
        same_values: beyond tolerance, and only the order differs: sorted, all values are within it.
        moved_rows: rows that stand elsewhere in the new output, which was put into the golden order before anything
            was measured; 0 unless the model declares the leaf unordered.
    """

    path: str
    dtype: str
    elements: int
    bit_equal: bool
    nan_mismatches: int = 0
    nan_appeared: int = 0
    inf_mismatches: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int | None = None
    rel_l2: float | None = None
    cosine: float | None = None
    scale: float = 0.0
    tolerance_abs: float = 0.0
    mismatched: int = 0
    worst_index: tuple[int, ...] = ()
    worst_expected: str = ""
    worst_actual: str = ""
    noise_abs: float | None = None
    reference_old_abs: float | None = None
    reference_new_abs: float | None = None
    sampled: bool = False
    error_histogram: tuple[int, ...] = ()
    top1_agreement: float | None = None
    top5_agreement: float | None = None
    same_magnitudes: bool = False
    same_values: bool = False
    moved_rows: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CallComparison:
    """One call of one input set, old against new.

    Attributes:
        tree: differences of structure; ``tensors``: numbers per leaf that is not known to be bit equal in the golden's
            order; ``equal``: how many others there are. Inputs that both sides changed in place are compared like
            outputs, under paths that begin with ``input``.
        inputs_changed: paths of inputs that both sides changed in place; ``inputs_changed_old``,
            ``inputs_changed_new``: those that only one side did.
        aliases_old, aliases_new: inputs and outputs that share storage on one side only: ``"input[0] = output"``.
    """

    input_set: str
    call: int
    tree: tuple[TreeDifference, ...] = ()
    tensors: tuple[TensorMetrics, ...] = ()
    equal: int = 0
    stride_changes: tuple[str, ...] = ()
    opaque: tuple[str, ...] = ()
    inputs_changed: tuple[str, ...] = ()
    inputs_changed_old: tuple[str, ...] = ()
    inputs_changed_new: tuple[str, ...] = ()
    aliases_old: tuple[str, ...] = ()
    aliases_new: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OutputComparison:
    """All calls of one model in one scenario.

    Attributes:
        missing_calls: (input set, call) that the golden has and the probe has not.
        unstable: leaves that differ bitwise between repeats of the old environment.
        unordered_missing: paths that are declared unordered and that no golden output has.
    """

    model: str
    scenario: str
    calls: tuple[CallComparison, ...] = ()
    missing_calls: tuple[tuple[str, int], ...] = ()
    unstable: tuple[str, ...] = ()
    unordered_missing: tuple[str, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether all that the golden has was answered, in the same structure and bit for bit."""
        return not self.missing_calls and not any(call.tensors or call.tree for call in self.calls)

    @property
    def tensors(self) -> tuple[TensorMetrics, ...]:
        """The tensors of all calls, less those that are bit equal."""
        return tuple(tensor for call in self.calls for tensor in call.tensors)


def of_requests(comparison: OutputComparison, wanted: Callable[[str], bool]) -> OutputComparison:
    """Return the part of a comparison that is about the input sets of which ``wanted`` says so."""
    return replace(
        comparison,
        calls=tuple(call for call in comparison.calls if wanted(call.input_set)),
        missing_calls=tuple(key for key in comparison.missing_calls if wanted(key[0])),
    )
