"""Makes up requests for a method that nobody gave any for: guesses from the graph, tried by really calling."""

import heapq
import re
from itertools import count

import torch

from gate_worker import wire
from gate_worker.needs import graph
from gate_worker.needs.value_requirements import ValueRequirements
from gate_worker.requests import repairs, signatures
from gate_worker.requests.guesses import BATCHED, FIXED, FREE, WORDS, CannotGuess, Guesser, Leaf
from gate_worker.requests.values import Call, first_line

MOST_TRIALS = 40
MOST_SILENT = 6
"""Guesses that work and whose answers hold no value, before the first of them is taken."""
OTHER_BATCH = 5
# Shapes that are tried for tensors of which nothing is known, where nothing else worked.
GENERIC = (
    ((2, 3, 224, 224), torch.float32),
    ((4, 16), torch.float32),
    ((2, 8, 16), torch.float32),
    ((2, 16), torch.int64),
    ((8,), torch.int64),
    ((8,), torch.float32),
    ((), torch.float32),
)


class Inference:
    """What came of one method: the calls that succeeded, and a note that says what was guessed, or why not."""

    def __init__(self, calls, note):
        self.calls = calls
        self.note = note


class Inferrer:
    """Tries guesses on one artifact. ``load`` returns a fresh module; a stateful one is loaded for every call."""

    def __init__(self, load, module, *, seed, device, log, model):
        self._load = load
        self._module = module
        self._seed = seed
        self._device = device
        self._log = log
        self._model = model
        self._stateful = False
        self._answer = None

    def infer(self, method, suffix):
        """Return the ``Inference`` for one method; ``suffix`` ends the names of its input sets."""
        arguments = signatures.arguments(self._module, method)
        self._method = method
        self._names = [argument.name for argument in arguments]
        self._tries = 0
        self._failure = ""
        try:
            needs, self._words, self._stateful = graph.of_method(self._module, method)
        except (RuntimeError, AttributeError, IndexError, TypeError, ValueError):  # a graph that we do not understand
            needs, self._words, self._stateful = [ValueRequirements() for _ in arguments], (), True
        try:
            guess = self._search(arguments, needs)
        except CannotGuess as error:
            return Inference([], self._gave_up(method, "nothing can be made up for a value of type %s" % error))
        if guess is None:
            return Inference([], self._gave_up(method, understood(arguments, needs, self._failure)))
        calls = [Call("guessed" + suffix, method, guess.arguments(self._seed, self._device.name))]
        other, seed = other_batch(guess), self._seed + 1
        if other is not None and self._attempt(other, self._tries, seed=seed, optimized=True) is None:
            calls.append(Call("guessed_other_batch" + suffix, method, other.arguments(seed, self._device.name)))
        return Inference(calls, "%s(%s)" % (method, guess.described(self._names)))

    def _gave_up(self, method, why):
        return "%s: %s; put requests beside the file: %s.inputs.pt" % (
            signatures.described(self._module, method),
            why,
            self._model,
        )

    def _search(self, arguments, needs):
        """Return a guess that works twice, or None: the first whose answer holds a value, else the first.

        What torch says of a failure makes the next guesses.
        """
        pending, order = [], count()
        for place, guess in enumerate(self._first_guesses(arguments, needs)):
            heapq.heappush(pending, (3.0 * place, next(order), guess))
        tried, said, silent = set(), set(), []
        while pending and self._tries < MOST_TRIALS:
            cost, _, guess = heapq.heappop(pending)
            key = guess.described(self._names)
            if key in tried or not repairs.small_enough(guess):
                continue
            tried.add(key)
            error = self._attempt(guess, self._tries, seed=self._seed, optimized=False)
            self._tries += 1
            if error is None:
                # Again, as it is served: in the same module, or in a fresh one where a call changes it.
                if self._attempt(guess, self._tries, seed=self._seed, optimized=True) is not None:
                    continue
                if holds_value(self._answer):
                    return guess
                silent.append(guess)
                if len(silent) == MOST_SILENT:
                    break
                heapq.heappush(pending, (cost, next(order), guess.positive()))
                continue
            self._failure = self._failure or first_line(error)
            kind = re.sub(r"\d+", "", str(error))  # with the place in the code, without the sizes
            step = 1.0 if kind in said else 0.2
            said.add(kind)
            for place, better in enumerate(repairs.of(guess, first_line(error))[:12]):
                heapq.heappush(pending, (cost + step + 0.5 * place, next(order), better))
        return silent[0] if silent else None

    def _first_guesses(self, arguments, needs):
        dtype = main_dtype(self._module)
        plans = [{}, {"batch": 8}, {"batch": 1}, {"side": 224}, {"elements": 1}]
        plans += [{"side": 64, "length": 64}, {"length": 4, "elements": 4}, {"length": 256, "side": 128}]
        words = self._words or WORDS
        guesses = [
            Guesser(dtype=dtype, words=words, **plan).guess(arguments, needs, self._device.name) for plan in plans
        ]
        unknown = [index for index, leaf in guesses[0].tensors() if not leaf.ranked and FIXED not in leaf.kinds]
        for sizes, kind in GENERIC if unknown else ():
            shape = Leaf(sizes, [BATCHED if place == 0 else FREE for place in range(len(sizes))], kind)
            guesses.append(guesses[0].varied({index: shape.copy() for index in unknown}))
        return guesses

    def _attempt(self, guess, trial, *, seed, optimized):
        """Make one call and keep its answer; return the exception that it raised, None where it succeeded."""
        guessed = guess.described(self._names)
        with self._log.phase(wire.INFER, model=self._model, set=self._method, call=trial, guess=guessed):
            module = self._load() if self._stateful else self._module
            torch.manual_seed(self._seed)
            try:
                arguments = guess.arguments(seed, self._device.name)
                with torch.no_grad(), torch.jit.optimized_execution(optimized):
                    self._answer = getattr(module, self._method)(*arguments)
                    self._device.synchronize()
            except Exception as error:
                return error
        return None


