"""What stands at the end of ``--help``: examples, and exit codes."""

HARNESS = """\
exit codes: 0 compatible, 1 incompatible, 2 configuration, 3 environment not provisioned,
            4 inconclusive or nothing tested, 5 our own bug,
            125 untestable (of a reproducer, for git bisect run), 130 interrupted
"""
MITIGATE = """\
examples:
  mitigate --artifact ranker.pt --old 2.1.2 --new 2.6.0   what cures it, its price, and lines to paste
  mitigate --cell CELL_ID                                 the same of a red cell of the last run

exit codes: 0 nothing to cure, 1 something cures it, 4 nothing was found that does
"""
FIRST_BAD = """\
the same as: bisect --over releases

exit codes: 0 the new end is not bad, 1 found, 3 an end or the index cannot be had, 4 undecided
"""
BISECT = """\
examples:
  bisect --artifact ranker.pt --old 2.1.2 --new 2.6.0   whose doing it is, and what cures it
  bisect --cell CELL_ID                                 the same of a red cell of the last run
  bisect --cell CELL_ID --over releases                 since which release of torch
  bisect --cell CELL_ID --over dependencies             or is it something that changed beside torch
  bisect --cell CELL_ID --over numpy                    since which version of one of these

exit codes: 0 nothing to find, 1 found, 4 not found or not decided
"""
