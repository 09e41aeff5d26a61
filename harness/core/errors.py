"""The exceptions that end a command, and the exit code each one owns.

    GateError
    ├── ConfigError              2  the configuration or the command line is wrong
    │   ├── SelectionError       2  a model, scenario or cell that does not exist was named
    │   ├── FixtureError         2  a fixture file cannot be read
    │   ├── GoldenError          2  a golden record is missing, damaged or was tampered with
    │   └── RunDirError          2  a run directory cannot be read or written
    ├── EnvironmentUnavailable   3  an environment under test could not be provisioned
    └── InternalError            5  our own bug

A failure of the torch under test is never an exception here: it is an ``Outcome`` in a ``ProbeResult``.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    COMPATIBLE = 0
    INCOMPATIBLE = 1
    CONFIGURATION = 2
    ENVIRONMENT = 3
    INCONCLUSIVE = 4
    INTERNAL = 5
    UNTESTABLE = 125
    INTERRUPTED = 130


class GateError(Exception):
    """The base of every error a user may see; ``hint`` says what to do next."""

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class ConfigError(GateError):
    """Raised when the configuration or the command line asks for something impossible."""

    exit_code = ExitCode.CONFIGURATION


class SelectionError(ConfigError):
    """Raised when a model, scenario or cell is named that does not exist."""


class FixtureError(ConfigError):
    """Raised when a fixture file cannot be read as declarations."""


class GoldenError(ConfigError):
    """Raised when a golden record is missing, damaged or does not match its index."""


class RunDirError(ConfigError):
    """Raised when a run directory cannot be created, read or written."""


class EnvironmentUnavailable(GateError):
    """Raised when an environment under test cannot be built, found or started."""

    exit_code = ExitCode.ENVIRONMENT


class InternalError(GateError):
    """Raised when a promise between our own modules is broken."""

    exit_code = ExitCode.INTERNAL
