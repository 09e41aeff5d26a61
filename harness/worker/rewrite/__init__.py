"""Operators written in other operators."""
