"""Runs the parts of a GPU record one after another, as processes of the gate, and writes down what each came to."""

import contextlib
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import IO, Any, Literal

import msgspec

from harness.verdict.counting import counts_of
from harness.core.devices import AUTO, device_named
from harness.core.environment import Fingerprint
from harness.core.outcome import Status
from harness.core.probe import ProbeResult
from harness.core.report import SideReport
from harness.environments.sides import env_spec
from harness.core.errors import ConfigError, ExitCode, RunDirError, SelectionError
from harness.apps.doctor.doctor import doctor
from harness.apps.report.files import stored_report
from harness.project import CONFIG, Project, chosen_device, shown_path
from harness.apps.report.trace import read_trace
from harness.store import codec, probe_files
from harness.store.run_folder import LAST, PLAN, PROBES, REPORT, RunDir
from harness.machine import clock, processes
from harness.machine.progress import Progress
from harness.machine.typed import converted
from tests.gpu.page import render_record
from tests.gpu.parts import BEFORE_TIMING, PARTS, Part
from tests.gpu.recorded import JUDGED, GpuRecord, RecordedPart, dump_record, load_record

TITLE = "gpu-record"
STATE = "record.json"
FORMS = {"json": ".json", "markdown": ".md"}
# How long a run has to end its processes once its time is over; what a GPU holds up is ended with the process then.
GRACE_S = 20.0
# What tells two profiles apart where there is one torch only: servers set it, and it changes no number.
OTHER_PROFILE = (
    *("--set", "serving.profiles.inference_mode.switches.inference_mode=true"),
    *("--new-profile", "inference_mode"),
)
GATE = (sys.executable, "-m", "harness")


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A GPU record and its markdown file; ``file`` is None where nothing could begin: none was written then."""

    record: GpuRecord
    file: Path | None


def make_record(
    options: Project,
    words: Sequence[str],
    progress: Progress,
    *,
    minutes: float,
    into: Path,
    gate: Sequence[str] = GATE,
) -> Recorded:
    """Run what is left of a record, as far as it comes in ``minutes``, and write it into ``into`` after each part.

    Args:
        words: of ``compat``, for every part: sides, models, device; empty: those of the record that is gone on with.
        gate: how the program of a part is started.

    Raises:
        ConfigError: an option is wrong, or others were given than those of the record that is gone on with.
        RunDirError: the record cannot be read or written.
        KeyboardInterrupt: somebody ended it; what is there has been written.
    """
    begin_s = _now_s()
    if options.resume is None:
        record = _new_record(options, words, into)
        folder = RunDir.create(options.reports, TITLE, clock.utc_now())
    else:
        folder = RunDir.shared(_stored(options, options.resume))
        record = _read(folder.path)
        if words and _given(options, words) != record.arguments:
            given = shlex.join(record.arguments)
            raise ConfigError(f"--resume goes on with {folder.name}, which was given: {given}", "leave options out")
    record = replace(record, minutes=minutes)
    with folder:
        command = (*gate, "--project", str(options.folder))
        session = _Session(
            folder=folder.path, into=into, command=command, record=record, begin_s=begin_s, progress=progress
        )
        session.run()
        if not session.refused or any(part.run for part in session.record.parts):
            return Recorded(record=session.record, file=session.file("markdown"))
        session.remove_files()
        folder.discard()
        return Recorded(record=session.record, file=None)


def _now_s() -> float:
    return clock.monotonic_ns() * 1e-9


def _new_record(options: Project, words: Sequence[str], into: Path) -> GpuRecord:
    """Return a record of which nothing has run, after a look at the machine."""
    now, given = clock.utc_now(), _given(options, words)
    settings = options.settings
    # One that this machine does not show is refused by the parts, as they refuse everything.
    device = chosen_device(settings) if settings.device == AUTO else device_named(settings.device, settings.devices)
    return GpuRecord(
        name=_free_name(into, f"RECORD-{now.date().isoformat()}"),
        started_at=now.isoformat(timespec="seconds"),
        device=settings.device,
        arguments=given,
        checks=doctor(options, ()).checks,
        parts=tuple(
            RecordedPart(name=part.name, arguments=("compat", *given, *part.words_on(device)), why="not begun")
            for part in PARTS
        ),
    )


def _given(options: Project, words: Sequence[str]) -> tuple[str, ...]:
    """Return what every part is given: with one interpreter for both sides, their profiles differ."""
    table, settings = options.table, options.settings
    sides: tuple[Literal["old", "new"], ...] = ("old", "new")
    old, new = (
        env_spec(table, settings, side, options.environments, file=CONFIG, project=options.folder) for side in sides
    )
    one_torch = (old.release, old.interpreter) == (new.release, new.interpreter)
    profiles = OTHER_PROFILE if one_torch and not options.sets("new_profile") else ()
    return (*words, "--allow-same-torch", *profiles)


def _free_name(into: Path, name: str) -> str:
    """Return ``name``, with a number where there is such a record already."""
    names = (name, *(f"{name}-{number}" for number in range(2, 1000)))
    return next(free for free in names if not any((into / f"{free}{end}").exists() for end in FORMS.values()))


def _stored(options: Project, name: str) -> Path:
    """Return the folder of a record by path, by name, or ``last``.

    Raises:
        SelectionError: there is none.
    """
    if name == LAST:
        found = sorted(options.reports.glob(f"*-{TITLE}*/{STATE}"))
    else:
        found = [path for path in (Path(name) / STATE, options.reports / name / STATE) if path.is_file()]
    if not found:
        raise SelectionError(f"there is no GPU record {name!r} under {options.reports}", "leave --resume out")
    return found[-1].parent.absolute()


def _read(folder: Path) -> GpuRecord:
    path = folder / STATE
    try:
        record = load_record(path.read_bytes(), file=str(path))
    except OSError as error:
        raise RunDirError(f"{path} cannot be read: {error.strerror}", "leave --resume out") from error
    if [part.name for part in record.parts] != [part.name for part in PARTS]:
        raise RunDirError(f"{path} has other parts than the records of this version", "leave --resume out")
    return record


class _Session:
    """One session of a record in its folder: what is left of it, within its time."""

    def __init__(
        self,
        *,
        folder: Path,
        into: Path,
        command: Sequence[str],
        record: GpuRecord,
        begin_s: float,
        progress: Progress,
    ) -> None:
        self._folder = folder
        self._into = into
        self._command = command
        self._begin_s = begin_s
        self._earlier_s = record.wall_s
        self._progress = progress
        self.record = record

    def file(self, form: str) -> Path:
        """Return the file of the record in a form."""
        return self._into / f"{self.record.name}{FORMS[form]}"

    @property
    def refused(self) -> list[str]:
        """The parts that could not even be planned: neither can those after them."""
        return [part.name for part in self.record.parts if part.exit_code is not None and not part.run]

    def run(self) -> None:
        """Run the parts that have not come to their end, and write the record before and after each."""
        over = f"the {self.record.minutes:g} min were over"
        for part in PARTS:
            before = self._recorded(part.name)
            if before.exit_code in JUDGED:
                continue
            left_s = self._begin_s + self.record.minutes * 60 - _now_s()
            missing = self._missing(part) or ("" if left_s > 0 else over)
            if missing:
                self._put(replace(before, why=f"not begun: {missing}"))
                continue
            self._put(replace(before, exit_code=None, why="the command that made this record was killed"))
            self._progress.note(f"{TITLE}: {part.name}, {left_s / 60:.1f} min left: {shlex.join(before.arguments)}")
            begin_s = _now_s()
            try:
                code, why = self._execute(part, before, left_s, over)
            except KeyboardInterrupt:
                self._end(part, before, begin_s, None, "interrupted")
                self._progress.note(f"interrupted; go on with: --resume {shown_path(self._folder)}")
                raise
            self._end(part, before, begin_s, code, why)

    def remove_files(self) -> None:
        """Remove the files of a record of which nothing ran."""
        for form in FORMS:
            self.file(form).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # others are in it
            self._into.rmdir()

    def _missing(self, part: Part) -> str:
        """Return what a part cannot begin without, as a sentence; empty where it can begin."""
        if part.goes_on_with and self._recorded(part.goes_on_with).exit_code not in JUDGED:
            return f"{part.goes_on_with} has not ended"
        return f"{self.refused[0]} could not begin" if self.refused and part.name not in self.refused else ""

    def _execute(self, part: Part, before: RecordedPart, left_s: float, over: str) -> tuple[int | None, str]:
        """Return the exit code of a part, None where it was ended, and why it did not come to its end."""
        words = before.arguments
        if self._runs(part):
            words = ("compat", *(BEFORE_TIMING if part.words[-2:] == BEFORE_TIMING else ()), "--resume", LAST)
        with (self._folder / f"{part.name}.txt").open("wb") as output:
            process = processes.start(
                [*self._command, *words, "--out", str(self._reports(part))], stdout=output, stderr=subprocess.PIPE
            )
        said: list[str] = [""]
        reader = threading.Thread(target=_relay, args=(process.stderr, said), daemon=True)
        reader.start()
        why = ""
        try:
            process.wait(left_s)
        except subprocess.TimeoutExpired:
            why = over
            _end_softly(process)
        except KeyboardInterrupt:
            _end_softly(process)
            raise
        finally:
            processes.reap(process, reader)
        code = process.returncode
        if code in JUDGED:
            return code, ""
        if why or code is None or code < 0 or code == ExitCode.INTERRUPTED:
            return None, why or f"somebody else ended it ({code})"
        return code, said[-1] or f"exit code {code}"

    def _end(self, part: Part, before: RecordedPart, begin_s: float, code: int | None, why: str) -> None:
        """Write down what a part has come to, with what its run has left."""
        found = replace(before, exit_code=code, why=why, wall_s=before.wall_s + _now_s() - begin_s)
        runs = self._runs(part)
        if runs:
            found, sides = _with_facts(replace(found, run=str(runs[-1].relative_to(self._folder))), runs[-1])
            self.record = replace(self.record, **sides)
            if part.goes_on_with:
                earlier = self._recorded(part.goes_on_with)
                own = {name: number - earlier.processes.get(name, 0) for name, number in found.processes.items()}
                own = {name: number for name, number in own.items() if number > 0}
                found = replace(found, processes=own, contexts=max(0, found.contexts - earlier.contexts))
        self._put(found)

    def _reports(self, part: Part) -> Path:
        return self._folder / (part.goes_on_with or part.name)

    def _runs(self, part: Part) -> list[Path]:
        return sorted(path.parent for path in self._reports(part).glob(f"*/{PLAN}"))

    def _recorded(self, name: str) -> RecordedPart:
        return next(part for part in self.record.parts if part.name == name)

    def _put(self, part: RecordedPart) -> None:
        """Replace what the record says of a part, and write it."""
        parts = tuple(part if item.name == part.name else item for item in self.record.parts)
        self.record = replace(self.record, parts=parts, wall_s=self._earlier_s + _now_s() - self._begin_s)
        texts = {"json": dump_record(self.record), "markdown": render_record(self.record)}
        for form, text in texts.items():
            codec.write_atomically(self.file(form), text.encode(), parents=True)
        codec.write_atomically(self._folder / STATE, texts["json"].encode())


def _relay(stream: IO[bytes], said: list[str]) -> None:
    """Pass on what a part says, and keep its last line."""
    for line in stream:
        text = line.decode(errors="replace")
        sys.stderr.write(text)
        sys.stderr.flush()
        said[-1] = text.strip() or said[-1]


def _end_softly(process: "subprocess.Popen[bytes]") -> None:
    """Let a run end its processes and keep its results, within ``GRACE_S``."""
    processes.kill_group(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)


def _with_facts(part: RecordedPart, run: Path) -> tuple[RecordedPart, dict[str, Any]]:
    """Return a part with what its run has left, and what that says of the record: sides and device."""
    processes = read_trace(run).processes
    contexts = sum(process.contexts for process in processes)
    part = replace(part, processes=_counts(process.outcome for process in processes), contexts=contexts)
    # What was run until timing has a report already, which is not that of its timing.
    if part.exit_code not in JUDGED or not (run / REPORT).is_file():
        return part, {side: SideReport(name=side, fingerprint=found) for side, found in _fingerprints(run).items()}
    report = stored_report(run)
    judgement = report.judgement
    scenarios = dict.fromkeys(cell.scenario for cell in judgement.cells)
    measured = [model.latency.quantities for model in report.models if model.latency is not None]
    part = replace(
        part,
        decision=judgement.decision,
        models=counts_of(judgement.rows),
        cells={name: _counts(cell.status for cell in judgement.cells if cell.scenario == name) for name in scenarios},
        red=tuple((row.model, row.status.value, row.reason) for row in judgement.rows if row.status is not Status.PASS),
        planted=sum(planted.caught for planted in judgement.planted_defects),
        missed=tuple((planted.name, planted.note) for planted in judgement.planted_defects if not planted.caught),
        timed=dict(sorted(Counter(name for quantities in measured for name in quantities).items())),
        time_shares_s=report.time_shares_s,
    )
    return part, {"old": report.old, "new": report.new, "device": report.device}


def _counts(found: Iterable[StrEnum]) -> dict[str, int]:
    return dict(sorted(Counter(item.value for item in found).items()))


def _fingerprints(run: Path) -> dict[str, Fingerprint]:
    """Return what the sides of an unfinished run have said of themselves."""
    found = {}
    for probe in probe_files.folders(run / PROBES):
        with contextlib.suppress(RunDirError, msgspec.ValidationError):
            result = codec.read_json(probe / probe_files.RESULT, ProbeResult, read=probe_files.read_result)
            if "fingerprint" in result.data:
                found[result.side] = converted(result.data["fingerprint"], Fingerprint)
    return found
