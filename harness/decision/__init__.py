"""From findings to verdicts, from verdicts to rows, from rows to one decision. Opinions are made here."""