def other_batch(guess):
    changes = {}
    for index, leaf in guess.tensors():
        places = [place for place, kind in enumerate(leaf.kinds) if kind == BATCHED]
        if places:
            changed = leaf.copy()
            for place in places:
                changed.sizes[place] = OTHER_BATCH
            changes[index] = changed
    return guess.varied(changes) if changes else None


def main_dtype(module):
    """Return the dtype of the first floating parameter or buffer that is one of full requests, else float32."""
    for tensor in list(module.parameters()) + list(module.buffers()):
        if tensor.is_floating_point():
            return tensor.dtype
    return torch.float32


def understood(arguments, needs, failure):
    """Return per argument what the graph tells, and what the first guess ran into."""
    parts = []
    for argument, need in zip(arguments, needs):
        kind = argument.type.annotation_str
        if "Dict" in kind and not need.items:
            parts.append("nothing in the graph tells the keys of %s" % argument.name)
        elif need.sizes or need.dtype is not None or need.items:
            parts.append("%s is %s" % (argument.name, text(need)))
        else:
            parts.append(
                "nothing in the graph tells the shape of %s" % argument.name
                if "Tensor" in kind
                else "%s is any %s" % (argument.name, kind)
            )
    return ", ".join(parts) + ("; the first guess failed: %s" % failure if failure else "")


def text(need):
    if need.items:
        return "{%s}" % ", ".join("%r: %s" % (key, text(item)) for key, item in need.items.items())
    dtype = str(need.dtype or "").replace("torch.", "")
    sizes = ", ".join("size %d in dimension %d" % (size, d) for d, size in sorted(need.sizes.items()))
    rank = "of rank %d" % need.rank if need.rank is not None else ""
    below = "below %d" % need.below if need.below else ""
    return " ".join(part for part in (dtype, rank, sizes, below) if part) or "not known"


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
