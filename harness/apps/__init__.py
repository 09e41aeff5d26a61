"""What one can do: a folder for each command, with its options, what it calls and what it prints.

``command.py`` of a folder is the command: ``HELP``, ``add_options`` and ``call``, which returns what it came to. Nobody
lists them: ``harness.cli`` looks into these folders. It imports all of them for ``--help``, so that such a module
imports what works only where it is called.
"""
