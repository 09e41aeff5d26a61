"""A version matrix as a heat map: exporters down, loaders across, a tone and a mark per pair."""

from dataclasses import dataclass

from harness.core.releases import Matrix
from harness.core.text import prose, visible
from harness.report.page.parts import BAD, GOOD, OPEN, QUIET
from harness.report.words.matrix import LEGEND, pair_mark, pair_text, prediction_words
from harness.report.words.phrases import shorten
from harness.verdict.matrix import judge_matrix

_TONES = {"X": BAD, "x": BAD, "?": OPEN, "=": QUIET, "-": QUIET, "": GOOD}


@dataclass(frozen=True, kw_only=True, slots=True)
class PairView:
    """One pair: ``text`` counts models that load and answer the same, of those exported, and has the pair's mark."""

    text: str
    tone: str


@dataclass(frozen=True, kw_only=True, slots=True)
class MatrixView:
    """The whole map; each of ``rows`` is an exporter with a pair per loader."""

    loaders: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PairView, ...]], ...]
    legend: str
    sentences: tuple[str, ...]


def matrix_view(matrix: Matrix) -> MatrixView:
    """Return the map and what it amounts to."""
    verdict = judge_matrix(matrix)
    loaders = [release.name for release in matrix.releases]
    rows = []
    for exporter in matrix.exporters:
        pairs = [verdict.pairs[exporter, loader] for loader in loaders]
        views = tuple(
            PairView(
                text=f"{pair_text(pair)} {pair_mark(pair)}".strip(),
                tone=_TONES[pair_mark(pair)],
            )
            for pair in pairs
        )
        rows.append((shorten(visible(exporter), 40), views))
    sentences = (*verdict.sentences, prediction_words(matrix), *matrix.notes)
    return MatrixView(
        loaders=tuple(shorten(visible(name), 40) for name in loaders),
        rows=tuple(rows),
        legend=LEGEND,
        sentences=tuple(shorten(prose(text), 600) for text in sentences),
    )
