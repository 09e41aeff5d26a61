"""The items of a run: ``torchscript-compat::MODEL::SCENARIO``, and ``torchscript-compat::decision``."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from harness.domain.text import visible
from harness.domain.verdict import RowVerdict
from harness.plugin.runs import report_in
from harness.plugin.telling import ItemResult, Outcome, decision, row_items
from harness.run.options import shown_path
from harness.store.run_folder import REPORT


class Check(pytest.Item):
    """One check of one model, or the decision; judged already."""

    told: ItemResult
    report_path: Path

    def runtest(self) -> None:
        """Fail with the text of the red cell."""
        if self.told.outcome in (Outcome.FAIL, Outcome.XFAIL):
            pytest.fail(self.told.text, pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return where it stands, and the name above its failure."""
        return self.report_path, 0, self.nodeid


class Model(pytest.Collector):
    """The checks of one model."""

    row: RowVerdict
    folder: Path

    def collect(self) -> Iterator[Check]:
        """Yield those that were chosen."""
        suite = self.parent
        assert isinstance(suite, Suite)
        return (item for item in _all_of(self) if _is_chosen(item.nodeid, suite.chosen))


class Suite(pytest.Collector):
    """Everything that a run says."""

    folder: Path
    chosen: Sequence[str]

    def collect(self) -> Iterator[pytest.Collector | pytest.Item]:
        """Yield its models, in the order of the table, and the decision.

        Raises:
            CollectError: an item that was named is none of them.
        """
        report = report_in(self.folder)
        models = []
        for row in report.judgement.rows:
            model = Model.from_parent(self, name=_part_of_id(row.model))
            model.row, model.folder = row, self.folder
            models.append(model)
        last = _check(self, decision(report, directory=shown_path(self.folder)), self.folder)
        if self.chosen:
            known = {self.nodeid, last.nodeid, *(item.nodeid for model in models for item in (model, *_all_of(model)))}
            unknown = ", ".join(visible(word) for word in self.chosen if word not in known)
            if unknown:
                raise self.CollectError(f"the run in {shown_path(self.folder)} has no {unknown}")
        yield from models
        if _is_chosen(last.nodeid, self.chosen):
            yield last


def suite(session: pytest.Session, name: str, folder: Path, chosen: Sequence[str]) -> Suite:
    """Return the collector of the run in ``folder``.

    Args:
        chosen: node ids; only what they name is collected, everything where there are none.
    """
    found = Suite.from_parent(session, name=name, nodeid=name)
    found.folder, found.chosen = folder, chosen
    return found


def _all_of(model: Model) -> Iterator[Check]:
    """Yield the items of a model, with its tags as words for ``-k``."""
    report = report_in(model.folder)
    tags = next((facts.tags for facts in report.models if facts.model == model.row.model), ())
    for told in row_items(report, model.row, directory=shown_path(model.folder)):
        item = _check(model, told, model.folder)
        item.extra_keyword_matches.update(visible(tag) for tag in tags)
        yield item


def _check(parent: pytest.Collector, told: ItemResult, folder: Path) -> Check:
    item = Check.from_parent(parent, name=_part_of_id(told.name))
    item.told, item.report_path = told, folder / REPORT
    if told.outcome is Outcome.SKIP:
        item.add_marker(pytest.mark.skip(reason=told.reason))
    if told.outcome in (Outcome.XFAIL, Outcome.XPASS):
        item.add_marker(pytest.mark.xfail(reason=told.reason, strict=True))
    item.user_properties += [(key, value) for key, value in (("cell", told.cell), ("rerun", told.rerun)) if value]
    return item


def _is_chosen(nodeid: str, chosen: Sequence[str]) -> bool:
    return not chosen or any(nodeid == word or nodeid.startswith(word + "::") for word in chosen)


def _part_of_id(name: str) -> str:
    """Return a name as one part of a node id."""
    return re.sub("::+", ":", visible(name))
