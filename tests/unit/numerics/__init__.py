"""Tests of ``harness/numerics``, one file per module."""
