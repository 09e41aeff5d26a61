"""What one can do: a folder for each command, with its options, what it calls and what it prints.

``command.py`` of a folder is the command: ``HELP``, ``add_options`` and ``call``, which returns what it came to. Nobody
lists them: ``harness.cli`` looks into these folders. It imports all of them for ``--help``, so that such a module
imports what works only where it is called.

Wherever a function here says nothing else: what is typed or configured wrongly is a ``ConfigError``, and a
``SelectionError`` where it names what is not there; a release that cannot be provisioned is an
``EnvironmentUnavailable``; a folder of a run that cannot be read or written is a ``RunDirError``.
"""
