"""Benchmarks. They print ratios within one run, because machines are shared and noisy; no test asserts a time."""
