"""Watches a process from outside, proves hangs, collects evidence of what it was doing, and explains it."""
