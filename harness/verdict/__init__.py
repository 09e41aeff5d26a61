"""From findings to verdicts, from verdicts to rows, from rows to one decision. Nowhere else is anything judged."""
