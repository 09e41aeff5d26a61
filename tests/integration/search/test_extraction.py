"""Every node of a program, extracted out, answers by itself what it answered in the whole; in both releases."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.search.bisect.divergence import trace_request
from harness.search.bisect.traces import Trace, key, read_trace, tensors_in
from harness.search.reduce.extract import extract, with_artifact
from harness.verdict.reduction import block_nodes
from harness.core.diagnosis import Place
from harness.core.models import Artifact
from harness.core.outcome import Outcome
from harness.core.probe import ExtractOrder, TraceOrder
from harness.probing.facts import Effects, Attributed
from harness.probing.requests import floor_deadline
from harness.artifacts.tensors.recorded import read_outputs
from tests.integration.search.judging import judged

pytestmark = pytest.mark.integration

MODEL = "mixed"
REDUCED = Path(__file__).with_name("reduced")


class Pieces:
    """One traced call of the model, and archives that are extracted out of it."""

    def __init__(self, facts: Attributed, effects: Effects) -> None:
        self.facts, self.effects = facts, effects
        order = TraceOrder(input_set="example", call=1)
        self.directory = effects.runner(trace_request(MODEL, "old", order, facts)).directory
        self.trace: Trace = read_trace(self.directory)

    def extracted(self, place: Place, keep: Iterable[int], *, values: bool = True) -> Artifact | str:
        beside = self.directory if values else None
        order = ExtractOrder(input_set="example", beside=beside, place=place, keep=tuple(keep))
        return extract(MODEL, order, self.facts, self.effects)

    def answers(self, side: str, artifact: Artifact) -> Any:
        """Return the tree of its first call; it has to make all of them."""
        deadline = floor_deadline(self.facts.plan.settings.deadlines)
        probe = self.effects.runner(self.facts.requests.run(side, [artifact], deadline))
        assert probe.models[0].outcome is Outcome.COMPLETED, probe.models[0].failure
        return read_outputs(probe.directory, MODEL).calls["example", 0]


def digests(tree: Any) -> list[str]:
    return [spec["sha256"] for spec in tensors_in(tree)]


@pytest.mark.slow
def test_parts_answer_what_they_did_in_the_whole(old_python: str, new_python: str, tmp_path: Path) -> None:
    with judged(REDUCED, (old_python, new_python), tmp_path, MODEL, floor_s=3) as (facts, effects):
        pieces = Pieces(facts, effects)
        nodes = pieces.trace.nodes
        called = [place for place, node in nodes.items() if node.kind == "prim::CallMethod"]
        reached = [place for place in nodes if not any(place[: len(at)] == at != place for at in called)]
        blocks = sorted({place[:-1] for place in reached})
        assert {"prim::If", "prim::Loop", "prim::fork"} <= {node.kind for node in nodes.values()}
        for block in blocks:
            for node in block_nodes(nodes, block):
                made = pieces.extracted(block, [node.place[-1]])
                if node.kind == "prim::CallMethod":
                    assert isinstance(made, str) and "which has no value outside of the module" in made
                    continue
                assert isinstance(made, Artifact), f"{node}: {made}"
                if pieces.trace.digests[node.place]:
                    told = pieces.trace.outputs.calls[key(node.place)]
                    assert digests(pieces.answers("old", made)) == digests(told), node

        whole = pieces.extracted((), [node.place[-1] for node in block_nodes(nodes, ())])
        assert isinstance(whole, Artifact)
        (golden,) = [facts.baselines[MODEL].golden]
        assert golden is not None
        assert set(digests(golden.calls["example", 1])) <= set(digests(pieces.answers("old", whole)))
        pieces.answers("new", whole)

        again = pieces.extracted((), [node.place[-1] for node in block_nodes(nodes, ())])
        assert again == whole, "what was made is not made again"
        assert with_artifact(facts, MODEL, whole).artifact(MODEL) == whole

        untold = pieces.extracted((), [node.place[-1] for node in block_nodes(nodes, ())], values=False)
        assert isinstance(untold, Artifact) and untold.input_sets == ()
        assert pieces.extracted((), [999]) == "the block has 33 nodes, none of them is number [999]"
