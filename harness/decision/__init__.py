"""From findings to verdicts, from verdicts to rows, from rows to one decision. Judging happens only here."""
