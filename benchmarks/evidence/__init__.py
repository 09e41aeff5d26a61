"""Measures what the code relies on: ``python -m benchmarks.evidence NAME --env PYTHON ...``.

Each fact leaves its numbers in ``docs/evidence/NAME.json``; the tables of ``docs/evidence.md`` are made of them.
"""
