"""The C++ worker as it is compiled for a GPU: on a machine without one it compiles, starts, and does on the CPU what the other does."""

import json
from pathlib import Path

import pytest

from tests.integration.devices.test_fake_accelerator import RELEASES, interpreter
from tests.worker.transcripts import replay

pytestmark = [pytest.mark.integration, pytest.mark.slow]


@pytest.mark.parametrize("release", RELEASES)
def test_worker_compiled_with_cuda_does_every_transcript_and_captures_nothing_on_the_cpu(
    release: str, tmp_path: Path
) -> None:
    transcripts = {one.path.stem: one for one in replay.transcripts() if "libtorch" in one.workers}
    with replay.both_workers(interpreter(release), tmp_path, cuda=True) as runner:
        artifacts = replay.export(runner, replay.models())
        results = {name: runner(one.request(artifacts, "libtorch")) for name, one in transcripts.items()}
    assert {name: result.exit_detail for name, result in results.items() if result.outcome != "completed"} == {}
    answers = {name: json.loads(json.dumps(replay.answer(result))) for name, result in results.items()}
    assert {name: one["events"] for name, one in answers.items()} == {
        name: one.recorded["events"] for name, one in transcripts.items()
    }
    ((_, kind, said),) = replay.messages(Path(results["capture"].directory))
    assert (kind, said) == ("RuntimeError", "a graph cannot be captured on the CPU")
