"""Makes up requests for a method that nobody gave any for: guesses from the graph, tried by really calling."""

import heapq
import re
from itertools import count

import torch

from gate_worker import wire
from gate_worker.needs import graph
from gate_worker.needs.value_requirements import ValueRequirements
from gate_worker.requests import call_spec, draws, repairs, served, signatures
from gate_worker.requests.guesses import BATCHED, FIXED, FREE, WORDS, CannotGuess, Guesser, Leaf
from gate_worker.requests.values import Call, first_line

HALVES = {"Half": "float16", "BFloat16": "bfloat16"}
NO_KERNEL = re.compile("not implemented for '(%s)'" % "|".join(HALVES))
"""What torch says of a dtype that it stores and cannot compute: no request helps."""
MOST_TRIALS = 40
MOST_SILENT = 6
"""Guesses that work and whose answers hold no value, before the first of them is taken."""
OTHER_BATCH = 5
MOST_WIDER = 40
"""Calls with other whole numbers that a guess which works is tried with."""
STEP = 8
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

    def __init__(self, calls, note, guess=None):
        self.calls = calls
        self.note = note
        self.guess = guess


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
        self._reads_numbers = True
        self._answer = None
        self._begin()

    def infer(self, method, suffix):
        """Return the ``Inference`` for one method; ``suffix`` ends the names of its input sets."""
        arguments, needs = self._look_at(method)
        try:
            guess = self._search(self._first_guesses(arguments, needs))
        except CannotGuess as error:
            return Inference([], self._gave_up(method, "nothing can be made up for a value of type %s" % error))
        if guess is None:
            return Inference([], self._gave_up(method, understood(arguments, needs, self._failure)))
        calls = [self._call("guessed" + suffix, guess, self._seed)]
        other, seed = guess.of_batch(OTHER_BATCH), self._seed + 1
        if other is not None and self._attempt(other, self._tries, seed=seed, optimized=True) is None:
            calls.append(self._call("guessed_other_batch" + suffix, other, seed))
        return Inference(calls, "%s(%s)" % (method, guess.described(self._names)), guess)

    def serve(self, request, warmups):
        """Return the ``Inference`` for the calls that a server would make.

        ``request`` and ``warmups``: as ``harness/apps/fleet/stores/triton.py`` describes them.
        """
        called = request["method"]
        try:
            called, bind = self._binding(called)
            bound = bind(request)
            first, *others = bound.batches
            guesses = [bound.guess(batch, **plan) for batch in dict.fromkeys((first, 1)) for plan in bound.plans]
            bound_warmups = [(item, bind(item)) for item in warmups]
            warm = [(item, made.guess(*made.batches)) for item, made in bound_warmups]
        except call_spec.NotServed as error:
            return Inference([], "%s: %s" % (called, error))
        guess = self._search(guesses)
        if guess is None:
            return Inference([], "%s: no request of these shapes succeeds: %s" % (called, self._failure))
        calls, refused = [self._call(request["name"], guess, self._seed)], []
        for number, batch in enumerate(others, start=1):
            other, seed = guess.of_batch(batch), self._seed + number
            error = self._attempt(other, self._tries, seed=seed, optimized=True) if other is not None else None
            if error is not None:
                refused.append("a batch of %d is refused: %s" % (batch, first_line(error)))
            elif other is not None:
                calls.append(self._call("larger" if number == 1 else "larger_%d" % number, other, seed))
        for item, guessed in warm:
            error = self._attempt(guessed, self._tries, seed=self._seed, optimized=True)
            if error is not None:
                refused.append("%s is refused: %s" % (item["name"], first_line(error)))
            else:
                calls.append(self._call(item["name"], guessed, self._seed))
        note = "%s(%s)" % (request["method"], guess.described(self._names))
        return Inference(calls, "; ".join([note] + refused), guess)

    def _binding(self, method):
        """Return a method with its arguments, in words, and what binds a server's request to them."""
        arguments, needs = self._look_at(method)
        return signatures.described(self._module, method), lambda request: served.Bound(
            request, arguments, needs, self._words
        )

    def widen(self, inference, name):
        """Return a call whose whole numbers span as much of their dtypes as the artifact takes, and words for it.

        None and no words where the guess has no whole numbers that only their dtype bounds. ``inference`` is the last
        one of this inferrer, with a guess.
        """
        guess, refusal = inference.guess, ""
        places = [index for index, leaf in guess.tensors() if leaf.is_open]
        trials = iter(range(MOST_WIDER))
        spans = {}

        def takes(changes):
            nonlocal refusal
            trial = next(trials, None)
            if trial is None:
                return False
            wide = guess.varied({index: guess.leaves[index].but(span=span) for index, span in changes.items()})
            error = self._attempt(wide, self._tries + trial, seed=self._seed, optimized=False)
            if error is not None:
                refusal = refusal or first_line(error)
            return error is None

        widest = {index: self._widest(guess.leaves[index].dtype) for index in places}
        if takes(widest):
            spans = widest
        for index in places if not spans else ():
            least = guess.leaves[index].below or 2
            high = largest(lambda most, at=index: takes({**spans, at: (0, most)}), least, widest[index][1])
            if high >= least:
                spans[index] = (0, high)
        if not spans:
            return None, ""
        wide = guess.varied({index: guess.leaves[index].but(span=span) for index, span in spans.items()})
        if self._attempt(wide, self._tries, seed=self._seed, optimized=True) is not None:
            return None, ""
        return self._call(name, wide, self._seed), self._span_words(wide, spans, widest, refusal)

    def _widest(self, dtype):
        """Return what a whole number of a dtype may be; no more than a byte where it may be a size or count loops."""
        low, high = draws.range_of(dtype)
        return (max(low, -128), min(high, 255)) if self._reads_numbers else (low, high)

    def _span_words(self, wide, spans, widest, refusal):
        words = [
            "%s from %d to %d" % (self._named(wide, index), low, high) for index, (low, high) in sorted(spans.items())
        ]
        if spans != widest and refusal:
            words.append("more is refused: %s" % refusal)
        elif any(span != draws.range_of(wide.leaves[index].dtype) for index, span in spans.items()):
            words.append("no more, since it may be a size or count a loop")
        return ", ".join(words)

    def _named(self, guess, index):
        return next((name for name, tree in zip(self._names, guess.trees) if index in leaves_of(tree)), "?")

    def _begin(self, method="", names=()):
        self._method, self._names = method, list(names)
        self._tries = 0
        self._failure = ""

    def _look_at(self, method):
        arguments = signatures.arguments(self._module, method)
        self._begin(method, [argument.name for argument in arguments])
        try:
            needs, flow = graph.of_method(self._module, method)
            self._words, self._stateful = flow.attribute_words(), flow.keeps_state()
            self._reads_numbers = flow.reads_numbers()
        except (RuntimeError, AttributeError, IndexError, TypeError, ValueError):  # a graph that we do not understand
            needs = [ValueRequirements() for _ in arguments]
            self._words, self._stateful, self._reads_numbers = (), True, True
        return arguments, needs

    def _call(self, name, guess, seed):
        return Call(name, self._method, guess.arguments(seed, self._device.name))

    def _gave_up(self, method, why):
        half = NO_KERNEL.search(self._failure)
        if half and self._device.name == "cpu":
            return (
                "%s: torch %s cannot compute %s there on a CPU: run on a GPU (--device), or judge a float32 copy (%s)"
                % (
                    signatures.described(self._module, method),
                    torch.__version__.partition("+")[0],
                    HALVES[half.group(1)],
                    self._failure,
                )
            )
        return "%s: %s; put requests beside the file: %s.inputs.pt" % (
            signatures.described(self._module, method),
            why,
            self._model,
        )

    def _search(self, guesses):
        """Return a guess that works twice, or None: the first whose answer holds a value, else the first.

        What torch says of a failure makes the next guesses.
        """
        pending, order = [], count()
        most = max([repairs.MOST_ELEMENTS] + [repairs.elements(guess) for guess in guesses[:1]])
        for place, guess in enumerate(guesses):
            heapq.heappush(pending, (3.0 * place, next(order), guess))
        tried, kinds, silent = set(), set(), []
        while pending and self._tries < MOST_TRIALS:
            cost, _, guess = heapq.heappop(pending)
            key = guess.described(self._names)
            if key in tried or repairs.elements(guess) > most:
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
            step = 1.0 if kind in kinds else 0.2
            kinds.add(kind)
            for place, better in enumerate(self._repaired(guess, first_line(error))[:12]):
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
            guesses.append(guesses[0].varied({index: shape.but() for index in unknown}))
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
                    self._answer = self._function(module)(*arguments)
                    self._device.synchronize()
            except Exception as error:
                return error
        return None

    def _repaired(self, guess, failure):
        return repairs.of(guess, failure)

    def _function(self, module):
        return getattr(module, self._method)


def leaves_of(tree):
    kind, content = tree
    if kind == "leaf":
        return [content]
    items = [item for _, item in content] if kind == "dict" else content if kind in ("list", "tuple") else []
    return [index for item in items for index in leaves_of(item)]


def largest(takes, least, most):
    """Return the greatest number from ``least`` that is taken, below ``most``, which is not; ``least`` - 1 for none."""
    if least >= most or not takes(least):
        return least - 1
    low, high = least, most
    while low * STEP < high:
        if not takes(low * STEP):
            high = low * STEP
        else:
            low *= STEP
    while high - low > 1:
        middle = (low + high) // 2
        if takes(middle):
            low = middle
        else:
            high = middle
    return low


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
        elif "Tensor" in kind:
            parts.append("nothing in the graph tells the shape of %s" % argument.name)
        else:
            parts.append("%s is any %s" % (argument.name, kind))
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
