"""Calibration: how large a fault must be before the gate sees it, and how often it sees one that is not there.

Each part plants the corpus of ``fixtures/planted/seeded`` through the stages of the gate, on a real pair of releases,
and leaves its raw data in ``docs/calibration``. ``page`` draws and judges what the others have measured.
"""
