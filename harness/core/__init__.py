"""Frozen types, errors and tables that every room shares. No rules, no files, no clocks."""
