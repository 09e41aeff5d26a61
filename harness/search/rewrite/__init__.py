"""Guilty nodes written in other operators, and verified in both releases."""
