"""Frozen types and facts that every room shares. No rules, no files, no clocks."""
